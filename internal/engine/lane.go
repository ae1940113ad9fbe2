package engine

import (
	"slices"
	"strings"
	"time"
)

// lane is what the engine knows of one runtime. It exists while one of its keys is not idle or its breaker is open.
// Engine.mu guards it.
type lane struct {
	runtime string
	entries []*entry          // those that are not idle, by component
	queue   queue[byTurn]     // the queued ones
	waits   [priorities]int32 // how many they are, by priority
	running int32
	shares  shares
	// proven: the runtime has answered something since something of it is to be done, and nothing has hung since. Before
	// that, its runs begin one by one.
	proven  bool
	breaker breaker

	in         *lanes // where it is listed, or nil
	next, prev *lane
}

// entry is what the engine knows of one key that is not idle. Engine.mu guards it. Times are Engine.now's; 0 is never.
type entry struct {
	lane      *lane
	component string
	run       *Run     // while it runs
	facts     []string // that it waits for: registered by its run, or of PhaseWaiting; sorted
	message   string   // of the last run

	at       time.Duration // of its timer: the earliest of the next two, and of the lane's probe
	own      time.Duration // when the last result wants the next run
	asked    time.Duration // when AddAfter wants it
	queuedAt time.Duration // since when it is queued
	lastAt   time.Duration // when the last run ended
	turn     uint64        // its place among the queued of the same priority

	queuePlace, timerPlace int32
	attempts               uint32 // failures since the last success
	superseded             uint8  // how many runs in a row were
	unreached              uint8  // how many runs in a row were Unreachable
	phase                  Phase
	last                   Outcome
	priority               Priority // of the queued key; of a running one, of the next run if there is one
	ownPriority            Priority
	askedPriority          Priority
	again                  bool // it runs, and is to be run once more
	newer                  bool // and that because another state is desired
}

func (en *entry) key() Key { return Key{Runtime: en.lane.runtime, Component: en.component} }

// due is when the entry's timer goes off.
func (en *entry) due() time.Duration {
	due := earlier(en.own, en.asked)
	if en.component == "" {
		due = earlier(due, en.lane.breaker.probeAt)
	}
	return due
}

// earlier is the earlier of two times, where 0 is never.
func earlier(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}

// find returns the place of a component among the lane's entries, and whether it is there.
func (l *lane) find(component string) (int, bool) {
	return slices.BinarySearchFunc(l.entries, component, func(en *entry, c string) int {
		return strings.Compare(en.component, c)
	})
}

// ready says whether something of the lane may begin.
func (l *lane) ready(width int) bool {
	if l.breaker.open {
		return l.breaker.probeDue && l.itself().phase != PhaseRunning
	}
	return int(l.running) < l.width(width) && l.queue.Len() > 0
}

// width is how many of the lane's runs may be under way.
func (l *lane) width(most int) int {
	if !l.proven {
		return 1
	}
	return most
}

// first is the entry whose turn it is; the lane's breaker is closed and something is queued. It counts as gone.
func (l *lane) first() *entry {
	p := l.shares.next(func(p Priority) bool { return l.waits[p] > 0 })
	en := l.queue.first()
	if en.priority == p {
		return en
	}
	en = nil
	for _, other := range l.queue.entries { // seldom: once for each time that a lower priority is due
		if other.priority == p && (en == nil || other.turn < en.turn) {
			en = other
		}
	}
	return en
}

// itself is the entry of the runtime itself, which exists while the breaker is open; nil if it is idle.
func (l *lane) itself() *entry {
	if len(l.entries) == 0 || l.entries[0].component != "" { // "" sorts first
		return nil
	}
	return l.entries[0]
}

// lanes is a queue of lanes of which something can begin. Engine.mu guards it.
type lanes struct{ first, last *lane }

// push adds a lane at the end.
func (q *lanes) push(l *lane) {
	l.in, l.prev, l.next = q, q.last, nil
	if q.last == nil {
		q.first = l
	} else {
		q.last.next = l
	}
	q.last = l
}

// remove takes a lane of the queue out of it.
func (q *lanes) remove(l *lane) {
	if l.prev == nil {
		q.first = l.next
	} else {
		l.prev.next = l.next
	}
	if l.next == nil {
		q.last = l.prev
	} else {
		l.next.prev = l.prev
	}
	l.in, l.prev, l.next = nil, nil, nil
}
