// Command demo shows the main job on one real API server: modules are installed, damaged, repaired, upgraded and removed by
// bin/mothership, as a person would type it. `make demo` builds what it needs and runs it. It leaves nothing running.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// limit bounds the whole demo.
const limit = 5 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := run(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	chart, err := certManagerChart(ctx)
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
