package remote

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A probe is one request, whatever comes back.
func TestOnce(t *testing.T) {
	t.Parallel()
	g := faulty(t, Options{Retries: 3}, says(503, ""))
	if err := g.Get(Once(t.Context()), pods, "n", "p", nil); !errors.Is(err, ErrUnavailable) {
		t.Errorf("error = %v", err)
	}
	if n := g.Stats().Total(); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

// A server that has been silent gets less time, and no second attempt; one that answers gets all of it.
func TestContact(t *testing.T) {
	t.Parallel()
	g := faulty(t, Options{Retries: 3, Timeout: time.Minute, Contact: 50 * time.Millisecond}, hang)
	begin := time.Now()
	err := g.Get(t.Context(), pods, "n", "p", nil)
	if !errors.Is(err, ErrTimeout) || time.Since(begin) > 30*time.Second {
		t.Errorf("error = %v after %s", err, time.Since(begin))
	}
	if n := g.Stats().Total(); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
	g.gate.heard.Store(time.Now().UnixNano())
	if d, cause := g.gate.patience(); d != time.Minute || !errors.Is(cause, errDeadline) || errors.Is(cause, errSilent) {
		t.Errorf("a server that answers gets %s, and ends with %v", d, cause)
	}
}

// Who asks is told of each wait and of how it ended: pauses between attempts are waits without an answer.
func TestAsk(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var told []bool
	open := 0
	o := Options{Retries: 1, Ask: func(context.Context, bool) func(bool) {
		mu.Lock()
		defer mu.Unlock()
		open++
		return func(ok bool) {
			mu.Lock()
			defer mu.Unlock()
			open--
			told = append(told, ok)
		}
	}}
	g := faulty(t, o, func(n int, w http.ResponseWriter, r *http.Request) {
		if n == 1 {
			says(503, "")(n, w, r)
			return
		}
		says(404, "")(n, w, r)
	})
	_ = g.Get(t.Context(), pods, "n", "p", nil)
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff([]bool{false, false, true}, told); diff != "" || open != 0 {
		t.Errorf("%d waits are open; told (-want +got):\n%s", open, diff)
	}
}
