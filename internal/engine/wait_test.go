package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// needs notes each run, awaits facts by component, and waits as long as have lacks one of them.
func (j *journal) needs(facts map[string][]string, have map[string]bool) Runner {
	return RunnerFunc(func(_ context.Context, r *Run) Result {
		j.note(r)
		needed := facts[r.Key().Component]
		r.Await(needed...)
		for _, f := range needed {
			if !have[f] {
				return Result{Outcome: Waiting, Message: "needs " + f}
			}
		}
		return Result{}
	})
}

func TestWakeWakesExactlyWhoWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j, have := newJournal(), map[string]bool{}
		e := start(t, j.needs(map[string][]string{"a": {"network", "cluster", "network"}, "b": {"cluster"}, "c": {"dns"}}, have), Options{Workers: 1})
		for _, k := range []Key{euA, euB, euC, usA} {
			e.Add(k, PriorityChange)
		}
		j.expect(t, "0s eu/a #1", "0s us/a #1", "0s eu/b #1", "0s eu/c #1")
		pass(24 * time.Hour)
		j.expect(t) // waiting costs nothing
		a, _ := component(e, euA)
		if diff := cmp.Diff([]string{"cluster", "network"}, a.WaitingFor); diff != "" || a.Attempts != 0 || e.Stats().Waiting != 4 {
			t.Errorf("state is %+v; facts (-want +got):\n%s", a, diff)
		}
		e.Wake("eu", "unknown")
		e.Wake("nowhere", "cluster")
		j.expect(t)
		have["cluster"] = true
		e.Wake("eu", "cluster", "other")
		j.expect(t, "24h0m0s eu/a #1", "24h0m0s eu/b #1") // a once more in vain
		have["network"] = true
		e.Wake("eu", "network")
		j.expect(t, "24h0m0s eu/a #1")
		e.Wake("eu", "network") // nobody waits any more
		j.expect(t)
		if s := e.Stats(); s.Woken != 3 || s.Waiting != 2 {
			t.Errorf("stats are %+v", s)
		}
	})
}

func TestWakeDuringTheRunIsNotLost(t *testing.T) {
	t.Parallel()
	for name, result := range map[string]Result{
		"Waiting": {Outcome: Waiting}, "Done": {}, "Retry": {Outcome: Retry}, "Pending": {Outcome: Pending}, "Failed": {Outcome: Failed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				j, awaited, woken, runs := newJournal(), make(chan struct{}), make(chan struct{}), 0
				e := start(t, RunnerFunc(func(_ context.Context, r *Run) Result {
					j.note(r)
					if runs++; runs > 1 {
						return Result{}
					}
					r.Await("fact")
					close(awaited)
					<-woken // it has looked, and the fact was not there yet
					return result
				}), Options{})
				e.Add(euA, PriorityChange)
				<-awaited
				e.Wake("eu", "fact")
				close(woken)
				synctest.Wait()
				if runs != 2 {
					t.Errorf("%d runs, want 2", runs)
				}
				expectIdle(t, e, "eu")
			})
		})
	}
}

func TestAwaitReplaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		var ended *Run
		e := start(t, RunnerFunc(func(_ context.Context, r *Run) Result {
			j.note(r)
			r.Await("old")
			r.Await("new")
			ended = r
			return Result{Outcome: Waiting}
		}), Options{})
		e.Add(euA, PriorityChange)
		synctest.Wait()
		ended.Await("late") // a run that has ended registers nothing
		e.Wake("eu", "old", "late")
		j.expect(t, "0s eu/a #1")
		e.Wake("eu", "new")
		j.expect(t, "0s eu/a #1")
	})
}

func TestOnlyWaitingWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		e := start(t, RunnerFunc(func(_ context.Context, r *Run) Result {
			j.note(r)
			r.Await("fact")
			return Result{Outcome: Retry, After: time.Hour}
		}), Options{})
		e.Add(euA, PriorityChange)
		synctest.Wait()
		e.Wake("eu", "fact") // the retry will see it
		j.expect(t, "0s eu/a #1")
		expectPhase(t, e, euA, PhaseDelayed)
	})
}
