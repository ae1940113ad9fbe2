package state

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// timer calls functions later, one after the other, from one goroutine.
type timer struct {
	mu   sync.Mutex
	due  dueHeap
	wake chan struct{}
}

type due struct {
	at time.Time
	do func()
}

func newTimer() *timer { return &timer{wake: make(chan struct{}, 1)} }

// after has a function called when some time has passed. It may take the locks of clusters.
func (t *timer) after(d time.Duration, do func()) {
	t.mu.Lock()
	heap.Push(&t.due, due{at: time.Now().Add(d), do: do})
	first := t.due[0].at
	t.mu.Unlock()
	if time.Until(first) <= d {
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
}

// pending is how much is still to happen.
func (t *timer) pending() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.due)
}

// idle is how long the timer waits when nothing is due.
const idle = time.Hour

// next takes what is due, or says how long to wait.
func (t *timer) next() (func(), time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.due) == 0 {
		return nil, idle
	}
	if wait := time.Until(t.due[0].at); wait > 0 {
		return nil, wait
	}
	d, _ := heap.Pop(&t.due).(due)
	return d.do, 0
}

// run calls what is due until the context ends.
func (t *timer) run(ctx context.Context) {
	clock := time.NewTimer(idle)
	defer clock.Stop()
	for ctx.Err() == nil {
		do, wait := t.next()
		if do != nil {
			do()
			continue
		}
		clock.Reset(wait)
		select {
		case <-ctx.Done():
		case <-clock.C:
		case <-t.wake:
		}
	}
}

// dueHeap has the earliest first.
type dueHeap []due

// Len is part of heap.Interface.
func (h dueHeap) Len() int { return len(h) }

// Less is part of heap.Interface.
func (h dueHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }

// Swap is part of heap.Interface.
func (h dueHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push is part of heap.Interface.
func (h *dueHeap) Push(x any) {
	if d, ok := x.(due); ok {
		*h = append(*h, d)
	}
}

// Pop is part of heap.Interface.
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	d := (*h)[last]
	(*h)[last] = due{}
	*h = (*h)[:last]
	return d
}
