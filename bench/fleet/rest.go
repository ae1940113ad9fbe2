package main

import (
	"context"
	"time"

	"github.com/kyma-project/mothership/bench/internal/measure"
	"github.com/kyma-project/mothership/bench/internal/wait"
)

// restart starts the control plane again, until it has caught up.
func (b *bench) restart(ctx context.Context, s *Size) error {
	if err := b.quiet(ctx); err != nil {
		return err
	}
	if _, err := b.sim.requests(ctx, true); err != nil {
		return err
	}
	if err := b.plane.open(ctx); err != nil {
		return err
	}
	caughtUp, err := b.plane.rests(ctx, b.fleet+1, fleetPatience)
	if err != nil {
		return err
	}
	living, err := b.plane.Taken()
	if err != nil {
		return err
	}
	requests, err := b.sim.requests(ctx, true)
	if err != nil {
		return err
	}
	s.Restart = &Restart{
		ReadySeconds: b.plane.Ready.Seconds(), Seconds: caughtUp.Sub(b.plane.Begun).Seconds(), CPU: living.CPU.Seconds(),
		Peak: mebibytes(living.Peak), Requests: requests,
	}
	return nil
}

// idleWindow is short, so that many windows have no verification in them.
const idleWindow = 500 * time.Millisecond

// idle looks at the control plane while nothing happens but verification.
func (b *bench) idle(ctx context.Context, s *Size, d time.Duration) error {
	if _, err := b.sim.requests(ctx, true); err != nil {
		return err
	}
	i := &Idle{}
	spent, err := b.spend(func() error { return b.lookOn(ctx, i, d) })
	if err != nil {
		return err
	}
	i.Share, i.CPU = spent, 100*spent[productShare]/i.Seconds
	if i.Requests, err = b.sim.requests(ctx, true); err != nil {
		return err
	}
	stats, err := b.sim.stats(ctx)
	if err != nil {
		return err
	}
	i.SimulatorMiB, s.Idle = float64(stats.HeapBytes)/(1<<20), i
	return nil
}

// lookOn looks at each window of the idle time.
func (b *bench) lookOn(ctx context.Context, i *Idle, d time.Duration) error {
	last, err := b.plane.Taken()
	if err != nil {
		return err
	}
	var quiet, quietCPU time.Duration
	requests, begun := 0, time.Now()
	for at := begun; at.Sub(begun) < d; {
		if err := wait.For(ctx, idleWindow); err != nil {
			return err
		}
		counts, connections, err := b.pulse(ctx)
		if err != nil {
			return err
		}
		living, err := b.plane.Taken()
		if err != nil {
			return err
		}
		now := time.Now()
		if counts == requests {
			quiet, quietCPU = quiet+now.Sub(at), quietCPU+living.CPU-last.CPU
		}
		if i.Windows == 0 || connections < i.Connections {
			i.Connections = connections
		}
		i.Windows, at, last, requests = i.Windows+1, now, living, counts
		i.Seconds, i.QuietSeconds = now.Sub(begun).Seconds(), quiet.Seconds()
	}
	i.QuietCPU, i.Peak, i.Resident = percent(quietCPU, quiet), mebibytes(last.Peak), mebibytes(last.Resident)
	return nil
}

// pulse is how many requests there were since the last reset, and how many connections there are.
func (b *bench) pulse(ctx context.Context) (requests int, connections int64, err error) {
	counts, err := b.sim.requests(ctx, false)
	if err != nil {
		return 0, 0, err
	}
	connections, err = b.sim.connections(ctx)
	return total(counts), connections, err
}

func percent(cpu, wall time.Duration) float64 {
	if wall <= 0 {
		return 0
	}
	return 100 * cpu.Seconds() / wall.Seconds()
}

// median of a figure of several.
func median[T any](of []T, figure func(T) float64) float64 {
	values := make([]float64, len(of))
	for i, v := range of {
		values[i] = figure(v)
	}
	return measure.Median(values)
}
