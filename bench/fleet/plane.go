package main

import (
	"context"
	"time"

	"github.com/kyma-project/mothership/bench/internal/child"
	"github.com/kyma-project/mothership/bench/internal/measure"
	"github.com/kyma-project/mothership/bench/internal/wait"
)

// Every wait is bounded: those for the whole fleet by fleetPatience, all others by patience. Looks at metrics cost the product's time,
// so they are not many.
var (
	patience      = wait.Patience{Bound: 3 * time.Minute, Poll: 100 * time.Millisecond}
	fleetPatience = wait.Patience{Bound: time.Hour, Poll: 250 * time.Millisecond} // looking costs the control plane something
	wavePatience  = wait.Patience{Bound: time.Hour, Poll: time.Second}            // where what it costs is counted
)

// callTimeout bounds every request of the benchmark's own.
const callTimeout = time.Minute

// plane is the product: a control plane over the API, in a process of its own.
type plane struct {
	*child.Process
	config planeConfig
}

// open starts the control plane, again or for the first time, and waits until it works.
func (p *plane) open(ctx context.Context) (err error) {
	p.Process, err = child.Start(ctx, planeKind, p.config)
	return err
}

// Taken is what the control plane and its rendering processes have taken so far.
func (p *plane) Taken() (measure.Living, error) { return measure.LookAtAll(p.PID()) }

func (p *plane) close() error {
	if p == nil {
		return nil
	}
	return p.Stop()
}

// restLooks is how many looks in succession must find nothing to do.
const restLooks = 5

// rests waits until the control plane has nothing in hand and all runtimes have their next verification ahead, and returns when it
// was first seen so. A runtime without one has not been looked at yet.
func (p *plane) rests(ctx context.Context, runtimes int, looking wait.Patience) (time.Time, error) {
	var since time.Time
	looks := 0
	err := looking.Until(ctx, "the control plane rests", func(ctx context.Context) (bool, error) {
		m, err := p.Metrics(ctx)
		if err != nil {
			return false, err
		}
		busy := m.Sum("mothership_queued") + m["mothership_components"]["running"] + m.Sum("workqueue_depth") + m.Sum("controller_runtime_active_workers") +
			m.Sum("mothership_status_backlog")
		if busy > 0 || int(m["mothership_components"]["delayed"]) < runtimes {
			looks = 0
			return false, nil
		}
		if looks++; looks == 1 {
			since = time.Now()
		}
		return looks >= restLooks, nil
	})
	return since, err
}
