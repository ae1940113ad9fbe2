package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kyma-project/mothership/bench/internal/measure"
	"github.com/kyma-project/mothership/bench/internal/wait"
	"github.com/kyma-project/mothership/sim/dial"
)

// sickness is what is wrong with a share of the fleet: of each twenty runtimes, the first two are black holes, and so on.
var sickness = []struct {
	name  string
	of20  int
	dials dial.Dials
}{{"black hole", 2, dial.Dials{BlackHole: true}}, {"401", 1, dial.Dials{Unauthorized: true}}, {"503", 1, dial.Dials{Fail: 1}}}

// sicknesses is how often the fleet gets sick, so that windows take turns, inARow how many windows there are of each kind in turn, and
// more how many there are in addition in place of those in which the API server has collected its garbage.
const (
	sicknesses = 2
	inARow     = 3
	more       = 2
)

// ward is who gets sick: by kind of sickness, as a list of names, and as a set of numbers. The healthy are numbers of the others.
type ward struct {
	groups  [][]string
	names   []string
	sick    map[int]bool
	healthy []int
}

// sick compares changes of the healthy while a fifth of the fleet is sick and has something to do with those while nobody is, in turn.
func (b *bench) sick(ctx context.Context) error {
	w := b.choose()
	if len(w.sick) == 0 {
		return nil
	}
	s := &Sick{Runtimes: len(w.sick)}
	b.results.Sick = s
	ledger, err := b.openLedger(ctx) // for all windows: what it costs the API and this program is not what sickness does
	if err != nil {
		return err
	}
	defer ledger.close()
	if err := b.well(ctx, s, w); err != nil {
		return err
	}
	for i := range sicknesses {
		if err := b.fallIll(ctx, s, w, ledger, i == 0); err != nil {
			return err
		}
		if err := b.recover(ctx, s, w); err != nil {
			return err
		}
		if err := b.well(ctx, s, w); err != nil {
			return err
		}
	}
	living, err := b.plane.Taken()
	s.Peak = mebibytes(living.Peak)
	return errors.Join(ledger.failed(), err)
}

// well makes undisturbed windows.
func (b *bench) well(ctx context.Context, s *Sick, w ward) (err error) {
	if err := b.quiet(ctx); err != nil {
		return err
	}
	s.Undisturbed, err = b.windows(ctx, s.Undisturbed, w)
	return err
}

// windows makes some in a row.
func (b *bench) windows(ctx context.Context, before []Window, w ward) ([]Window, error) {
	for made, good := 0, 0; good < inARow && made < inARow+more; made++ {
		asked, err := b.api.requests(ctx)
		if err != nil {
			return nil, err
		}
		collections, err := b.api.collect(ctx)
		if err != nil {
			return nil, err
		}
		window, err := b.window(ctx, w.healthy)
		if err != nil {
			return nil, err
		}
		after, err := b.api.collections(ctx)
		if err != nil {
			return nil, err
		}
		if window.Collections = after - collections; window.Collections == 0 {
			good++
		}
		if window.API, err = b.api.requestsSince(ctx, asked); err != nil {
			return nil, err
		}
		before = append(before, *window)
	}
	return before, nil
}

// fallIll makes the ward sick, and disturbed windows. The first time, what sick runtimes cost is counted.
func (b *bench) fallIll(ctx context.Context, s *Sick, w ward, ledger *ledger, count bool) error {
	from, err := b.logSize()
	if err != nil {
		return err
	}
	ledger.begin()
	for i, kind := range sickness {
		if err := b.sim.dial(ctx, kind.dials, w.groups[i]); err != nil {
			return err
		}
	}
	if err := b.touch(ctx, w.names); err != nil {
		return err
	}
	begun := time.Now()
	open, err := b.noticed(ctx, len(w.sick))
	if err != nil {
		return err
	}
	if _, err := measure.Quiet(ctx); err != nil { // the API has taken the changes to the sick by then
		return err
	}
	if !count {
		return b.disturbed(ctx, s, w)
	}
	s.Noticed, s.NoticeSeconds = open, time.Since(begun).Seconds()
	if err := b.countRequests(ctx, s, w); err != nil {
		return err
	}
	lines, err := b.logLines(from, w.names)
	if err != nil {
		return err
	}
	statuses, most, flapped := ledger.of(w.names)
	s.Each = &SickEach{
		Minutes: time.Since(begun).Minutes(), LogLines: float64(lines) / float64(len(w.names)), StatusWrites: float64(statuses) / float64(len(w.names)),
		MostStatusWrites: most, Flapped: flapped,
	}
	return nil
}

// noticed waits until all sick runtimes are known to be: their breakers are open. Where that takes longer than sickness shall, it goes on,
// and says of how many it is known.
func (b *bench) noticed(ctx context.Context, sick int) (int, error) {
	open := 0
	until := wait.Patience{Bound: b.o.sick, Poll: patience.Poll * 10}
	err := until.Until(ctx, "all sick runtimes are noticed", func(ctx context.Context) (bool, error) {
		m, err := b.plane.Metrics(ctx)
		open = int(m.Sum("mothership_unreachable_runtimes"))
		return open >= sick, err
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return open, nil
	}
	return open, err
}

// disturbed makes disturbed windows.
func (b *bench) disturbed(ctx context.Context, s *Sick, w ward) (err error) {
	s.Disturbed, err = b.windows(ctx, s.Disturbed, w)
	return err
}

// settling is how long it takes from when a runtime is known not to answer until it is asked as seldom as ever: pauses between probes
// double from a second to a minute.
const settling = time.Minute

// countRequests counts those to the sick: while the pauses between probes still grow and disturbed windows are made, and after that.
func (b *bench) countRequests(ctx context.Context, s *Sick, w ward) (err error) {
	s.RequestsAtFirst, err = b.requestsDuring(ctx, w, min(settling, b.o.sick), func() error { return b.disturbed(ctx, s, w) })
	if err != nil {
		return err
	}
	s.Requests, err = b.requestsDuring(ctx, w, b.o.sick, func() error { return nil })
	return err
}

// requestsDuring counts those to the sick while something is done, and for some time at least.
func (b *bench) requestsDuring(ctx context.Context, w ward, least time.Duration, do func() error) (*SickRequests, error) {
	if _, err := b.sim.requests(ctx, true); err != nil {
		return nil, err
	}
	begun := time.Now()
	if err := do(); err != nil {
		return nil, err
	}
	if err := wait.For(ctx, time.Until(begun.Add(least))); err != nil {
		return nil, err
	}
	r := &SickRequests{Minutes: time.Since(begun).Minutes(), PerMinute: map[string]float64{}}
	for i, kind := range sickness {
		if len(w.groups[i]) == 0 {
			continue
		}
		n, err := b.sim.requestsOf(ctx, w.groups[i])
		if err != nil {
			return nil, err
		}
		r.PerMinute[kind.name] = float64(n) / float64(len(w.groups[i])) / r.Minutes
		r.Requests += n
	}
	return r, nil
}

// recover makes all well again.
func (b *bench) recover(ctx context.Context, s *Sick, w ward) error {
	begun := time.Now()
	if err := b.sim.dial(ctx, dial.Dials{}, w.names); err != nil {
		return err
	}
	if err := b.allReady(ctx, b.fleet+1); err != nil {
		return fmt.Errorf("after recovery: %w", err)
	}
	s.RecoverySeconds = append(s.RecoverySeconds, time.Since(begun).Seconds())
	return nil
}

// choose says who gets sick.
func (b *bench) choose() ward {
	w := ward{groups: make([][]string, len(sickness)), sick: map[int]bool{}}
	for i := range b.fleet {
		turn := i % 20
		for j, kind := range sickness {
			if turn >= 0 && turn < kind.of20 {
				w.groups[j], w.sick[i] = append(w.groups[j], runtimeName(i)), true
			}
			turn -= kind.of20
		}
	}
	w.names, w.healthy = slices.Concat(w.groups...), b.spread(b.o.changes, w.sick)
	if len(w.healthy) == 0 {
		w.sick = nil // nobody is left to compare
	}
	return w
}

// touch gives each of some runtimes something to do.
func (b *bench) touch(ctx context.Context, names []string) error {
	group, touching := errgroup.WithContext(ctx)
	group.SetLimit(creators)
	for _, name := range names {
		b.serial++
		text := fmt.Sprintf("change %d", b.serial)
		group.Go(func() error { return b.setText(touching, name, text) })
	}
	return group.Wait()
}
