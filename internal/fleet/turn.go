package fleet

import (
	"hash/fnv"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Turns say when runtimes are verified: each has a place of its own in a period that is counted from the beginning of time, so that a
// fleet's verifications spread evenly, and keep their times when a replica starts again or another takes over. All methods are pure
// but for the clock and some jitter, and safe for concurrent use.
type Turns struct {
	// Interval is the longest time between two verifications of a runtime, at least some microseconds.
	Interval time.Duration
}

// period between two turns of a runtime is shorter than the interval, to leave room for what AfterRun adds.
func (t Turns) period() time.Duration { return max(t.Interval*9/10, 1) }

// Next is the time from now until a runtime's turn: less than the interval.
func (t Turns) Next(runtime types.NamespacedName) time.Duration { return t.next(runtime, time.Now()) }

// AfterRun is the time from a verification that was made now until the next one, at most the interval. A turn that comes right after,
// because clocks differ or somebody asked in between, is left out. It is a little late for the turn itself: who asks for both Next and
// AfterRun gets one verification at a turn, not two.
func (t Turns) AfterRun(runtime types.NamespacedName) time.Duration {
	soon := t.period() / 20
	return soon + t.next(runtime, time.Now().Add(soon)) + rand.N(t.period()/50+1)
}

func (t Turns) next(runtime types.NamespacedName, now time.Time) time.Duration {
	place := time.Duration(fraction(runtime) * float64(t.period()))
	since := time.Duration(now.UnixNano() % int64(t.period()))
	if place > since {
		return place - since
	}
	return place - since + t.period()
}

// golden is 2^64 divided by the golden ratio: names that differ in their last character only have hashes that differ by little, and
// its multiples spread those over all of the range, more evenly than chance would.
const golden = 0x9E3779B97F4A7C15

// fraction between 0 and 1 of a name.
func fraction(runtime types.NamespacedName) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(runtime.String())) // it cannot fail
	return float64(h.Sum64()*golden>>11) / (1 << 53)
}
