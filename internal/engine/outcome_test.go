package engine

import (
	"context"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestOutcomeSaysWhatComesNext(t *testing.T) {
	t.Parallel()
	const minute = time.Minute
	tests := map[string]struct {
		result Result
		phase  Phase
		next   time.Duration // 0: not by itself
		failed int
	}{
		"DoneAfter":       {Result{Outcome: Done, After: minute}, PhaseDelayed, minute, 0},
		"Waiting":         {Result{Outcome: Waiting}, PhaseWaiting, 0, 0},
		"WaitingAfter":    {Result{Outcome: Waiting, After: minute}, PhaseWaiting, minute, 0},
		"Retry":           {Result{Outcome: Retry}, PhaseDelayed, 500 * time.Millisecond, 1},
		"RetryAfter":      {Result{Outcome: Retry, After: minute}, PhaseDelayed, minute, 1},
		"RetryAfterShort": {Result{Outcome: Retry, After: 1}, PhaseDelayed, 500 * time.Millisecond, 1},
		"RetryNegative":   {Result{Outcome: Retry, After: -minute}, PhaseDelayed, 500 * time.Millisecond, 1},
		"Pending":         {Result{Outcome: Pending}, PhaseDelayed, 2 * time.Second, 0},
		"PendingAfter":    {Result{Outcome: Pending, After: minute}, PhaseDelayed, minute, 0},
		"Failed":          {Result{Outcome: Failed}, PhaseFailed, 0, 1},
		"FailedAfter":     {Result{Outcome: Failed, After: minute}, PhaseFailed, minute, 1},
		"NoReason":        {Result{Outcome: Superseded}, PhaseDelayed, 500 * time.Millisecond, 1},
		"Unknown":         {Result{Outcome: 77}, PhaseDelayed, 500 * time.Millisecond, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				j := newJournal()
				tt.result.Message = "so it went"
				e := start(t, j.scripted(map[Key][]Result{euA: {tt.result}}), Options{})
				begin := time.Now()
				e.Add(euA, PriorityChange)
				j.expect(t, "0s eu/a #1")
				last := tt.result.Outcome
				if last >= Superseded {
					last = Retry
				}
				want := ComponentState{
					Component: "a", Phase: tt.phase, Attempts: tt.failed, Last: last, Message: "so it went", LastAt: begin,
				}
				if tt.next != 0 {
					want.Next = begin.Add(tt.next)
				}
				got, _ := component(e, euA)
				if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("state (-want +got):\n%s", diff)
				}
				pass(24 * time.Hour)
				if ran := int(e.Stats().Outcomes[Done]) > count(tt.result.Outcome == Done); ran != (tt.next != 0) {
					t.Errorf("ran again by itself: %t", ran)
				}
				e.Add(euA, PriorityChange)
				expectIdle(t, e, "eu")
			})
		})
	}
}

func TestDoneLeavesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		e := start(t, j.scripted(nil), Options{})
		e.Add(euA, PriorityChange)
		j.expect(t, "0s eu/a #1")
		expectIdle(t, e, "eu")
		if s := e.Stats(); s.Runtimes != 0 || s.Outcomes[Done] != 1 || s.Added != 1 {
			t.Errorf("stats are %+v", s)
		}
	})
}

func TestRetryBacksOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		retry := Result{Outcome: Retry}
		e := start(t, j.scripted(map[Key][]Result{euA: {retry, retry, retry, retry, retry, {}, retry}}),
			Options{Backoff: Backoff{Max: 3 * time.Second}})
		e.Add(euA, PriorityChange)
		pass(time.Minute)
		j.expect(t, "0s eu/a #1", "500ms eu/a #2", "1.5s eu/a #3", "3.5s eu/a #4", "6.5s eu/a #5", "9.5s eu/a #6")
		expectIdle(t, e, "eu")
		e.Add(euA, PriorityChange) // a success begins anew
		pass(time.Second)
		j.expect(t, "1m0s eu/a #1", "1m0.5s eu/a #2")
	})
}

func TestPendingDoesNotBackOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		pending, retry := Result{Outcome: Pending}, Result{Outcome: Retry}
		e := start(t, j.scripted(map[Key][]Result{euA: {pending, pending, pending, retry, pending, retry}}), Options{})
		e.Add(euA, PriorityChange)
		pass(time.Minute)
		j.expect(t, "0s eu/a #1", "2s eu/a #1", "4s eu/a #1", "6s eu/a #1", "6.5s eu/a #2", "8.5s eu/a #2", "9.5s eu/a #3")
	})
}

func TestFailedWaitsForAdd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		e := start(t, j.scripted(map[Key][]Result{euA: {{Outcome: Failed, Message: "no such chart"}}}), Options{})
		e.Add(euA, PriorityChange)
		pass(24 * time.Hour)
		j.expect(t, "0s eu/a #1")
		if s := e.Stats(); s.Failed != 1 || s.Delayed != 0 {
			t.Errorf("stats are %+v", s)
		}
		e.Wake("eu", "fact")
		j.expect(t)
		e.Add(euA, PriorityChange)
		j.expect(t, "24h0m0s eu/a #2")
		expectIdle(t, e, "eu")
	})
}

func TestAddDoesNotWaitForBackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		e := start(t, j.scripted(map[Key][]Result{euA: {{Outcome: Retry, After: time.Hour}}}), Options{})
		e.Add(euA, PriorityChange)
		pass(time.Minute)
		e.Add(euA, PriorityTrigger)
		pass(24 * time.Hour)
		j.expect(t, "0s eu/a #1", "1m0s eu/a #2") // and none after the hour
		expectIdle(t, e, "eu")
	})
}

func TestPanicIsRetry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var events []Event
		runs := 0
		e := start(t, RunnerFunc(func(context.Context, *Run) Result {
			if runs++; runs == 1 {
				panic("nobody thought of this")
			}
			return Result{Message: "fine"}
		}), Options{Workers: 1, Observe: func(ev Event) { events = append(events, ev) }})
		e.Add(euA, PriorityTrigger)
		pass(time.Minute)
		want := []Event{
			{Key: euA, Priority: PriorityTrigger, Attempt: 1, Outcome: Retry, Message: "panic: nobody thought of this"},
			{Key: euA, Priority: PriorityRetry, Attempt: 2, Outcome: Done, Message: "fine"},
		}
		if diff := cmp.Diff(want, events, cmpopts.IgnoreFields(Event{}, "Stack")); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if !strings.Contains(string(events[0].Stack), "TestPanicIsRetry") || events[1].Stack != nil {
			t.Errorf("the stack does not lead to the panic:\n%s", events[0].Stack)
		}
		if s := e.Stats(); s.Panics != 1 || s.Outcomes[Retry] != 1 {
			t.Errorf("stats are %+v", s)
		}
	})
}

func TestObserveSeesTimes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var events []Event
		e := start(t, RunnerFunc(func(context.Context, *Run) Result {
			<-time.After(3 * time.Second)
			return Result{}
		}), Options{Workers: 1, Observe: func(ev Event) { events = append(events, ev) }})
		e.Add(euA, PriorityChange)
		e.Add(euB, PriorityVerify)
		pass(time.Minute)
		want := []Event{
			{Key: euA, Priority: PriorityChange, Attempt: 1, RunTime: 3 * time.Second},
			{Key: euB, Priority: PriorityVerify, Attempt: 1, RunTime: 3 * time.Second, QueueWait: 3 * time.Second},
		}
		if diff := cmp.Diff(want, events); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

func TestMessagesAreClipped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := start(t, RunnerFunc(func(context.Context, *Run) Result {
			return Result{Outcome: Failed, Message: "x" + strings.Repeat("é", 5000)}
		}), Options{})
		e.Add(euA, PriorityChange)
		expectPhase(t, e, euA, PhaseFailed)
		c, _ := component(e, euA)
		if n := len(c.Message); n != maxMessage-1 || !utf8.ValidString(c.Message) {
			t.Errorf("the message has %d bytes, valid: %t", n, utf8.ValidString(c.Message))
		}
	})
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	b := Backoff{}.withDefaults(500*time.Millisecond, 5*time.Minute)
	tests := map[string]struct {
		backoff Backoff
		n       uint32
		random  float64
		want    time.Duration
	}{
		"First":      {b, 1, 0.5, 500 * time.Millisecond},
		"Second":     {b, 2, 0.5, time.Second},
		"Tenth":      {b, 10, 0.5, 256 * time.Second},
		"Max":        {b, 11, 0.5, 5 * time.Minute},
		"ForEver":    {b, math.MaxUint32, 0.5, 5 * time.Minute},
		"Shortest":   {b, 1, 0, 400 * time.Millisecond},
		"Longest":    {b, 1, 0.999999, 600 * time.Millisecond},
		"NoOverflow": {Backoff{First: 1, Max: 1 << 62}, math.MaxUint32, 0, (1 << 62) / 10 * 8},
		"MaxBelow":   {Backoff{First: time.Hour}.withDefaults(1, 2), 5, 0.5, time.Hour},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tt.backoff.after(tt.n, tt.random); got.Round(time.Millisecond) != tt.want.Round(time.Millisecond) {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestJitterSpreads(t *testing.T) {
	t.Parallel()
	e := New(nil, Options{})
	low, high := time.Hour, time.Duration(0)
	for range 1000 {
		d := e.options.Backoff.after(1, e.random())
		low, high = min(low, d), max(high, d)
	}
	if low < 400*time.Millisecond || low > 420*time.Millisecond || high < 580*time.Millisecond || high > 600*time.Millisecond {
		t.Errorf("1000 pauses of 500ms are between %s and %s, want about 400ms to 600ms", low, high)
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	got := []string{
		eu.String(), euA.String(), PriorityVerify.String(), PriorityChange.String(), Priority(99).String(), Done.String(),
		Unreachable.String(), Outcome(99).String(), PhaseDelayed.String(), PhaseFailed.String(),
	}
	want := []string{"eu", "eu/a", "verify", "change", "change", "done", "unreachable", "unknown", "delayed", "failed"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("words (-want +got):\n%s", diff)
	}
}
