package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// checked is a runner whose runs ask at a checkpoint whenever told to, and obey.
type checked struct {
	*journal
	ask  chan struct{}
	errs []error
}

func newChecked() *checked { return &checked{journal: newJournal(), ask: make(chan struct{})} }

func (c *checked) Run(_ context.Context, r *Run) Result {
	c.note(r)
	<-c.ask
	err := r.Checkpoint()
	c.errs = append(c.errs, err)
	if err != nil {
		if again := r.Checkpoint(); again != err {
			c.errs = append(c.errs, again)
		}
		return Result{Outcome: Superseded}
	}
	return Result{}
}

// checkpoint lets the run that is under way come to its checkpoint, and checks the answer.
func (c *checked) checkpoint(t *testing.T, want error) {
	t.Helper()
	synctest.Wait()
	c.ask <- struct{}{}
	synctest.Wait()
	if len(c.errs) != 1 || !errors.Is(c.errs[0], want) {
		t.Errorf("checkpoint said %v, want %v", c.errs, want)
	}
	c.errs = nil
}

func TestChangeSupersedesThreeTimes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newChecked()
		e := start(t, c, Options{})
		e.Add(euA, PriorityChange)
		for range 3 {
			synctest.Wait()
			e.Add(euA, PriorityChange)
			c.checkpoint(t, ErrSuperseded)
		}
		e.Add(euA, PriorityChange)
		c.checkpoint(t, nil) // the fourth comes to its end, whatever happens
		e.Add(euA, PriorityChange)
		c.checkpoint(t, ErrSuperseded) // and then it counts anew
		c.checkpoint(t, nil)
		c.expect(t, "0s eu/a #1", "0s eu/a #1", "0s eu/a #1", "0s eu/a #1", "0s eu/a #1", "0s eu/a #1")
		expectIdle(t, e, "eu")
	})
}

func TestOnlyChangesSupersede(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newChecked()
		e := start(t, c, Options{})
		e.Add(euA, PriorityChange)
		synctest.Wait()
		e.Add(euA, PriorityTrigger)
		e.Add(euB, PriorityVerify)
		c.checkpoint(t, nil) // one of a and b, and then the others
		c.checkpoint(t, nil)
		c.checkpoint(t, nil)
		expectIdle(t, e, "eu")
	})
}

func TestRenewSupersedesAtAnyPriority(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newChecked()
		e := start(t, c, Options{})
		e.Add(euA, PriorityChange)
		synctest.Wait()
		e.Renew(euA, PriorityTrigger)
		c.checkpoint(t, ErrSuperseded)
		c.checkpoint(t, nil)
		expectIdle(t, e, "eu")
		e.Renew(euA, PriorityTrigger) // nothing runs that it could supersede
		c.checkpoint(t, nil)
		expectIdle(t, e, "eu")
	})
}

func TestPreemptHasNoBound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newChecked()
		e := start(t, c, Options{})
		e.Preempt(euA)
		for range 10 {
			synctest.Wait()
			e.Preempt(euA)
			c.checkpoint(t, ErrPreempted)
		}
		e.Add(euA, PriorityChange)
		c.checkpoint(t, ErrSuperseded) // preemptions do not count
		c.checkpoint(t, nil)           // the run that deletes began after all of them
		if s := e.Stats(); s.Outcomes[Superseded] != 11 || s.Outcomes[Done] != 1 {
			t.Errorf("stats are %+v", s)
		}
		expectIdle(t, e, "eu")
	})
}

func TestPreemptAfterThreeSupersessions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newChecked()
		e := start(t, c, Options{})
		e.Add(euA, PriorityChange)
		for range 3 {
			synctest.Wait()
			e.Add(euA, PriorityChange)
			c.checkpoint(t, ErrSuperseded)
		}
		e.Preempt(euA)
		c.checkpoint(t, ErrPreempted)
		e.Add(euA, PriorityChange)
		c.checkpoint(t, nil) // a preemption does not begin the count anew
		c.checkpoint(t, nil)
		expectIdle(t, e, "eu")
	})
}

func TestSupersededIsNoFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newChecked()
		e := start(t, c, Options{})
		e.Add(euA, PriorityChange)
		synctest.Wait()
		e.Add(euA, PriorityChange)
		c.checkpoint(t, ErrSuperseded)
		pass(time.Second)
		c.expect(t, "0s eu/a #1", "0s eu/a #1") // at once, and the first attempt
		c.checkpoint(t, nil)
	})
}
