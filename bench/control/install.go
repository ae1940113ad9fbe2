package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
)

const (
	// objectsEach is how many objects a module has.
	objectsEach = 4
	// installPatience bounds an installation of all modules.
	installPatience = 15 * time.Minute
	// installPoll is the time between two looks at how many are ready: at a metric, as the Kyma is large. What is measured ends
	// with a look, so it is up to this too long; more looks would take from the controller's processor time.
	installPoll = 250 * time.Millisecond
)

// Install is one installation of all modules.
type Install struct {
	// Wall is the time in seconds from just before the Kyma was created until it said that all modules are ready.
	Wall float64 `json:"wallSeconds"`
	// CPU is user and system time in seconds, and PeakRSS the most memory in MiB, of the controller's process alone: since its
	// start, and the latter in all its life.
	CPU     float64 `json:"cpuSeconds"`
	PeakRSS float64 `json:"peakRSSMiB"`
	// RestRSS is its memory before the Kyma was created, with the catalogue in it.
	RestRSS float64 `json:"restRSSMiB"`
	// Requests to the runtime by verb.
	Requests map[string]int `json:"requests"`
	// KymaBytes is the size of the Kyma at the end, as JSON.
	KymaBytes int `json:"kymaBytes"`
	// Noisy says that the machine was not quiet when the run began.
	Noisy bool `json:"noisy,omitempty"`
}

// install makes all runs.
func (b *bench) install(ctx context.Context) error {
	for range b.o.runs {
		run, err := b.installOnce(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(b.progress, "  %d modules in %.1f s, %.0f MiB at most, %.1f s of processor time\n", b.o.modules, run.Wall, run.PeakRSS, run.CPU)
		b.results.Installs = append(b.results.Installs, run)
	}
	return nil
}

// installOnce installs all modules into a new fleet.
func (b *bench) installOnce(ctx context.Context) (run Install, err error) {
	p, folder, err := b.plane(ctx)
	if err != nil {
		return run, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	if err := writeChart(folder, smallChart); err != nil {
		return run, err
	}
	if err := p.offer(ctx, folder, b.o.modules, `{}`); err != nil {
		return run, err
	}
	runtime, err := p.localRuntime(ctx, runtimeName, v1beta2.DriftPoll)
	if err != nil {
		return run, err
	}
	noisy := b.results.Noisy
	if err := b.quiet(ctx); err != nil {
		return run, err
	}
	run.Noisy = b.results.Noisy && !noisy
	if err := p.measureInstall(ctx, b.o.modules, &run); err != nil {
		return run, err
	}
	return run, complete(ctx, runtime, b.o.modules)
}

// measureInstall creates the Kyma and waits until it is ready.
func (p *plane) measureInstall(ctx context.Context, modules int, run *Install) error {
	before, err := p.Taken()
	if err != nil {
		return err
	}
	begun := time.Now()
	if err := p.create(ctx, kymaOf(runtimeName, modules)); err != nil {
		return err
	}
	k, err := p.awaitInstalled(ctx, modules)
	if err != nil {
		return err
	}
	run.Wall = time.Since(begun).Seconds()
	after, err := p.Taken()
	if err != nil {
		return err
	}
	const mib = 1 << 20
	run.CPU, run.PeakRSS, run.RestRSS = (after.CPU - before.CPU).Seconds(), float64(after.Peak)/mib, float64(before.Resident)/mib
	run.KymaBytes = k
	run.Requests, err = p.metric(ctx, "mothership_runtime_requests_total")
	return err
}

// awaitInstalled waits until a Kyma with all its modules is ready, and returns its size.
func (p *plane) awaitInstalled(ctx context.Context, modules int) (size int, err error) {
	ctx, cancel := context.WithTimeout(ctx, installPatience)
	defer cancel()
	tick := time.NewTicker(installPoll)
	defer tick.Stop()
	for {
		ready, err := p.metric(ctx, "mothership_time_to_ready_seconds_count")
		if err != nil {
			return 0, err
		}
		if ready[""] >= modules {
			var k v1beta2.Kyma
			if err := p.client.Get(ctx, types.NamespacedName{Namespace: space, Name: runtimeName}, &k); err != nil {
				return 0, fmt.Errorf("reading the Kyma: %w", err)
			}
			if k.Status.State == v1beta2.StateReady && len(k.Status.Modules) == modules && k.Status.ObservedGeneration == k.Generation {
				return sizeOf(&k), nil
			}
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("waiting for %d modules, of which %d are ready: %w", modules, ready[""], ctx.Err())
		case <-tick.C:
		}
	}
}

// complete checks that the runtime has all objects.
func complete(ctx context.Context, runtime client.Client, modules int) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	total := 0
	for _, kind := range []string{"ConfigMap", "Secret", "ServiceAccount", "Service"} {
		var list metav1.PartialObjectMetadataList
		list.SetGroupVersionKind(v1(kind + "List"))
		if err := runtime.List(ctx, &list, client.InNamespace(target), client.HasLabels{v1beta2.ApplySetPartOfLabel}); err != nil {
			return fmt.Errorf("counting what is in the runtime: %w", err)
		}
		total += len(list.Items)
	}
	if want := modules * objectsEach; total != want {
		return fmt.Errorf("the runtime has %d objects of modules, want %d", total, want)
	}
	return nil
}
