package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/bench/internal/child"
	"github.com/kyma-project/mothership/sim"
)

// creators is how many runtimes are made known at the same time.
const creators = 16

// begin starts both processes, installs the template by the product, and clones it.
func (b *bench) begin(ctx context.Context) error {
	b.sayf("starting")
	var err error
	if b.charts, err = serveCharts(ctx); err != nil {
		return err
	}
	s, err := child.Start(ctx, simulatorKind, struct{}{})
	if err != nil {
		return err
	}
	b.sim = simulator{s}
	if b.api, err = openAPI(ctx, b.folder, b.o.clusters); err != nil {
		return err
	}
	b.plane = &plane{config: planeConfig{Kubeconfig: b.api.kubeconfig, Log: b.log(), Profiles: b.o.profiles}}
	if err := b.plane.open(ctx); err != nil {
		return err
	}
	if err := b.create(ctx, b.catalogue()...); err != nil {
		return err
	}
	if err := b.sim.add(ctx, sim.AddRequest{Name: template}); err != nil {
		return err
	}
	if err := b.join(ctx, template); err != nil {
		return err
	}
	if err := b.allReady(ctx, 1); err != nil {
		return err
	}
	begun := time.Now()
	if err := b.sim.add(ctx, sim.AddRequest{Prefix: runtimePrefix, Count: b.o.clusters, From: template}); err != nil {
		return err
	}
	b.results.CloneSeconds = time.Since(begun).Seconds()
	return nil
}

func (b *bench) create(ctx context.Context, objects ...client.Object) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for _, obj := range objects {
		if err := b.api.client.Create(ctx, obj); err != nil {
			return fmt.Errorf("creating %T %s: %w", obj, obj.GetName(), err)
		}
	}
	return nil
}

// join makes a cluster of the simulator a runtime with all modules.
func (b *bench) join(ctx context.Context, name string) error {
	kubeconfig, err := b.sim.kubeconfig(ctx, name)
	if err != nil {
		return err
	}
	return b.create(ctx,
		&corev1.Secret{ObjectMeta: named(name), Data: map[string][]byte{"kubeconfig": kubeconfig}},
		&v1beta2.Runtime{ObjectMeta: named(name), Spec: runtimeSpec(name)}, b.kymaOf(name))
}

// runtimeSpec is that of a cluster whose kubeconfig is in the Secret of its name.
func runtimeSpec(name string) v1beta2.RuntimeSpec {
	return v1beta2.RuntimeSpec{
		Provider: v1beta2.ProviderBYOC, Kubeconfig: &v1beta2.KubeconfigSpec{SecretRef: v1beta2.SecretKeyReference{Name: name, Key: "kubeconfig"}},
	}
}

// sample is how many runtimes of each size really join, unless all shall. That takes the control plane's time; the rest is written down
// as the control plane would have: see cloned.
const sample = 100

// seed makes the fleet as large as is said: a sample joins, and is waited for; then the control plane is ended, and the rest is made.
func (b *bench) seed(ctx context.Context, runtimes int, s *Size) error {
	joined := runtimes
	if !b.o.join {
		joined = min(runtimes, b.fleet+sample)
	}
	if err := b.joinAll(ctx, joined, s); err != nil {
		return err
	}
	if err := b.plane.close(); err != nil {
		return err
	}
	return b.cloneAll(ctx, runtimes)
}

// joinAll has runtimes join until there are as many.
func (b *bench) joinAll(ctx context.Context, runtimes int, s *Size) error {
	if _, err := b.sim.requests(ctx, true); err != nil {
		return err
	}
	before, err := b.plane.Taken()
	if err != nil {
		return err
	}
	seed := &Seed{Joined: runtimes - b.fleet}
	begun := time.Now()
	if err := b.each(ctx, runtimes, b.join); err != nil {
		return err
	}
	seed.CreateSeconds = time.Since(begun).Seconds()
	if err := b.allReady(ctx, runtimes+1); err != nil {
		return err
	}
	seed.Seconds = time.Since(begun).Seconds()
	after, err := b.plane.Taken()
	if err != nil {
		return err
	}
	seed.CPU, seed.Peak = (after.CPU - before.CPU).Seconds(), mebibytes(after.Peak)
	if seed.Requests, err = b.sim.requests(ctx, true); err != nil {
		return err
	}
	s.Seed = seed
	return nil
}

// each makes runtimes known in some way until there are as many.
func (b *bench) each(ctx context.Context, runtimes int, known func(context.Context, string) error) error {
	group, making := errgroup.WithContext(ctx)
	group.SetLimit(creators)
	for ; b.fleet < runtimes; b.fleet++ {
		name := runtimeName(b.fleet)
		group.Go(func() error { return known(making, name) })
	}
	return group.Wait()
}

// stall is how long the number of Kymas that are ready may stay the same: that a runtime answers again which had lately done so already is
// reported when it has for two minutes.
const stall = 4 * time.Minute

// allReady waits until the control plane rests and all Kymas are ready.
func (b *bench) allReady(ctx context.Context, kymas int) error {
	best, since := -1, time.Now()
	for {
		if _, err := b.plane.rests(ctx, kymas, fleetPatience); err != nil {
			return err
		}
		ready, example, err := b.countReady(ctx)
		if err != nil || ready >= kymas {
			return err
		}
		if ready > best {
			best, since = ready, time.Now()
		}
		if time.Since(since) > stall {
			return fmt.Errorf("only %d of %d Kymas are ready, and nothing happens any more: %s", ready, kymas, example)
		}
	}
}

// page is how many Kymas are read at once.
const page = 500

// countReady says how many Kymas are ready, and of one that is not, what it is.
func (b *bench) countReady(ctx context.Context) (ready int, example string, err error) {
	next := ""
	for more := true; more; more = next != "" {
		var list v1beta2.KymaList
		if err := b.api.client.List(ctx, &list, client.InNamespace(space), client.Limit(page), client.Continue(next)); err != nil {
			return 0, "", fmt.Errorf("counting what is ready: %w", err)
		}
		for i := range list.Items {
			k := &list.Items[i]
			if k.Status.State == v1beta2.StateReady && k.Status.ObservedGeneration == k.Generation {
				ready++
			} else {
				example = describe(k)
			}
		}
		next = list.Continue
	}
	return ready, example, nil
}

// describe says what a Kyma is that is not ready.
func describe(k *v1beta2.Kyma) string {
	out := fmt.Sprintf("%s is %q, %s modules ready, generation %d of %d", k.Name, k.Status.State, k.Status.ModulesReady, k.Status.ObservedGeneration, k.Generation)
	for i := range k.Status.Modules {
		if m := &k.Status.Modules[i]; m.State != v1beta2.StateReady {
			return fmt.Sprintf("%s; %s is %q: %s", out, m.Name, m.State, m.Message)
		}
	}
	return out
}
