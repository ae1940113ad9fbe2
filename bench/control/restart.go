package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/bench/internal/arena"
	"github.com/kyma-project/mothership/bench/internal/wait"
)

const (
	// restartedModules is how many modules the runtime has.
	restartedModules = 20
	// user is who the control plane is in the runtime.
	user = "controlplane"
)

// Restart is a restart of the control plane with nothing to do.
type Restart struct {
	// Drift is the Runtime's driftDetection.
	Drift v1beta2.DriftDetection `json:"driftDetection"`
	// Ready is the time in seconds from the start of the process, with its etcd and kube-apiserver, until it works.
	Ready float64 `json:"readySeconds"`
	// Requests by verb that the runtime's audit log has, from the start of the process until Watched seconds after it was ready.
	Requests arena.Requests `json:"requests"`
	Watched  float64        `json:"watchedSeconds"`
	Total    int            `json:"requestsTotal"`
	Writes   int            `json:"writes"`
}

// restart restarts the control plane over a runtime that does not belong to it, so that it goes on and can count.
func (b *bench) restart(ctx context.Context) (err error) {
	p, folder, err := b.plane(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	a, err := arena.Start(ctx, folder, []string{user})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	if err := b.adopt(ctx, p, a, folder); err != nil {
		return err
	}
	for _, drift := range []v1beta2.DriftDetection{v1beta2.DriftPoll, v1beta2.DriftWatch} {
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec": {"driftDetection": %q}}`, drift))
		if err := p.client.Patch(ctx, &v1beta2.Runtime{ObjectMeta: named(runtimeName)}, patch); err != nil {
			return fmt.Errorf("changing the Runtime: %w", err)
		}
		run, err := b.restartOnce(ctx, p, a, drift)
		if err != nil {
			return err
		}
		b.results.Restarts = append(b.results.Restarts, run)
	}
	return nil
}

// adopt makes the arena's server a runtime with modules.
func (b *bench) adopt(ctx context.Context, p *plane, a *arena.Arena, folder string) error {
	file := filepath.Join(folder, "runtime.kubeconfig")
	if err := a.WriteKubeconfig(user, file); err != nil {
		return err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the runtime's kubeconfig: %w", err)
	}
	chart := filepath.Join(folder, "chart")
	if err := writeChart(chart, smallChart); err != nil {
		return err
	}
	if err := p.offer(ctx, chart, restartedModules, `{}`); err != nil {
		return err
	}
	return errors.Join(p.create(ctx,
		&corev1.Secret{ObjectMeta: named("runtime"), Data: map[string][]byte{"kubeconfig": data}},
		&v1beta2.Runtime{ObjectMeta: named(runtimeName), Spec: v1beta2.RuntimeSpec{
			Provider: v1beta2.ProviderBYOC, Kubeconfig: &v1beta2.KubeconfigSpec{SecretRef: v1beta2.SecretKeyReference{Name: "runtime"}},
		}},
		kymaOf(runtimeName, restartedModules)))
}

func (b *bench) restartOnce(ctx context.Context, p *plane, a *arena.Arena, drift v1beta2.DriftDetection) (Restart, error) {
	run := Restart{Drift: drift, Watched: b.o.watch.Seconds()}
	if err := p.settled(ctx, runtimeName); err != nil {
		return run, err
	}
	if err := p.Stop(); err != nil {
		return run, err
	}
	if _, err := a.Count(ctx, user); err != nil { // what was before
		return run, err
	}
	if err := b.quiet(ctx); err != nil {
		return run, err
	}
	if err := p.start(ctx); err != nil {
		return run, err
	}
	run.Ready = p.Ready.Seconds()
	if err := wait.For(ctx, b.o.watch); err != nil {
		return run, err
	}
	if err := p.settled(ctx, runtimeName); err != nil {
		return run, err
	}
	var err error
	run.Requests, err = a.Count(ctx, user)
	run.Total, run.Writes = run.Requests.Total(), run.Requests.Writes()
	return run, err
}
