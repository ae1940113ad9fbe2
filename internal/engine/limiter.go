package engine

import (
	"math"
	"time"
)

const (
	// firstLimit is what the limit of runs in hand is at first.
	firstLimit = 16
	// leastLimit is the lowest that it becomes.
	leastLimit = 4
	// window is how long the limiter looks at a limit at least, and windowSteps how much must happen in that time: what is
	// counted varies by its square root. Where little happens, it is content with fewSteps after longWindow.
	window      = time.Second
	windowSteps = 400
	longWindow  = 5 * time.Second
	fewSteps    = 100
	// price is what a run in hand must bring, as an exponent: with it, a fifth more runs must bring three percent more. (With
	// 0.3, a wave of upgrades left a fifth of the processors' time unused.)
	price = 0.15
)

// limiter finds the knee of throughput: the number of runs in hand from which on more of them bring nothing but longer times
// for each. It climbs: it looks at what a limit brings, tries a neighbour, and goes on in that direction or turns. What a
// limit brings is the steps (answers of runtimes and ends of runs) per second, with a price on each run in hand, so that on a
// plateau it goes down. It learns only from times in which more runs could have begun: an idle fleet teaches nothing.
type limiter struct {
	limit, least, most int

	began time.Duration // of the window
	steps int           // in the window
	loose bool          // there was a moment in the window in which the limit held nobody back
	worth float64       // of the last window, 0 if there is none to compare with
	down  bool          // the direction
}

func newLimiter(most int) limiter {
	return limiter{limit: min(firstLimit, most), least: min(leastLimit, most), most: most, loose: true}
}

// step counts something that came to an end. The limit may be another one afterwards.
func (l *limiter) step(now time.Duration) {
	l.steps++
	took := now - l.began
	if (took < window || l.steps < windowSteps) && (took < longWindow || l.steps < fewSteps) {
		return
	}
	worth := float64(l.steps) / took.Seconds() * math.Pow(float64(l.limit), -price)
	loose := l.loose
	l.began, l.steps, l.loose = now, 0, false
	if loose {
		l.worth = 0
		return
	}
	if worth < l.worth {
		l.down = !l.down
	}
	l.worth = worth
	l.move()
}

// move tries the next limit in the direction, and turns at the ends.
func (l *limiter) move() {
	by := max(1, l.limit/5)
	if l.down {
		by = -by
	}
	l.limit = min(max(l.limit+by, l.least), l.most)
	switch l.limit {
	case l.most:
		l.down = true
	case l.least:
		l.down = false
	}
}

// idle notes that the limit holds nobody back at the moment.
func (l *limiter) idle() { l.loose = true }
