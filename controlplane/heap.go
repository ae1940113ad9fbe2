package controlplane

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// The heap of a process that does nothing but run a control plane may always grow to heapFloor before it is collected, but to no more
// than five times what is in use, and beyond that to twice what is in use, which is Go's default. So a small fleet is not collected for
// every few megabytes that a wave of work goes through, and a large one takes no more memory than it would.
const (
	heapFloor  = 384 << 20
	fewestOver = 100 // percent
	mostOver   = 400
)

// TuneGC has the garbage collector wait for longer while the heap is small, until stop is called, which puts back what was set before.
// It is for processes that do nothing but run a control plane, where the environment does not say GOGC; Start leaves the process's
// settings alone. What is set is adjusted after each collection, and costs nothing in between.
func TuneGC() (stop func()) {
	before := debug.SetGCPercent(percentOver(liveHeap()))
	var stopped atomic.Bool
	afterEachGC(func() (again bool) {
		if stopped.Load() {
			return false
		}
		debug.SetGCPercent(percentOver(liveHeap()))
		return true
	})
	return func() {
		if !stopped.Swap(true) {
			debug.SetGCPercent(before)
		}
	}
}

// percentOver is the value for debug.SetGCPercent with so many bytes in use.
func percentOver(live uint64) int {
	if live == 0 {
		return mostOver
	}
	return int(min(max(heapFloor*100/live, 100+fewestOver), 100+mostOver)) - 100
}

// liveHeap is how many bytes the last collection has found to be in use.
func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// sentinel is garbage at once, and its finalizer runs after the next collection. It has a pointer, so that it is not one of the tiny
// objects that share memory with others and may stay.
type sentinel struct{ _ *byte }

// afterEachGC calls f after each collection, from one goroutine of the runtime's own, until it returns false.
func afterEachGC(f func() (again bool)) {
	runtime.SetFinalizer(&sentinel{}, func(s *sentinel) {
		if f() {
			afterEachGC(f)
		}
	})
}
