package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/bench/internal/measure"
)

// change changes Kymas at the rate and waits until each change is in its runtime, in some windows.
func (b *bench) change(ctx context.Context) error {
	for range b.o.turns {
		if err := b.quiet(ctx); err != nil {
			return err
		}
		w, err := b.window(ctx, b.spread(b.o.changes, nil))
		if err != nil {
			return err
		}
		b.results.Changes = append(b.results.Changes, *w)
	}
	return nil
}

// spread are numbers of runtimes, evenly over the fleet, as many as are asked for or there are; not those left out.
func (b *bench) spread(n int, without map[int]bool) []int {
	var all, out []int
	for i := range b.fleet {
		if !without[i] {
			all = append(all, i)
		}
	}
	n = min(n, len(all))
	for i := range n {
		out = append(out, all[i*len(all)/n])
	}
	return out
}

// window changes each of the runtimes once, and waits for all.
func (b *bench) window(ctx context.Context, runtimes []int) (*Window, error) {
	eyes, err := b.open(ctx, runtimes)
	if err != nil {
		return nil, err
	}
	defer eyes.close()
	var sent map[string]change
	begun := time.Now()
	share, err := b.spend(func() (err error) {
		if sent, err = b.send(ctx, runtimes); err != nil {
			return err
		}
		return eyes.await(ctx, sent)
	})
	if err != nil {
		return nil, err
	}
	w := &Window{
		Changes: len(sent), Seconds: time.Since(begun).Seconds(), Share: share, CPUPerChange: 1000 * share[productShare] / float64(len(sent)),
	}
	var api []float64
	for text, c := range sent {
		api = append(api, milliseconds(c.taken))
		if seen, ok := eyes.at(text); ok {
			w.Samples = append(w.Samples, milliseconds(seen.Sub(c.at)))
		} else {
			w.Lost++
		}
	}
	slices.Sort(w.Samples)
	slices.Sort(api)
	w.API99 = measure.Percentile(api, 99)
	w.P50, w.P99, w.Max = measure.Percentile(w.Samples, 50), measure.Percentile(w.Samples, 99), measure.Percentile(w.Samples, 100)
	return w, nil
}

// change is when a change was sent, and how long the control plane's API took to take it.
type change struct {
	at    time.Time
	taken time.Duration
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// send changes each of the runtimes once, at the rate, and says by its text how each was sent. A second change of one could overtake
// the first.
func (b *bench) send(ctx context.Context, runtimes []int) (map[string]change, error) {
	var mu sync.Mutex
	sent := map[string]change{}
	tick := time.NewTicker(time.Second / time.Duration(b.o.rate))
	defer tick.Stop()
	group, sending := errgroup.WithContext(ctx)
	for _, i := range runtimes {
		select {
		case <-tick.C:
		case <-sending.Done():
			return nil, errors.Join(context.Cause(sending), group.Wait())
		}
		b.serial++
		name, text := runtimeName(i), fmt.Sprintf("change %d", b.serial)
		group.Go(func() error {
			at := time.Now()
			err := b.setText(sending, name, text)
			mu.Lock()
			defer mu.Unlock()
			sent[text] = change{at, time.Since(at)}
			return err
		})
	}
	err := group.Wait()
	return sent, err
}

// setText changes the value of a Kyma's first module.
func (b *bench) setText(ctx context.Context, name, text string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	patch := fmt.Appendf(nil, `[{"op": "replace", "path": "/spec/modules/0/values", "value": {"text": %q}}]`, text)
	if err := b.api.client.Patch(ctx, &v1beta2.Kyma{ObjectMeta: named(name)}, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		return fmt.Errorf("changing Kyma %s: %w", name, err)
	}
	return nil
}

// await waits for all texts that were sent. Those that do not come in time are lost, which is no error.
func (e *eyes) await(ctx context.Context, sent map[string]change) error {
	err := patience.Until(ctx, "all changes are in their runtimes", func(context.Context) (bool, error) { return e.have(sent), e.failed() })
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil
	}
	return err
}

// have says whether all texts were seen.
func (e *eyes) have(sent map[string]change) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for text := range maps.Keys(sent) {
		if _, ok := e.seen[text]; !ok {
			return false
		}
	}
	return true
}
