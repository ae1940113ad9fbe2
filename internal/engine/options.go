package engine

import (
	"cmp"
	"time"
)

// Options of New. The zero value works; values that make no sense count as zero.
type Options struct {
	// Workers is how many runs may be in hand at once at most; how many are is found out, as many as throughput gains from.
	// Default 128.
	Workers int
	// MaxRuns is how many runs may be under way at all, those that were set aside because their runtime does not answer and
	// probes included. Default 1024, at least Workers.
	MaxRuns int
	// Patience is the longest that a run waits for an answer before it is set aside. It is set aside sooner where answers
	// come sooner. Default 1 s.
	Patience time.Duration
	// Probes is how many probes may be under way at once, beside the runs in hand. Default 64.
	Probes int
	// PerRuntime is how many of them may be of one runtime, so that none holds more than its share. Default 8.
	PerRuntime int
	// Backoff before a retry. Default from 500 ms to 5 min.
	Backoff Backoff
	// BreakerFailures is how many Unreachable results in a row open a runtime's breaker. Default 2.
	BreakerFailures int
	// Probe is the pause before a probe of a runtime that does not answer. Default from 1 s to 60 s.
	Probe Backoff
	// RunTimeout is the deadline of one run's context. Default 10 min.
	RunTimeout time.Duration
	// Drain is how long runs may go on after the context of Engine.Run has ended, before theirs is cancelled. Default 10 s;
	// negative: not at all.
	Drain time.Duration
	// Observe is called after each run, for metrics and logs: from the worker's goroutine and without any lock, before the
	// key can run again. Calls for different keys overlap. Optional.
	Observe func(Event)
}

// Backoff is a pause that doubles with each failure in a row and varies by ±20 %, so that those who failed together do not
// come back together.
type Backoff struct {
	// First pause, before it varies.
	First time.Duration
	// Max is the longest pause, before it varies. At least First.
	Max time.Duration
	// Steep goes from First to Max at once, in place of doubling.
	Steep bool
}

// after is the pause after n failures in a row, n ≥ 1. random is in [0,1).
func (b Backoff) after(n uint32, random float64) time.Duration {
	d := b.First
	if b.Steep && n > 1 {
		d = b.Max
	}
	for ; n > 1 && d < b.Max; n-- { // ends after 62 doublings at the latest
		d = min(2*d, b.Max)
		if d <= 0 { // overflow
			d = b.Max
		}
	}
	return time.Duration(float64(d) * (0.8 + 0.4*random))
}

func (b Backoff) withDefaults(first, longest time.Duration) Backoff {
	b.First, b.Max = positive(b.First, first), positive(b.Max, longest)
	b.Max = max(b.Max, b.First)
	return b
}

func (o Options) withDefaults() Options {
	o.Workers = positive(o.Workers, 128)
	o.MaxRuns = max(positive(o.MaxRuns, 1024), o.Workers)
	o.Patience = positive(o.Patience, time.Second)
	o.Probes = positive(o.Probes, 64)
	o.PerRuntime = positive(o.PerRuntime, 8)
	o.Backoff = o.Backoff.withDefaults(500*time.Millisecond, 5*time.Minute)
	o.BreakerFailures = positive(o.BreakerFailures, 2)
	o.Probe = o.Probe.withDefaults(time.Second, time.Minute)
	o.RunTimeout = positive(o.RunTimeout, 10*time.Minute)
	o.Drain = cmp.Or(o.Drain, 10*time.Second)
	return o
}

// positive is v, or the default if v is not positive.
func positive[T int | time.Duration](v, fallback T) T {
	if v > 0 {
		return v
	}
	return fallback
}
