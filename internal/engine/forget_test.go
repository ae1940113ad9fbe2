package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestForgetDropsEverything(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		gone := Result{Outcome: Unreachable}
		e := start(t, j.scripted(map[Key][]Result{euA: {gone, gone}, euB: {{Outcome: Waiting}}, euC: {{Outcome: Retry}}, usA: {{Outcome: Failed}}}),
			Options{Workers: 1})
		for _, k := range []Key{euB, euC, euA, usA} {
			e.Add(k, PriorityChange)
		}
		e.AddAfter(eu, time.Hour, PriorityVerify)
		synctest.Wait()
		j.lines = nil
		e.Forget("eu")
		e.Forget("eu")
		e.Forget("nowhere")
		expectIdle(t, e, "eu")
		expectPhase(t, e, usA, PhaseFailed)
		pass(24 * time.Hour)
		j.expect(t)
		e.Add(euC, PriorityChange) // as if for the first time
		j.expect(t, "24h0m0s eu/c #1")
		expectIdle(t, e, "eu")
	})
}

func TestForgetBeforeRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := New(nil, Options{})
		for range 100 {
			e.Add(euA, PriorityChange)
			e.AddAfter(euB, time.Hour, PriorityVerify)
			e.Forget("eu")
		}
		expectIdle(t, e, "eu")
		if e.waiting != 0 || e.timers.Len() != 0 || len(e.lanes) != 0 {
			t.Error("something is left")
		}
	})
}

func TestForgetCancelsRuns(t *testing.T) {
	t.Parallel()
	for name, result := range map[string]Result{
		"Done": {After: time.Minute}, "Waiting": {Outcome: Waiting}, "Retry": {Outcome: Retry}, "Unreachable": {Outcome: Unreachable},
		"Superseded": {Outcome: Superseded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var cause, checkpoint error
				e := start(t, RunnerFunc(func(ctx context.Context, r *Run) Result {
					<-ctx.Done()
					cause, checkpoint = context.Cause(ctx), r.Checkpoint()
					r.Await("fact")
					return result
				}), Options{BreakerFailures: 1})
				e.Add(euA, PriorityChange)
				expectPhase(t, e, euA, PhaseRunning)
				e.Add(euA, PriorityChange) // forgotten as well
				e.Forget("eu")
				expectIdle(t, e, "eu")
				if !errors.Is(cause, ErrForgotten) || !errors.Is(checkpoint, ErrPreempted) {
					t.Errorf("the context ended because of %v, and the checkpoint said %v", cause, checkpoint)
				}
			})
		})
	}
}

func TestAddAfterForgetWaitsForTheOldRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j, gate := newJournal(), make(chan struct{})
		e := start(t, j.gated(gate), Options{}) // its runs ignore their context
		e.Add(euA, PriorityChange)
		j.expect(t, "0s eu/a #1")
		e.Forget("eu")
		e.Add(euA, PriorityTrigger)
		pass(time.Minute)
		j.expect(t)
		gate <- struct{}{}
		j.expect(t, "1m0s eu/a #1")
		expectPhase(t, e, euA, PhaseRunning)
		close(gate)
		expectIdle(t, e, "eu")
	})
}

func TestResetBeginsAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		gone, retry := Result{Outcome: Unreachable}, Result{Outcome: Retry, After: time.Hour}
		e := start(t, j.scripted(map[Key][]Result{euA: {gone, gone}, euB: {retry}, euC: {{Outcome: Pending, After: time.Hour}}}), Options{Workers: 1})
		for _, k := range []Key{euB, euC, euA} {
			e.Add(k, PriorityChange)
		}
		j.expect(t, "0s eu/b #1", "0s eu/c #1", "0s eu/a #1", "0s eu/a #1")
		e.Reset("eu")
		e.Reset("nowhere")
		j.expect(t, "0s eu/a #1", "0s eu/b #1") // but not c, which did not fail
		if b := e.Inspect("eu").Breaker; b != (BreakerState{}) {
			t.Errorf("breaker is %+v", b)
		}
		pass(2 * time.Hour)
		j.expect(t, "1h0m0s eu/c #1")
		expectIdle(t, e, "eu")
	})
}

func TestResetShortensThePause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		e := start(t, n, Options{})
		e.Add(euA, PriorityChange)
		pass(10 * time.Second)
		n.expect(t, "0s eu/a #1", "0s eu/a #1", "1s eu #1 probe", "3s eu #1 probe", "7s eu #1 probe")
		e.Reset("eu") // but the new kubeconfig does not work either
		synctest.Wait()
		b := e.Inspect("eu").Breaker
		if want := n.begin.Add(11 * time.Second); !b.Open || !b.NextProbe.Equal(want) {
			t.Errorf("breaker is %+v, want the next probe at %s", b, want)
		}
	})
}

func TestRunsOfBeforeResetDoNotCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j, old := newJournal(), make(chan Result)
		e := start(t, RunnerFunc(func(_ context.Context, r *Run) Result {
			j.note(r)
			return <-old
		}), Options{})
		e.Add(euA, PriorityChange)
		e.Add(euB, PriorityChange)
		synctest.Wait()
		e.Reset("eu")
		old <- Result{Outcome: Unreachable} // with the old kubeconfig
		old <- Result{Outcome: Unreachable}
		synctest.Wait()
		if b := e.Inspect("eu").Breaker; b.Open || b.Failures != 0 {
			t.Errorf("breaker is %+v", b)
		}
		close(old) // both run again
		expectIdle(t, e, "eu")
		if s := e.Stats(); s.Outcomes[Done] != 2 {
			t.Errorf("stats are %+v", s)
		}
	})
}
