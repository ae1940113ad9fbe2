package main

import (
	"context"
	"time"
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
	s.ReadySeconds = b.plane.ready.Seconds()
	caughtUp, err := b.plane.rests(ctx, b.fleet+1)
	if err != nil {
		return err
	}
	s.RestartSeconds = caughtUp.Sub(b.plane.begun).Seconds()
	living, err := b.plane.taken()
	if err != nil {
		return err
	}
	s.RestartCPU, s.Peak = living.CPU.Seconds(), mebibytes(living.Peak)
	s.RestartRequests, err = b.sim.requests(ctx, true)
	return err
}

// idleWindow is short, so that many windows have no verification in them.
const idleWindow = 500 * time.Millisecond

// idle looks at the control plane while nothing happens but verification.
func (b *bench) idle(ctx context.Context, s *Size) error {
	if _, err := b.sim.requests(ctx, true); err != nil {
		return err
	}
	before, err := b.plane.taken()
	if err != nil {
		return err
	}
	begun, requests := time.Now(), 0
	var quiet, quietCPU time.Duration
	last, lastAt := before, begun
	for time.Since(begun) < b.o.idle {
		if err := pause(ctx, idleWindow); err != nil {
			return err
		}
		counts, err := b.sim.requests(ctx, false)
		if err != nil {
			return err
		}
		now, at := time.Now(), total(counts)
		living, err := b.plane.taken()
		if err != nil {
			return err
		}
		if at == requests {
			quiet, quietCPU = quiet+now.Sub(lastAt), quietCPU+living.CPU-last.CPU
		}
		last, lastAt, requests = living, now, at
	}
	s.IdleSeconds, s.IdleCPU = lastAt.Sub(begun).Seconds(), percent(last.CPU-before.CPU, lastAt.Sub(begun))
	s.QuietSeconds, s.QuietCPU = quiet.Seconds(), percent(quietCPU, quiet)
	s.Peak, s.Resident = mebibytes(last.Peak), mebibytes(last.Resident)
	return b.idleRequests(ctx, s)
}

func (b *bench) idleRequests(ctx context.Context, s *Size) error {
	var err error
	if s.IdleRequests, err = b.sim.requests(ctx, true); err != nil {
		return err
	}
	stats, err := b.sim.stats(ctx)
	s.Connections, s.SimulatorMiB = stats.Connections, float64(stats.HeapBytes)/(1<<20)
	return err
}

func percent(cpu, wall time.Duration) float64 {
	if wall <= 0 {
		return 0
	}
	return 100 * cpu.Seconds() / wall.Seconds()
}
