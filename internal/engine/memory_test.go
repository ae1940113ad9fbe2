package engine

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"
)

// liveHeap is what lives on the heap at the moment.
func liveHeap() int64 {
	var s runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first one only found out
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

// fleetKeys are the keys of n runtimes with ten components each, the runtime itself included.
func fleetKeys(n int) []Key {
	keys := make([]Key, 0, 10*n)
	for i := range n {
		name := fmt.Sprintf("runtime-%05d", i)
		keys = append(keys, Key{Runtime: name})
		for c := range 9 {
			keys = append(keys, Key{Runtime: name, Component: "component-" + string(rune('a'+c))})
		}
	}
	return keys
}

// Ceilings, in bytes per runtime. Raise one only with the reason in the same change.
const (
	maxDone     = 16  // measured 2026-11-21: 4 to 6
	maxVerified = 450 // measured 2026-11-21: 438
)

// Not parallel: other tests would be measured as well.
func TestMemoryPerRuntime(t *testing.T) {
	const runtimes = 10_000
	for _, tt := range []struct {
		name  string
		after time.Duration // of the runtime's own key, which verifies
		most  int64
	}{
		{"Done", 0, maxDone},
		{"Verified", time.Hour, maxVerified},
	} {
		t.Run(tt.name, func(t *testing.T) {
			keys := fleetKeys(runtimes)
			e := New(RunnerFunc(func(_ context.Context, r *Run) Result {
				if r.Key().Component == "" {
					return Result{After: tt.after, Message: "verified"}
				}
				return Result{Message: "installed"}
			}), Options{})
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			before := liveHeap()
			ended := make(chan error)
			go func() { ended <- e.Run(ctx) }()
			runAll(t, e, keys)
			perRuntime := (liveHeap() - before) / runtimes
			t.Logf("%d bytes per runtime", perRuntime)
			if perRuntime > tt.most {
				t.Errorf("%d bytes per runtime, want at most %d", perRuntime, tt.most)
			}
			runtime.KeepAlive(keys)
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}
