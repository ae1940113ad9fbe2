package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/bench/internal/measure"
)

// The load that the predecessor aimed at: so many reconciliations of so many operations each, begun within a time, on a share of a core.
const (
	aimedRuntimes   = 200
	aimedOperations = 10
	aimedSeconds    = 30
	aimedCores      = 0.75
)

// burst changes all modules of as many runtimes as the predecessor aimed at, at once, while the control plane has a share of a core.
func (b *bench) burst(ctx context.Context) (err error) {
	var names []string
	for _, i := range b.spread(aimedRuntimes, nil) {
		names = append(names, runtimeName(i))
	}
	ledger, err := b.openLedger(ctx)
	if err != nil {
		return err
	}
	defer ledger.close()
	if err := b.quiet(ctx); err != nil {
		return err
	}
	u := &Burst{Runtimes: len(names), Operations: len(names) * b.o.modules, Limit: "control group"}
	release, err := measure.Limit(b.plane.PID(), aimedCores)
	if errors.Is(err, measure.ErrNoLimit) { // then what it took says what it would do with less
		u.Limit, release, err = "none", func() error { return nil }, nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	if _, err := b.sim.requests(ctx, true); err != nil {
		return err
	}
	begun := time.Now()
	u.Share, err = b.spend(func() error { return b.changeAll(ctx, ledger, u, names) })
	if err != nil {
		return err
	}
	u.Seconds = time.Since(begun).Seconds()
	if u.Requests, err = b.sim.requests(ctx, true); err != nil {
		return err
	}
	b.results.Burst = u
	return nil
}

// changeAll changes all modules of some runtimes, and waits until all Kymas say that they are ready with that.
func (b *bench) changeAll(ctx context.Context, l *ledger, u *Burst, names []string) error {
	begun := time.Now()
	group, changing := errgroup.WithContext(ctx)
	group.SetLimit(creators)
	for _, name := range names {
		b.serial++
		text := fmt.Sprintf("change %d", b.serial)
		group.Go(func() error { return b.setTexts(changing, name, text) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	u.StartedSeconds = time.Since(begun).Seconds()
	return patience.Until(ctx, "all have what they were changed to", func(ctx context.Context) (bool, error) {
		if ready, err := l.ready(names); !ready || err != nil {
			return false, err
		}
		counts, err := b.sim.requests(ctx, false)
		return counts["apply"] >= u.Operations, err
	})
}

// setTexts changes the values of all modules of a Kyma.
func (b *bench) setTexts(ctx context.Context, name, text string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	type operation struct {
		Op    string            `json:"op"`
		Path  string            `json:"path"`
		Value map[string]string `json:"value"`
	}
	var patch []operation
	for i := range b.o.modules {
		patch = append(patch, operation{"replace", fmt.Sprintf("/spec/modules/%d/values", i), map[string]string{"text": text}})
	}
	encoded, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("changing Kyma %s: %w", name, err)
	}
	if err := b.api.client.Patch(ctx, &v1beta2.Kyma{ObjectMeta: named(name)}, client.RawPatch(types.JSONPatchType, encoded)); err != nil {
		return fmt.Errorf("changing Kyma %s: %w", name, err)
	}
	return nil
}

// factor by which the load that was aimed at is exceeded: by what was done in the time, or where nothing limited the processor time, by
// what would have been done with that much of it.
func (u *Burst) factor() float64 {
	const aimed = float64(aimedRuntimes*aimedOperations) / aimedSeconds
	seconds := u.Seconds
	if cores := u.Share[productShare] / u.Seconds; cores > aimedCores {
		seconds *= cores / aimedCores
	}
	return float64(u.Operations) / seconds / aimed
}
