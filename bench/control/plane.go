package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/bench/internal/child"
	"github.com/kyma-project/mothership/bench/internal/wait"
	"github.com/kyma-project/mothership/controlplane"
)

// patience is that for every wait but the one for the modules of an installation; no latency that is measured ends with a look.
var patience = wait.Patience{Bound: 2 * time.Minute, Poll: 20 * time.Millisecond}

// callTimeout bounds every request of the benchmark's own.
const callTimeout = time.Minute

// plane is a control plane in a process of its own.
type plane struct {
	*child.Process
	config childConfig
	scheme *runtime.Scheme
	client client.WithWatch
}

// startPlane starts a control plane with its state in the folder, and waits until it works.
func startPlane(ctx context.Context, c childConfig) (*plane, error) {
	p := &plane{config: c, scheme: runtime.NewScheme()}
	for _, add := range []func(*runtime.Scheme) error{v1beta2.AddToScheme, corev1.AddToScheme} {
		if err := add(p.scheme); err != nil {
			return nil, fmt.Errorf("making the scheme: %w", err)
		}
	}
	if err := p.start(ctx); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

func (p *plane) start(ctx context.Context) (err error) {
	if p.Process, err = child.Start(ctx, planeKind, p.config); err != nil {
		return err
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", filepath.Join(p.config.Dir, controlplane.KubeconfigFile))
	if err != nil {
		return fmt.Errorf("reading the control plane's kubeconfig: %w", err)
	}
	cfg.QPS, cfg.Burst = -1, 0 // the benchmark is not to wait for itself
	if p.client, err = client.NewWithWatch(cfg, client.Options{Scheme: p.scheme}); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	return nil
}

// metric sums the samples of a metric, by the value of its first label.
func (p *plane) metric(ctx context.Context, name string) (map[string]int, error) {
	metrics, err := p.Metrics(ctx)
	out := map[string]int{}
	for label, value := range metrics[name] {
		out[label] = int(value)
	}
	return out, err
}

// busy says whether the control plane has anything in hand for a runtime.
func (p *plane) busy(ctx context.Context, runtime string) (bool, error) {
	data, err := p.Read(ctx, "/fleet/"+space+"/"+runtime)
	if err != nil {
		return false, err
	}
	var e controlplane.Explanation
	if err := json.Unmarshal(data, &e); err != nil {
		return false, fmt.Errorf("reading what is done with %s: %w", runtime, err)
	}
	for _, c := range e.Components {
		if c.Phase == "running" || c.Phase == "queued" || (c.Phase == "delayed" && c.Name != "") {
			return true, nil
		}
	}
	return false, nil
}

// settled waits until a Kyma is ready, as it is asked for, and nothing is in hand.
func (p *plane) settled(ctx context.Context, name string) error {
	return patience.Until(ctx, "Kyma "+name+" is settled", func(ctx context.Context) (bool, error) {
		var k v1beta2.Kyma
		if err := p.client.Get(ctx, types.NamespacedName{Namespace: space, Name: name}, &k); err != nil {
			return false, err
		}
		if k.Status.State != v1beta2.StateReady || k.Status.ObservedGeneration != k.Generation {
			return false, nil
		}
		busy, err := p.busy(ctx, name)
		return !busy, err
	})
}
