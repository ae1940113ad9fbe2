package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/kyma-project/mothership/bench/internal/child"
	"github.com/kyma-project/mothership/bench/internal/measure"
)

// bench is one run of this program.
type bench struct {
	o        options
	folder   string
	progress io.Writer
	sim      simulator
	api      *api
	plane    *plane
	charts   *charts
	// fleet is how many runtimes are with the control plane, without the template.
	fleet int
	// serial numbers texts and windows, so that none is twice.
	serial  int
	results *Results
}

// built are the Go modules whose versions are reported.
var built = map[string]string{"k8s.io/client-go": "client-go", "sigs.k8s.io/controller-runtime": "controller-runtime"}

// measureAll makes all parts, one after the other. With an error, it also returns what was measured until then.
func measureAll(ctx context.Context, o options, progress io.Writer) (_ *Results, err error) {
	folder, err := os.MkdirTemp("", "bench-fleet-")
	if err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if o.profiles, err = child.ProfileFolder(o.profiles); err != nil {
		return nil, err
	}
	b := &bench{o: o, folder: folder, progress: progress, results: &Results{
		Rig: measure.ThisRig(built), Clusters: o.clusters, Modules: o.modules, Objects: o.objects, Quick: o.quick, Figures: map[string]float64{},
	}}
	defer func() { err = errors.Join(err, b.plane.close(), b.api.close(), b.sim.Stop(), b.charts.close()) }()
	begun := time.Now()
	if err = b.measure(ctx); err != nil {
		b.results.Error = err.Error()
	}
	if lines, countErr := b.logLines(0, b.names()); countErr == nil { // without a control plane there is no log
		b.results.LogLines = lines
	}
	b.results.Seconds = time.Since(begun).Seconds()
	b.results.conclude()
	return b.results, err
}

func (b *bench) measure(ctx context.Context) error {
	if err := b.begin(ctx); err != nil {
		return fmt.Errorf("beginning: %w", err)
	}
	if small := b.o.clusters / 10; b.o.slope && small > 0 {
		if err := b.size(ctx, small); err != nil {
			return fmt.Errorf("a tenth of the fleet: %w", err)
		}
	}
	if err := b.size(ctx, b.o.clusters); err != nil {
		return fmt.Errorf("the fleet: %w", err)
	}
	for _, part := range []struct {
		name string
		make func(context.Context) error
	}{{partVerify, b.verify}, {partChange, b.change}, {partUpgrade, b.upgrade}, {partBurst, b.burst}, {partSick, b.sick}} {
		if !slices.Contains(b.o.parts, part.name) {
			continue
		}
		b.sayf("%s", part.name)
		if err := part.make(ctx); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}

// shortIdle is for the tenth of the fleet, of which only the memory matters.
const shortIdle = time.Minute

// size seeds the fleet to a size, restarts the control plane, and looks at it while nothing happens.
func (b *bench) size(ctx context.Context, runtimes int) error {
	s := Size{Runtimes: runtimes}
	defer func() { b.results.Sizes = append(b.results.Sizes, s) }()
	b.sayf("%d runtimes: seeding", runtimes)
	if err := b.seed(ctx, runtimes, &s); err != nil {
		return fmt.Errorf("seeding: %w", err)
	}
	b.sayf("%d runtimes: restarting", runtimes)
	if err := b.restart(ctx, &s); err != nil {
		return fmt.Errorf("restarting: %w", err)
	}
	if !slices.Contains(b.o.parts, partIdle) {
		return nil
	}
	b.sayf("%d runtimes: idle", runtimes)
	idle := b.o.idle
	if runtimes < b.o.clusters {
		idle = min(idle, shortIdle)
	}
	return b.idle(ctx, &s, idle)
}

// names are those of all runtimes that are with the control plane.
func (b *bench) names() []string {
	var out []string
	for i := range b.fleet {
		out = append(out, runtimeName(i))
	}
	return out
}

// quiet waits until the machine is at rest, and notes it if it does not come to that.
func (b *bench) quiet(ctx context.Context) error {
	if b.o.quick {
		return nil
	}
	quiet, err := measure.Quiet(ctx)
	if err == nil && !quiet {
		b.results.Noisy = true
	}
	return err
}

func (b *bench) sayf(format string, args ...any) {
	fmt.Fprintf(b.progress, time.Now().Format(time.TimeOnly)+" "+format+"\n", args...)
}

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }
