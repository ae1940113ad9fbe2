package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// scene is one thing that is shown.
type scene struct {
	title string
	// play does it, and fails if what must come of it does not.
	play func(ctx context.Context) error
	// note is said afterwards.
	note string
}

// story is the whole demo, in order.
func (f *fleet) story() []scene {
	return []scene{
		{title: "Start a control plane: a real kube-apiserver with etcd, and the controllers in this process", play: f.begin},
		{
			title: "Ask for three runtimes with six modules each, and wait until all are ready", play: f.populate,
			note: "Each runtime is a real kube-apiserver; its node and pods are simulated. Simulated pods answer no webhook, and cert-manager's\n" +
				"   guards its custom resources, so none of them is made here.",
		},
		{title: "Damage what is managed, behind its back, by each runtime's own kubeconfig", play: f.damage},
		{title: "Move channel regular of module web to 2.0.0: every runtime is upgraded, what the new version dropped is pruned", play: f.upgrade},
		{title: "Take module backup out of eu-1: its custom resource goes first, its definition last", play: f.remove},
		{title: "Kill the API server of us-1 (kill -9), and ask for a change there while it is down", play: f.crash},
		{title: "Stop the control plane with its runtimes, and start it again: nothing is applied", play: f.restart},
	}
}

// perform shows a scene, and what it took.
func (f *fleet) perform(ctx context.Context, s scene) error {
	f.acts++
	fmt.Printf("\n── %d. %s\n", f.acts, s.title)
	begun, before := time.Now(), requests{}
	if f.control != nil {
		m, err := f.metrics(ctx)
		if err != nil {
			return err
		}
		before = m.requests()
	}
	was := f.control
	if err := s.play(ctx); err != nil {
		return fmt.Errorf("step %d: %w", f.acts, err)
	}
	m, err := f.awaitMetrics(ctx, "the control plane is idle", idle)
	if err != nil {
		return err
	}
	if was != f.control { // its counters began anew
		before = requests{}
	}
	if s.note != "" {
		fmt.Println("   " + s.note)
	}
	fmt.Printf("   %s · %s\n", since(begun), m.requests().since(before))
	return nil
}

func (f *fleet) begin(ctx context.Context) error { return f.start(ctx) }

func (f *fleet) populate(ctx context.Context) error {
	objects, err := f.catalog()
	if err != nil {
		return err
	}
	if err := f.create(ctx, append(objects, desired()...)...); err != nil {
		return err
	}
	_, err = f.awaitFleet(ctx, func(now kymas) bool {
		for _, k := range now {
			if len(k.Status.Modules) < modulesEach {
				return false
			}
		}
		return allReady(now)
	})
	return err
}

func (f *fleet) upgrade(ctx context.Context) error {
	err := change(ctx, f, "web", &v1beta2.ModuleReleaseMeta{}, func(r *v1beta2.ModuleReleaseMeta) {
		r.Spec.Channels[0].Version = "2.0.0"
	})
	if err != nil {
		return err
	}
	_, err = f.awaitFleet(ctx, func(now kymas) bool {
		for _, k := range now {
			if m := moduleOf(k, "web"); m == nil || m.Version != "2.0.0" || m.State != v1beta2.StateReady {
				return false
			}
		}
		return allReady(now)
	})
	if err != nil {
		return err
	}
	for _, r := range runtimes {
		if err := f.gone(ctx, r.name, "service", "-n", "web", "web-metrics"); err != nil {
			return err
		}
	}
	return nil
}

func (f *fleet) remove(ctx context.Context) error {
	err := change(ctx, f, "eu-1", &v1beta2.Kyma{}, func(k *v1beta2.Kyma) {
		var left []v1beta2.Module
		for _, m := range k.Spec.Modules {
			if m.Name != "backup" {
				left = append(left, m)
			}
		}
		k.Spec.Modules = left
	})
	if err != nil {
		return err
	}
	if _, err := f.awaitFleet(ctx, func(now kymas) bool {
		return allReady(now) && moduleOf(now["eu-1"], "backup") == nil
	}); err != nil {
		return err
	}
	return f.gone(ctx, "eu-1", "customresourcedefinition", "backupplans.example.com")
}

// restart stops everything and starts it again. All modules are looked at, and every runtime is verified, since it is watched.
func (f *fleet) restart(ctx context.Context) error {
	begun := time.Now()
	if err := f.stop(); err != nil {
		return err
	}
	fmt.Printf("   stopped in %s\n", since(begun))
	begun = time.Now()
	if err := f.start(ctx); err != nil {
		return err
	}
	fmt.Printf("   the control plane works again after %s\n", since(begun))
	now, err := f.awaitFleet(ctx, allReady)
	if err != nil {
		return err
	}
	modules := 0
	for _, k := range now {
		modules += len(k.Status.Modules)
	}
	m, err := f.awaitMetrics(ctx, "every module and runtime was looked at", func(m metrics) bool {
		return m.sum("mothership_run_seconds_count", `kind="module"`, `outcome="done"`) >= modules &&
			m.sum("mothership_run_seconds_count", `kind="runtime"`, `outcome="done"`) >= len(runtimes) && idle(m)
	})
	if err != nil {
		return err
	}
	fmt.Printf("   %d modules were looked at and %d runtimes verified after %s\n", modules, len(runtimes), since(begun))
	if n := m.requests().writes(); n > 0 {
		return fmt.Errorf("%d requests wrote to runtimes, although nothing had changed: %s", n, m.requests())
	}
	return nil
}

// finale stops everything and says so.
func (f *fleet) finale(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := f.stop(); err != nil {
		return err
	}
	if left := processesOf(f.dir); len(left) > 0 {
		return errors.New("something is still running")
	}
	fmt.Printf("\n%d steps in %s. Everything is stopped and removed; `make up` starts one that stays.\n", f.acts, since(f.begun))
	return nil
}
