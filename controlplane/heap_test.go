package controlplane

import (
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

func TestPercentOver(t *testing.T) {
	t.Parallel()
	for live, want := range map[uint64]int{0: 400, 1 << 20: 400, 72 << 20: 400, 88 << 20: 336, 128 << 20: 200, 192 << 20: 100, 1 << 30: 100} {
		if got := percentOver(live); got != want {
			t.Errorf("%d MiB: %d %%, want %d", live>>20, got, want)
		}
	}
}

// The settings are the process's, so this runs alone.
func TestTuneGC(t *testing.T) {
	before := percent()
	stop := TuneGC()
	if got := percent(); got < 200 {
		t.Errorf("with a small heap: %d %%", got)
	}
	held := make([]byte, heapFloor)
	for range 100 { // the finalizer runs soon after the collection
		runtime.GC()
		if percent() == fewestOver {
			break
		}
		<-time.After(time.Millisecond)
	}
	if got := percent(); got != fewestOver {
		t.Errorf("with %d MiB in use: %d %%, want %d", len(held)>>20, got, fewestOver)
	}
	runtime.KeepAlive(held)
	stop()
	runtime.GC()
	if got := percent(); got != before {
		t.Errorf("afterwards: %d %%, it was %d", got, before)
	}
}

func percent() int {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return int(sample[0].Value.Uint64())
}
