package engine

import (
	"container/heap"
	"slices"
)

// order says what a queue is sorted by, and where an entry notes its place in that queue: index+1, 0 if it is not in.
type order interface {
	before(a, b *entry) bool
	place(en *entry) *int32
}

// byTurn is the order within a lane: higher priority first, then who queued first.
type byTurn struct{}

func (byTurn) before(a, b *entry) bool {
	if a.priority != b.priority {
		return a.priority > b.priority
	}
	return a.turn < b.turn
}

func (byTurn) place(en *entry) *int32 { return &en.queuePlace }

// byTime is the order of the engine's timers.
type byTime struct{}

func (byTime) before(a, b *entry) bool { return a.at < b.at }
func (byTime) place(en *entry) *int32  { return &en.timerPlace }

// queue is a heap of entries that know their place, so that they can move and leave. The zero value is empty.
type queue[O order] struct{ entries []*entry }

// first is the next entry, or nil.
func (q *queue[O]) first() *entry {
	if len(q.entries) == 0 {
		return nil
	}
	return q.entries[0]
}

// put adds the entry, or moves it to where it belongs now.
func (q *queue[O]) put(en *entry) {
	var o O
	if place := *o.place(en); place > 0 {
		heap.Fix(q, int(place-1))
		return
	}
	heap.Push(q, en)
}

// remove takes the entry out, if it is in.
func (q *queue[O]) remove(en *entry) {
	var o O
	if place := *o.place(en); place > 0 {
		heap.Remove(q, int(place-1))
	}
}

// Len implements heap.Interface.
func (q *queue[O]) Len() int { return len(q.entries) }

// Less implements heap.Interface.
func (q *queue[O]) Less(i, j int) bool {
	var o O
	return o.before(q.entries[i], q.entries[j])
}

// Swap implements heap.Interface.
func (q *queue[O]) Swap(i, j int) {
	var o O
	q.entries[i], q.entries[j] = q.entries[j], q.entries[i]
	*o.place(q.entries[i]), *o.place(q.entries[j]) = int32(i+1), int32(j+1)
}

// Push implements heap.Interface.
func (q *queue[O]) Push(x any) {
	var o O
	en := x.(*entry)
	q.entries = append(q.entries, en)
	*o.place(en) = int32(len(q.entries))
}

// Pop implements heap.Interface.
func (q *queue[O]) Pop() any {
	var o O
	last := len(q.entries) - 1
	en := q.entries[last]
	q.entries[last] = nil
	q.entries = shrunk(q.entries[:last])
	*o.place(en) = 0
	return en
}

// shrunk gives memory back after a peak: a slice that is mostly empty moves to a smaller array.
func shrunk(entries []*entry) []*entry {
	const small = 4
	if cap(entries) <= small || 4*len(entries) > cap(entries) {
		return entries
	}
	return slices.Clone(entries)
}
