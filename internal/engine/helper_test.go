package engine

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// start is startCold with runtimes that answer each run at once: what a run comes to is the runner's.
func start(t *testing.T, r Runner, o Options) *Engine {
	t.Helper()
	return startCold(t, RunnerFunc(func(ctx context.Context, run *Run) Result {
		run.Progress()
		return r.Run(ctx, run)
	}), o)
}

// startCold makes an engine without jitter and runs it until the end of the test, which is in a bubble of synctest.
func startCold(t *testing.T, r Runner, o Options) *Engine {
	t.Helper()
	e := New(r, o)
	e.random = func() float64 { return 0.5 }
	ended := make(chan error, 1)
	go func() { ended <- e.Run(t.Context()) }()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Errorf("running the engine: %v", err)
		}
	})
	return e
}

// pass lets virtual time pass, and everything happen that happens in it.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// journal notes which runs began when.
type journal struct {
	mu    sync.Mutex
	begin time.Time
	lines []string
}

func newJournal() *journal { return &journal{begin: time.Now()} }

func (j *journal) note(r *Run) {
	j.mu.Lock()
	defer j.mu.Unlock()
	line := fmt.Sprintf("%s %s #%d", time.Since(j.begin), r.Key(), r.Attempt())
	if r.Probing() {
		line += " probe"
	}
	j.lines = append(j.lines, line)
}

// expect compares what was noted since the last time, once nothing moves.
func (j *journal) expect(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	if diff := cmp.Diff(want, j.lines); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	j.lines = nil
}

// scripted notes each run in the journal; the results of each key are those given, in order, and Done afterwards.
func (j *journal) scripted(script map[Key][]Result) Runner {
	var mu sync.Mutex
	return RunnerFunc(func(_ context.Context, r *Run) Result {
		j.note(r)
		mu.Lock()
		defer mu.Unlock()
		left := script[r.Key()]
		if len(left) == 0 {
			return Result{}
		}
		script[r.Key()] = left[1:]
		return left[0]
	})
}

// component is the state of one component; the zero value and false if it is idle.
func component(e *Engine, k Key) (ComponentState, bool) {
	for _, c := range e.Inspect(k.Runtime).Components {
		if c.Component == k.Component {
			return c, true
		}
	}
	return ComponentState{}, false
}

// expectPhase checks where a key stands.
func expectPhase(t *testing.T, e *Engine, k Key, want Phase) {
	t.Helper()
	synctest.Wait()
	if c, ok := component(e, k); !ok || c.Phase != want {
		t.Errorf("%s is %s (known: %t), want %s", k, c.Phase, ok, want)
	}
}

// expectIdle checks that the engine knows nothing of the runtime.
func expectIdle(t *testing.T, e *Engine, runtime string) {
	t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(RuntimeState{}, e.Inspect(runtime)); diff != "" {
		t.Errorf("%s is not idle:\n%s", runtime, diff)
	}
	checkConsistent(t, e)
}

var (
	eu  = Key{Runtime: "eu"}
	euA = Key{Runtime: "eu", Component: "a"}
	euB = Key{Runtime: "eu", Component: "b"}
	euC = Key{Runtime: "eu", Component: "c"}
	usA = Key{Runtime: "us", Component: "a"}
	usB = Key{Runtime: "us", Component: "b"}
)
