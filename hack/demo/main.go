// Command demo shows the main job: a control plane and a small fleet of real API servers, on which modules are installed, damaged,
// repaired, upgraded and removed. `make demo` builds what it needs and runs it. It leaves nothing running, and nothing on disk.
//
// With -direct it shows the same on one API server without a control plane, by bin/mothership as a person would type it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// limit bounds the whole demo.
const limit = 5 * time.Minute

// errInterrupted is the cause of an end by Ctrl-C or SIGTERM.
var errInterrupted = errors.New("interrupted: everything was stopped and removed")

func main() {
	direct := flag.Bool("direct", false, "one API server and no control plane: what bin/mothership does by itself")
	flag.Parse()
	ctrl.SetLogger(logr.Discard()) // what a person should see, the demo prints
	ctx, cancel := context.WithTimeoutCause(context.Background(), limit, fmt.Errorf("it took longer than %s", limit))
	defer cancel()
	show := runFleet
	if *direct {
		show = runDirect
	}
	if err := show(interruptible(ctx)); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

// interruptible ends the context with errInterrupted at the first signal. A second one ends the process at once: the kernel ends
// its children then, and their folder is left behind.
func interruptible(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() { // lives as long as the process
		<-signals
		signal.Stop(signals)
		cancel(errInterrupted)
	}()
	return ctx
}

// runDirect is the story without a control plane.
func runDirect(ctx context.Context) (err error) {
	chart, _, err := certManagerChart(ctx)
	if err != nil {
		return err
	}
	s, err := startStage(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := s.close(); err == nil {
			err = closeErr
		}
	}()
	for _, act := range play(chart) {
		if err := s.perform(ctx, act); err != nil {
			return err
		}
	}
	return s.finale(ctx)
}

// runFleet is the story of a fleet.
func runFleet(ctx context.Context) (err error) {
	f, err := openFleet(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := f.close(); err == nil {
			err = closeErr
		}
		if cause := context.Cause(ctx); err != nil && cause != nil {
			err = cause
		}
	}()
	for _, s := range f.story() {
		if err := f.perform(ctx, s); err != nil {
			return err
		}
	}
	return f.finale(ctx)
}
