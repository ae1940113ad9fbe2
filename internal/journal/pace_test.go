package journal

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// quick is an API that takes no time.
type quick struct {
	client.Writer

	mu       sync.Mutex
	segments int
}

func (q *quick) Create(context.Context, client.Object, ...client.CreateOption) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.segments++
	return nil
}

func (q *quick) Delete(context.Context, client.Object, ...client.DeleteOption) error { return nil }

func (q *quick) count() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.segments
}

// paced runs a test in virtual time with a journal over an API that takes no time.
func paced(t *testing.T, test func(t *testing.T, j *Journal, api *quick)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		api := &quick{}
		j := New(Options{Writer: api, Namespace: "kcp-system", SlotOf: func(types.NamespacedName) Slot { return 0 }})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- j.Run(ctx) }()
		test(t, j, api)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// begun begins a change of one of many runtimes, and returns how long that took.
func begun(t *testing.T, j *Journal, i int) time.Duration {
	t.Helper()
	since := time.Now()
	if _, err := j.Begin(t.Context(), on(fmt.Sprintf("r-%d", i), "m")); err != nil {
		t.Error(err)
	}
	return time.Since(since)
}

// In a wave, changes share segments; none waits for longer than until the next.
func TestPaceOfAWave(t *testing.T) {
	paced(t, func(t *testing.T, j *Journal, api *quick) {
		const perMillisecond, milliseconds = 1, 4000
		var beginning sync.WaitGroup
		for i := range perMillisecond * milliseconds {
			<-time.After(time.Millisecond)
			beginning.Go(func() {
				if took := begun(t, j, i); took > time.Second/perSecond {
					t.Errorf("change %d waited %v", i, took)
				}
			})
		}
		beginning.Wait()
		if n, most := api.count(), atOnce+perSecond*milliseconds/1000+1; n > most || n < most-2 {
			t.Errorf("%d segments in %d ms, want %d", n, milliseconds, most)
		}
	})
}

// Changes that come one by one do not wait, nor do some at once.
func TestPaceOfUsers(t *testing.T) {
	paced(t, func(t *testing.T, j *Journal, _ *quick) {
		for i := range 100 {
			<-time.After(time.Second / 20)
			if took := begun(t, j, i); took > 0 {
				t.Fatalf("change %d waited %v", i, took)
			}
		}
		<-time.After(time.Second)
		for i := range atOnce {
			if took := begun(t, j, 100+i); took > 0 {
				t.Fatalf("change %d at once waited %v", i, took)
			}
		}
	})
}
