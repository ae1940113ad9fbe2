package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kyma-project/mothership/bench/internal/measure"
	"github.com/kyma-project/mothership/bench/internal/wait"
	"github.com/kyma-project/mothership/controlplane"
)

const (
	// windows is how many the interval of verification is divided into.
	windows = 20
	// perRuntime is how much of a shortened interval each runtime has, so that the machine is not full; the interval is as long as
	// shortest at least.
	perRuntime    = 18 * time.Millisecond
	shortest      = 2 * time.Minute
	shortestQuick = 20 * time.Second
	// interval is the product's default.
	interval = time.Hour
)

// verify says how evenly verifications are spread: as they are planned after a restart at the default interval, and as they are made at
// a shorter one. And it compares what one costs with applying everything again, as the field does.
func (b *bench) verify(ctx context.Context) error {
	v := &Verify{}
	b.results.Verify = v
	planned, err := b.planned(ctx)
	if err != nil {
		return err
	}
	v.Planned = spreadOf(planned)
	if v.Made, err = b.made(ctx); err != nil {
		return err
	}
	v.Field, err = b.field(ctx)
	return err
}

// verifyInterval is the shortened interval unless somebody says another.
func verifyInterval(o options) time.Duration {
	if o.quick {
		return shortestQuick
	}
	return max(shortest, time.Duration(o.clusters)*perRuntime)
}

// again starts the control plane with an interval of verification, the default if 0.
func (b *bench) again(ctx context.Context, verify time.Duration) error {
	if err := b.plane.close(); err != nil {
		return err
	}
	b.plane.config.Verify = verify
	if err := b.plane.open(ctx); err != nil {
		return err
	}
	_, err := b.plane.rests(ctx, b.fleet+1, fleetPatience)
	return err
}

// planned counts the next verifications of all runtimes in windows from now: as many as there are before the last of them.
func (b *bench) planned(ctx context.Context) ([]float64, error) {
	now := time.Now()
	at := make([]time.Duration, b.fleet)
	group, asking := errgroup.WithContext(ctx)
	group.SetLimit(creators)
	for i := range at {
		group.Go(func() (err error) {
			at[i], err = b.nextOf(asking, runtimeName(i), now)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	const window = interval / windows
	var counts [windows]float64
	full := 0
	for _, d := range at {
		n := min(max(int(d/window), 0), windows-1)
		counts[n]++
		full = max(full, n)
	}
	return counts[:max(full, 1)], nil
}

// nextOf is the time from now until a runtime's next verification; zero while one is made.
func (b *bench) nextOf(ctx context.Context, name string, now time.Time) (time.Duration, error) {
	data, err := b.plane.Read(ctx, "/fleet/"+space+"/"+name)
	if err != nil {
		return 0, err
	}
	var e controlplane.Explanation
	if err := json.Unmarshal(data, &e); err != nil {
		return 0, fmt.Errorf("reading what is planned for %s: %w", name, err)
	}
	for _, c := range e.Components {
		switch {
		case c.Name != "":
		case c.Next != nil:
			return c.Next.Sub(now), nil
		case c.Phase == "running", c.Phase == "queued":
			return 0, nil
		}
	}
	return 0, fmt.Errorf("reading what is planned for %s: no verification is", name)
}

// made shortens the interval and counts lists in its windows.
func (b *bench) made(ctx context.Context) (*Made, error) {
	d := b.o.verify
	if err := b.again(ctx, d); err != nil {
		return nil, err
	}
	m := &Made{IntervalSeconds: d.Seconds()}
	before, err := b.plane.Metrics(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := b.sim.requests(ctx, true); err != nil {
		return nil, err
	}
	var counts []float64
	m.Share, err = b.spend(func() error {
		counts, err = b.count(ctx, d)
		return err
	})
	if err != nil {
		return nil, err
	}
	after, err := b.plane.Metrics(ctx)
	if err != nil {
		return nil, err
	}
	m.Spread = spreadOf(counts)
	if m.Requests, err = b.sim.requests(ctx, true); err != nil {
		return nil, err
	}
	sum := func(metric, label string) float64 { return after[metric][label] - before[metric][label] }
	m.Runtimes = int(sum("mothership_run_seconds_count", "runtime"))
	if m.Runtimes > 0 {
		n := float64(m.Runtimes)
		m.Each = Each{Requests: float64(total(m.Requests)) / n, CPU: 1000 * m.Share[productShare] / n, Wall: 1000 * sum("mothership_run_seconds_sum", "runtime") / n}
	}
	if waited := sum("mothership_queue_wait_seconds_count", "verify"); waited > 0 {
		m.WaitMillis = 1000 * sum("mothership_queue_wait_seconds_sum", "verify") / waited
	}
	return m, b.again(ctx, 0)
}

// count counts lists in each window of an interval, from now on.
func (b *bench) count(ctx context.Context, interval time.Duration) ([]float64, error) {
	var out []float64
	begun, last := time.Now(), 0
	for i := range windows {
		if err := wait.For(ctx, time.Until(begun.Add(interval*time.Duration(i+1)/windows))); err != nil {
			return nil, err
		}
		counts, err := b.sim.requests(ctx, false)
		if err != nil {
			return nil, err
		}
		out, last = append(out, float64(counts["list"]-last)), counts["list"]
	}
	return out, nil
}

func spreadOf(counts []float64) Spread { return Spread{Windows: counts, CV: measure.Variation(counts)} }
