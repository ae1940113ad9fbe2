package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// gated notes each run and lets it end when the gate is opened.
func (j *journal) gated(gate <-chan struct{}) Runner {
	return RunnerFunc(func(_ context.Context, r *Run) Result {
		j.note(r)
		<-gate
		return Result{}
	})
}

func TestTriggersCoalesce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j, gate := newJournal(), make(chan struct{})
		e := start(t, j.gated(gate), Options{})
		e.Add(euA, PriorityChange)
		j.expect(t, "0s eu/a #1")
		for range 5 {
			e.Add(euA, PriorityTrigger) // while it runs: once more
		}
		j.expect(t)
		gate <- struct{}{}
		j.expect(t, "0s eu/a #1")
		gate <- struct{}{}
		j.expect(t)
		expectIdle(t, e, "eu")
		if s := e.Stats(); s.Added != 6 || s.Coalesced != 4 || s.Outcomes[Done] != 2 {
			t.Errorf("stats are %+v", s)
		}
	})
}

func TestHigherPriorityGoesFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j, gate := newJournal(), make(chan struct{})
		e := start(t, j.gated(gate), Options{Workers: 1})
		e.Add(eu, PriorityChange)
		j.expect(t, "0s eu #1")
		e.Add(euA, PriorityVerify)
		e.Add(euB, PriorityVerify)
		e.Add(euC, PriorityTrigger)
		e.Add(euB, PriorityTrigger) // moves up, to before c: it is queued for longer
		if got := e.Stats().Queued; got != [priorities]int{PriorityVerify: 1, PriorityTrigger: 2} {
			t.Errorf("queued by priority: %v", got)
		}
		close(gate)
		j.expect(t, "0s eu/b #1", "0s eu/c #1", "0s eu/a #1")
	})
}

func TestLanesTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j, gate := newJournal(), make(chan struct{})
		e := start(t, j.gated(gate), Options{Workers: 1})
		e.Add(eu, PriorityChange)
		j.expect(t, "0s eu #1")
		for _, k := range []Key{euA, euB, euC, usA, usB} {
			e.Add(k, PriorityTrigger)
		}
		e.Add(Key{Runtime: "ap", Component: "x"}, PriorityVerify)
		e.Add(Key{Runtime: "ap", Component: "y"}, PriorityTrigger) // the lane has the priority of the highest in it
		e.Add(Key{Runtime: "ca", Component: "z"}, PriorityChange)
		close(gate)
		j.expect(t, "0s ca/z #1", "0s eu/a #1", "0s us/a #1", "0s ap/y #1", "0s eu/b #1", "0s us/b #1", "0s eu/c #1", "0s ap/x #1")
	})
}

func TestLaneHasItsWidth(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j, gate := newJournal(), make(chan struct{})
		e := start(t, j.gated(gate), Options{Workers: 5, PerRuntime: 2})
		for i := range 10 {
			e.Add(Key{Runtime: "eu", Component: fmt.Sprint(i)}, PriorityChange)
		}
		synctest.Wait()
		if s := e.Stats(); s.Running != 2 || s.Queued[PriorityChange] != 8 {
			t.Errorf("stats are %+v", s)
		}
		e.Add(usA, PriorityVerify)
		expectPhase(t, e, usA, PhaseRunning) // others get their share at once
		gate <- struct{}{}
		synctest.Wait()
		close(gate)
		expectIdle(t, e, "eu")
	})
}

func TestWorkersAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j, gate := newJournal(), make(chan struct{})
		e := start(t, j.gated(gate), Options{Workers: 3})
		for i := range 10 {
			e.Add(Key{Runtime: fmt.Sprint(i)}, PriorityChange)
		}
		synctest.Wait()
		if s := e.Stats(); s.Running != 3 || s.Runtimes != 10 {
			t.Errorf("stats are %+v", s)
		}
		close(gate)
		synctest.Wait()
		if s := e.Stats(); s.Runtimes != 0 || s.Outcomes[Done] != 10 {
			t.Errorf("stats are %+v", s)
		}
	})
}

func TestAddAfter(t *testing.T) {
	t.Parallel()
	const minute = time.Minute
	tests := map[string]struct {
		do     func(e *Engine)
		script []Result
		want   []string
	}{
		"Once":         {func(e *Engine) { e.AddAfter(euA, minute, PriorityVerify) }, nil, []string{"1m0s eu/a #1"}},
		"NotPositive":  {func(e *Engine) { e.AddAfter(euA, -minute, PriorityVerify) }, nil, []string{"0s eu/a #1"}},
		"EarlierStays": {func(e *Engine) { e.AddAfter(euA, minute, 0); e.AddAfter(euA, time.Hour, 0) }, nil, []string{"1m0s eu/a #1"}},
		"EarlierWins":  {func(e *Engine) { e.AddAfter(euA, time.Hour, 0); e.AddAfter(euA, minute, 0) }, nil, []string{"1m0s eu/a #1"}},
		"AddIsBesides": {func(e *Engine) { e.AddAfter(euA, minute, 0); e.Add(euA, 0) }, nil, []string{"0s eu/a #1", "1m0s eu/a #1"}},
		"RetryIsBesides": {
			func(e *Engine) { e.AddAfter(euA, minute, 0); e.Add(euA, 0) }, []Result{{Outcome: Retry}},
			[]string{"0s eu/a #1", "500ms eu/a #2", "1m0s eu/a #1"},
		},
		"ComesBeforeRetry": {
			func(e *Engine) { e.AddAfter(euA, minute, 0); e.Add(euA, 0) }, []Result{{Outcome: Retry, After: time.Hour}},
			[]string{"0s eu/a #1", "1m0s eu/a #2"},
		},
		"OfWaiting": {
			func(e *Engine) { e.AddAfter(euA, minute, 0); e.Add(euA, 0) }, []Result{{Outcome: Waiting}},
			[]string{"0s eu/a #1", "1m0s eu/a #1"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				j := newJournal()
				e := start(t, j.scripted(map[Key][]Result{euA: tt.script}), Options{})
				tt.do(e)
				pass(24 * time.Hour)
				j.expect(t, tt.want...)
				expectIdle(t, e, "eu")
			})
		})
	}
}

func TestAddAfterDuringTheRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j, gate := newJournal(), make(chan struct{})
		e := start(t, j.gated(gate), Options{})
		e.Add(euA, PriorityChange)
		e.AddAfter(euA, time.Minute, PriorityTrigger)
		pass(time.Hour)
		j.expect(t, "0s eu/a #1") // due, but it runs
		close(gate)
		j.expect(t, "1h0m0s eu/a #1")
		expectIdle(t, e, "eu")
	})
}

func TestRunTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var cause error
		e := start(t, RunnerFunc(func(ctx context.Context, _ *Run) Result {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return Result{Outcome: Failed}
		}), Options{RunTimeout: time.Minute})
		e.Add(euA, PriorityChange)
		pass(time.Minute)
		expectPhase(t, e, euA, PhaseFailed)
		if !errors.Is(cause, ErrTimeout) {
			t.Errorf("the context ended because of %v, want %v", cause, ErrTimeout)
		}
	})
}

func TestDrain(t *testing.T) {
	t.Parallel()
	type key struct{}
	tests := map[string]struct {
		drain, takes, ends time.Duration
		cause              error
	}{
		"RunEnds":      {10 * time.Second, 3 * time.Second, 3 * time.Second, nil},
		"RunIsStopped": {10 * time.Second, time.Minute, 10 * time.Second, ErrStopped},
		"NoPatience":   {-1, time.Minute, 0, ErrStopped},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var cause error
				outer, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
				e := New(RunnerFunc(func(ctx context.Context, _ *Run) Result {
					cancel() // the engine's, not this run's
					if ctx.Value(key{}) != "value" {
						t.Error("the context has lost its values")
					}
					select {
					case <-ctx.Done():
						cause = context.Cause(ctx)
					case <-time.After(tt.takes):
					}
					return Result{}
				}), Options{Workers: 1, Drain: tt.drain})
				e.Add(euA, PriorityChange)
				e.Add(euB, PriorityChange)
				begin := time.Now()
				if err := e.Run(outer); err != nil {
					t.Errorf("running: %v", err)
				}
				if took := time.Since(begin); took != tt.ends || !errors.Is(cause, tt.cause) {
					t.Errorf("Run ended after %s and the run because of %v, want %s and %v", took, cause, tt.ends, tt.cause)
				}
				if s := e.Stats(); s.Outcomes[Done] != 1 || s.Queued[PriorityChange] != 1 {
					t.Errorf("stats are %+v", s)
				}
			})
		})
	}
}

func TestRunGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		e := New(j.scripted(nil), Options{})
		e.Add(euA, PriorityChange)
		e.AddAfter(usA, time.Minute, PriorityVerify)
		first, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- e.Run(first) }()
		j.expect(t, "0s eu/a #1")
		if err := e.Run(first); !errors.Is(err, ErrRunning) {
			t.Errorf("running twice: %v, want %v", err, ErrRunning)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("running: %v", err)
		}
		e.Add(euB, PriorityChange)
		pass(time.Hour)
		j.expect(t)
		second, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { ended <- e.Run(second) }()
		j.expect(t, "1h0m0s eu/b #1", "1h0m0s us/a #1")
		cancel()
		<-ended
	})
}

// TestAwayIsNotTheRuntime: a run that waits for somebody else is set aside, and says nothing about its runtime; one that waits for the
// runtime, too, does.
func TestAwayIsNotTheRuntime(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		ask  bool
		want []string
	}{
		"Away":       {false, []string{"5s eu/b #1"}},
		"AwayAndAsk": {true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				j := newJournal()
				e := start(t, RunnerFunc(func(_ context.Context, r *Run) Result {
					j.note(r)
					if r.Key() == euA {
						defer r.Away()()
						if tc.ask {
							defer r.Ask()(false)
						}
						<-time.After(time.Minute)
					}
					return Result{}
				}), Options{})
				e.Add(euA, PriorityChange)
				pass(5 * time.Second)
				j.expect(t, "0s eu/a #1")
				if s := e.Stats(); s.Aside != 1 || s.InHand != 0 {
					t.Errorf("%d are set aside, %d in hand", s.Aside, s.InHand)
				}
				e.Add(euB, PriorityChange)
				pass(time.Second)
				j.expect(t, tc.want...)
				pass(time.Hour)
			})
		})
	}
}

// TestGiveWay: whoever waits for the control plane takes no place from others, as many of them as may be in hand; while all but a few
// are held back, it keeps its place.
func TestGiveWay(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		throttle bool
		begun    int // at first
		inHand   int
		later    int // once the first are back
	}{
		"Room":      {false, 2 * leastLimit, leastLimit, 2 * leastLimit},
		"Throttled": {true, leastLimit, leastLimit, leastLimit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begun := 0
				e := New(RunnerFunc(func(_ context.Context, r *Run) Result {
					begun++
					back := r.GiveWay()
					again := r.GiveWay() // which it has
					<-time.After(time.Second)
					again()
					back()
					back()
					<-time.After(time.Minute)
					return Result{}
				}), Options{Workers: leastLimit})
				for i := range 20 {
					e.Add(Key{Runtime: fmt.Sprint("r-", i), Component: "a"}, PriorityTrigger)
				}
				e.Throttle(tc.throttle)
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error)
				go func() { ended <- e.Run(ctx) }()
				pass(time.Millisecond)
				if s := e.Stats(); begun != tc.begun || s.InHand != tc.inHand || s.Aside != 0 {
					t.Errorf("%d have begun, %d in hand, %d set aside; want %d, %d, 0", begun, s.InHand, s.Aside, tc.begun, tc.inHand)
				}
				pass(2 * time.Second)
				if s := e.Stats(); s.InHand != tc.later || begun != tc.later {
					t.Errorf("once they are back, %d in hand of %d; want %d", s.InHand, begun, tc.later)
				}
				pass(time.Hour)
				if s := e.Stats(); s.InHand != 0 || begun != 20 || e.gaveWay != 0 {
					t.Errorf("at the end %d in hand, %d gave way, %d have begun", s.InHand, e.gaveWay, begun)
				}
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestInWave: a run had better be cheap than quick where many runtimes wait, nobody waits for this one, nothing else is to be done there, and
// answers come soon.
func TestInWave(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		waiting  int
		priority Priority
		another  bool          // something else is to be done at the runtime
		answers  time.Duration // that runtimes take
		want     bool
	}{
		"Wave":         {wave, PriorityTrigger, false, time.Millisecond, true},
		"NoWave":       {wave - 1, PriorityTrigger, false, time.Millisecond, false},
		"SomebodyWait": {wave, PriorityChange, false, time.Millisecond, false},
		"NotAlone":     {wave, PriorityTrigger, true, time.Millisecond, false},
		"FarAway":      {wave + 8, PriorityTrigger, false, 50 * time.Millisecond, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var got bool
				done := make(chan struct{})
				e := start(t, RunnerFunc(func(_ context.Context, r *Run) Result {
					if r.Key() != euA {
						<-done
						return Result{}
					}
					defer close(done)
					for range nearestOf {
						answered := r.Ask()
						<-time.After(tc.answers)
						answered(true)
						before := patienceOf(r.engine)
						for range 7 { // what was sent ahead is answered at once, however far away the runtime is
							r.AskAhead()(true)
						}
						if now := patienceOf(r.engine); now != before {
							t.Errorf("patience: %s, then %s", before, now)
						}
					}
					got = r.InWave()
					return Result{}
				}), Options{Workers: 1, Patience: time.Minute})
				e.Add(euA, tc.priority)
				pass(0)
				if tc.another {
					e.Add(euB, tc.priority)
				}
				for i := range tc.waiting {
					e.Add(Key{Runtime: fmt.Sprint("other-", i), Component: "a"}, PriorityVerify)
				}
				if in := e.InWave(); in != (tc.waiting >= wave) {
					t.Errorf("the engine is in a wave: %v", in)
				}
				pass(time.Hour)
				<-done
				if got != tc.want {
					t.Errorf("the run is in a wave: %v, want %v", got, tc.want)
				}
			})
		})
	}
}

func patienceOf(e *Engine) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.patience()
}
