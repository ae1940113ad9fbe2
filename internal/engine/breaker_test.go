package engine

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// network is a runner for a runtime that answers or does not.
type network struct {
	*journal
	down atomic.Bool
}

func newNetwork() *network {
	n := &network{journal: newJournal()}
	n.down.Store(true)
	return n
}

func (n *network) Run(_ context.Context, r *Run) Result {
	n.note(r)
	if n.down.Load() {
		return Result{Outcome: Unreachable, Message: "connection refused"}
	}
	return Result{}
}

func TestBreakerOpensAndProbes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		e := start(t, n, Options{Probe: Backoff{Max: 5 * time.Second}})
		begin := time.Now()
		e.Add(euA, PriorityChange)
		n.expect(t, "0s eu/a #1", "0s eu/a #1")
		want := BreakerState{Open: true, Failures: 2, Since: begin, NextProbe: begin.Add(time.Second)}
		if diff := cmp.Diff(want, e.Inspect("eu").Breaker); diff != "" {
			t.Errorf("breaker (-want +got):\n%s", diff)
		}
		e.Add(euB, PriorityChange)
		n.expect(t)
		expectPhase(t, e, euB, PhaseQueued)
		expectPhase(t, e, eu, PhaseDelayed)
		pass(20 * time.Second)
		n.expect(t, "1s eu #1 probe", "3s eu #1 probe", "7s eu #1 probe", "12s eu #1 probe", "17s eu #1 probe")
		if s := e.Stats(); s.OpenBreakers != 1 || s.Opened != 1 || s.Queued[PriorityChange] != 2 {
			t.Errorf("stats are %+v", s)
		}
		n.down.Store(false)
		pass(2 * time.Second)
		n.mu.Lock()
		if len(n.lines) != 3 || n.lines[0] != "22s eu #1 probe" {
			t.Errorf("runs: %q, want the probe, a and b", n.lines)
		}
		n.mu.Unlock()
		expectIdle(t, e, "eu")
	})
}

// Results of runs that did not ask the runtime neither close the breaker nor reset the count.
func TestOfflineResultsDoNotCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		e := start(t, j.scripted(map[Key][]Result{
			euA: {{Outcome: Unreachable}, {Outcome: Unreachable}},
			euB: {{Outcome: Waiting, Offline: true}, {Outcome: Failed, Offline: true}},
			eu:  {{Outcome: Done, Offline: true}},
		}), Options{PerRuntime: 1})
		e.Add(euA, PriorityTrigger)
		e.Add(euB, PriorityTrigger)
		j.expect(t, "0s eu/a #1", "0s eu/b #1", "0s eu/a #1")
		if b := e.Inspect("eu").Breaker; !b.Open || b.Failures != 2 {
			t.Errorf("breaker %+v", b)
		}
		pass(2 * time.Second)
		j.expect(t, "1s eu #1 probe", "1s eu/a #1")
		if e.Inspect("eu").Breaker.Open {
			t.Error("the probe does not count")
		}
	})
}

func TestOthersResultsResetTheCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		gone := Result{Outcome: Unreachable}
		e := start(t, j.scripted(map[Key][]Result{euA: {gone}, euB: {{Outcome: Failed}}, euC: {gone}}), Options{Workers: 1})
		e.Add(euA, PriorityChange)
		e.Add(euB, PriorityChange)
		e.Add(euC, PriorityChange)
		j.expect(t, "0s eu/a #1", "0s eu/b #1", "0s eu/c #1", "0s eu/a #1", "0s eu/c #1")
		if s := e.Stats(); s.Opened != 0 || s.Outcomes[Unreachable] != 2 {
			t.Errorf("stats are %+v", s)
		}
	})
}

func TestBreakerFailuresOption(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		e := start(t, n, Options{BreakerFailures: 4})
		e.Add(euA, PriorityChange)
		n.expect(t, "0s eu/a #1", "0s eu/a #1", "0s eu/a #1", "0s eu/a #1")
		if b := e.Inspect("eu").Breaker; !b.Open || b.Failures != 4 {
			t.Errorf("breaker is %+v", b)
		}
	})
}

// A key that finds nobody while others of its lane do must not spin.
func TestLonelyUnreachableBacksOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		var e *Engine
		e = start(t, RunnerFunc(func(_ context.Context, r *Run) Result {
			if r.Key() == euB {
				return Result{}
			}
			runs++
			e.Add(euB, PriorityChange) // which succeeds before a is run again
			return Result{Outcome: Unreachable}
		}), Options{Workers: 1})
		e.Add(euA, PriorityVerify)
		pass(10 * time.Second)
		if s := e.Stats(); runs != 6 || s.Opened != 0 { // at 0, 0, 0.5, 1.5, 3.5 and 7.5 s
			t.Errorf("%d runs, want 6; stats are %+v", runs, s)
		}
	})
}

// What hangs since before says nothing about now.
func TestOldResultsDoNotCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var up atomic.Bool
		old := map[Key]chan Result{euB: make(chan Result), euC: make(chan Result)}
		j := newJournal()
		e := start(t, RunnerFunc(func(_ context.Context, r *Run) Result {
			switch {
			case old[r.Key()] != nil:
				return <-old[r.Key()]
			case up.Load():
				return Result{}
			}
			j.note(r)
			return Result{Outcome: Unreachable}
		}), Options{BreakerFailures: 1})
		e.Add(euB, PriorityChange)
		e.Add(euC, PriorityChange)
		e.Add(euA, PriorityChange)
		j.expect(t, "0s eu/a #1")
		old[euB] <- Result{} // it began before the breaker opened: closes nothing
		synctest.Wait()
		if !e.Inspect("eu").Breaker.Open {
			t.Error("a run that began before closed the breaker")
		}
		up.Store(true)
		pass(time.Second)
		old[euC] <- Result{Outcome: Unreachable} // it began before the breaker closed: counts for nothing
		synctest.Wait()
		if b := e.Inspect("eu").Breaker; b != (BreakerState{}) {
			t.Errorf("breaker is %+v", b)
		}
		old[euC] <- Result{}
		expectIdle(t, e, "eu")
	})
}

// The pauses go on growing while a runtime answers now and then: until a run gets through that began when the breaker had been
// closed for a while.
func TestPausesGrowUntilTheRuntimeAnswersForGood(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		var reachable atomic.Bool
		e := start(t, RunnerFunc(func(_ context.Context, r *Run) Result {
			if r.Probing() {
				j.note(r)
				return Result{}
			}
			if reachable.Load() {
				return Result{}
			}
			return Result{Outcome: Unreachable}
		}), Options{})
		for i := range 4 {
			e.Add(Key{Runtime: "eu", Component: fmt.Sprint(i)}, PriorityChange)
		}
		e.AddAfter(Key{Runtime: "eu", Component: "later"}, time.Hour, PriorityVerify) // so that the lane stays
		pass(10 * time.Second)
		j.expect(t, "1s eu #1 probe", "3s eu #1 probe", "7s eu #1 probe")
		reachable.Store(true)
		pass(5 * time.Second)
		j.expect(t, "15s eu #1 probe")
		reachable.Store(false)
		e.Add(euA, PriorityChange)
		pass(time.Minute)
		j.expect(t, "31s eu #1 probe", "1m3.5s eu #1 probe")
		reachable.Store(true)
		pass(2 * time.Minute)
		j.expect(t, "2m4.5s eu #1 probe")
		e.Add(euA, PriorityChange)
		synctest.Wait()
		reachable.Store(false)
		e.Add(euA, PriorityChange)
		pass(time.Minute)
		j.expect(t, "3m16s eu #1 probe", "3m18.5s eu #1 probe", "3m23.5s eu #1 probe", "3m33.5s eu #1 probe", "3m53.5s eu #1 probe")
	})
}

// A runtime that answers every other time is shaky from when it failed again soon, until it answers for good.
func TestShaky(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var fails atomic.Bool
		var said []string
		begin := time.Now()
		e := start(t, RunnerFunc(func(_ context.Context, r *Run) Result {
			said = append(said, fmt.Sprint(time.Since(begin), " ", r.Shaky()))
			if fails.Load() && !r.Probing() {
				return Result{Outcome: Unreachable}
			}
			return Result{After: 100 * time.Second}
		}), Options{BreakerFailures: 1, Probe: Backoff{First: 2 * time.Second, Max: 75 * time.Second, Steep: true}})
		fails.Store(true)
		e.Add(euA, PriorityChange)
		pass(80 * time.Second)
		fails.Store(false)
		pass(3 * time.Minute)
		e.Add(euA, PriorityChange)
		synctest.Wait()
		want := []string{"0s false", "2s false", "2s false", "1m17s true", "1m17s true", "2m32s true", "2m32s true", "4m12s false", "4m12s false", "4m20s false"}
		if diff := cmp.Diff(want, said); diff != "" {
			t.Errorf("runs (-want +got):\n%s", diff)
		}
	})
}

// The wait of before is over when the probe begins, as with any run.
func TestProbeOfARuntimeThatWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j, probe := newJournal(), make(chan struct{})
		e := start(t, RunnerFunc(func(_ context.Context, r *Run) Result {
			j.note(r)
			switch {
			case r.Probing():
				<-probe
				return Result{}
			case r.Key() == eu:
				r.Await("fact")
				return Result{Outcome: Waiting}
			}
			return Result{Outcome: Unreachable}
		}), Options{Workers: 1})
		e.Add(eu, PriorityVerify)
		j.expect(t, "0s eu #1")
		e.Add(euA, PriorityVerify)
		pass(time.Second)
		j.expect(t, "0s eu/a #1", "0s eu/a #1", "1s eu #1 probe")
		e.Wake("eu", "fact") // the probe has not looked yet
		if s := e.Stats(); s.Woken != 0 || s.Waiting != 0 {
			t.Errorf("stats are %+v", s)
		}
		close(probe)
	})
}

func TestProbeIsTheRuntimesOwnRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		gone := Result{Outcome: Unreachable}
		e := start(t, j.scripted(map[Key][]Result{eu: {gone, gone, {After: time.Hour}}}), Options{})
		e.Add(eu, PriorityVerify)
		j.expect(t, "0s eu #1", "0s eu #1")
		pass(90 * time.Minute) // the probe succeeds and asks for the next verification
		j.expect(t, "1s eu #1 probe", "1h0m1s eu #1")
		expectIdle(t, e, "eu")
	})
}

func TestProbeWaitsForTheRuntimesOwnRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j, hang := newJournal(), make(chan Result)
		e := start(t, RunnerFunc(func(_ context.Context, r *Run) Result {
			j.note(r)
			switch {
			case r.Key() == euA:
				return Result{Outcome: Unreachable}
			case !r.Probing():
				return <-hang
			}
			return Result{Outcome: Failed}
		}), Options{BreakerFailures: 1})
		e.Add(eu, PriorityVerify)
		j.expect(t, "0s eu #1")
		e.Add(euA, PriorityChange)
		pass(time.Minute)
		j.expect(t, "0s eu/a #1") // no second run of the key
		hang <- Result{Outcome: Unreachable}
		synctest.Wait()
		j.mu.Lock()
		defer j.mu.Unlock()
		if len(j.lines) == 0 || j.lines[0] != "1m0s eu #1 probe" {
			t.Errorf("runs: %q, want the probe first", j.lines)
		}
	})
}

func TestOtherRuntimesAreNotHeldUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		gone := Result{Outcome: Unreachable}
		e := start(t, j.scripted(map[Key][]Result{euA: {gone, gone}}), Options{Workers: 1})
		e.Add(euA, PriorityChange)
		j.expect(t, "0s eu/a #1", "0s eu/a #1")
		e.Add(usA, PriorityVerify)
		j.expect(t, "0s us/a #1")
	})
}
