package remote

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

var errStopped = errors.New("the run was superseded")

func TestCancellation(t *testing.T) {
	t.Parallel()
	check := func(t *testing.T, err error) {
		t.Helper()
		var e *Error
		if !errors.As(err, &e) || e.Reason != ReasonInterrupted || !errors.Is(err, errStopped) || IsTransient(err) {
			t.Errorf("error = %v, want the cause of the end of the context", err)
		}
	}
	t.Run("BeforeTheCall", func(t *testing.T) {
		t.Parallel()
		g := faulty(t, Options{}, says(200, pod))
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errStopped)
		check(t, g.Get(ctx, pods, "n", "p", nil))
		if g.Stats().Total() != 0 {
			t.Errorf("requests: %v", g.Stats())
		}
	})
	t.Run("WhileTheServerHangs", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancelCause(t.Context())
		g := faulty(t, Options{}, func(n int, w http.ResponseWriter, r *http.Request) {
			cancel(errStopped)
			hang(n, w, r)
		})
		check(t, g.Get(ctx, pods, "n", "p", nil))
	})
	t.Run("InTheMiddleOfAnAnswer", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancelCause(t.Context())
		g := faulty(t, Options{}, func(n int, w http.ResponseWriter, r *http.Request) {
			says(200, `{"metadata":`)(n, w, r)
			_ = http.NewResponseController(w).Flush()
			cancel(errStopped)
			hang(n, w, r)
		})
		_, err := g.ListMeta(ctx, pods, ListOptions{})
		check(t, err)
	})
	t.Run("BetweenAttempts", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancelCause(t.Context())
		g := faulty(t, Options{}, says(429, "", "Retry-After: 7"))
		g.pause = func(ctx context.Context, _ time.Duration) error {
			cancel(errStopped)
			return pause(ctx, time.Hour)
		}
		err := g.Get(ctx, pods, "n", "p", nil)
		check(t, err)
		const want = "reading Pod n/p: interrupted: the run was superseded, after 429 throttled: the answer is application/json, not a Kubernetes Status"
		if err.Error() != want {
			t.Errorf("message = %q, want %q", err, want)
		}
	})
	t.Run("AtTheRateLimit", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancelCause(t.Context())
		g := faulty(t, Options{QPS: 0.001, Burst: 1}, says(200, pod))
		g.gate.pause = func(ctx context.Context, d time.Duration) error {
			if d < 15*time.Minute {
				t.Errorf("waiting %s only", d)
			}
			cancel(errStopped)
			return pause(ctx, d)
		}
		if err := g.Get(ctx, pods, "n", "p", nil); err != nil {
			t.Fatal(err)
		}
		check(t, g.Get(ctx, pods, "n", "p", nil))
	})
	t.Run("WhileAllSlotsAreTaken", func(t *testing.T) {
		t.Parallel()
		started := make(chan struct{})
		g := faulty(t, Options{MaxInFlight: 1}, func(n int, w http.ResponseWriter, r *http.Request) {
			close(started)
			hang(n, w, r)
		})
		first, end := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() { _ = g.Get(first, pods, "n", "p", nil) })
		<-started
		ctx, cancel := context.WithCancelCause(t.Context())
		result := make(chan error)
		go func() { result <- g.Get(ctx, pods, "n", "p", nil) }()
		cancel(errStopped)
		check(t, <-result)
		end()
		run.Wait()
	})
}

func TestDeadlineBeforeTheNextAttempt(t *testing.T) {
	t.Parallel()
	g := faulty(t, Options{}, says(429, "", "Retry-After: 10"))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	err := g.Get(ctx, pods, "n", "p", nil)
	if !errors.Is(err, ErrThrottled) || g.calls != 1 {
		t.Errorf("%v after %d requests, want at once what failed", err, g.calls)
	}
	if d, ok := RetryAfter(err); !ok || d != 10*time.Second {
		t.Errorf("RetryAfter = %v, %v", d, ok)
	}
}

func TestMaxInFlight(t *testing.T) {
	t.Parallel()
	const limit, calls = 3, 30
	var now, most atomic.Int32
	g := faulty(t, Options{MaxInFlight: limit}, func(n int, w http.ResponseWriter, r *http.Request) {
		most.Store(max(most.Load(), now.Add(1)))
		defer now.Add(-1)
		says(200, pod)(n, w, r)
	})
	var run sync.WaitGroup
	for range calls {
		run.Go(func() {
			if err := g.Get(t.Context(), pods, "n", "p", nil); err != nil {
				t.Error(err)
			}
		})
	}
	run.Wait()
	if most.Load() > limit || g.Stats().Total() != calls {
		t.Errorf("%d requests at once and %v in all, want at most %d and %d", most.Load(), g.Stats(), limit, calls)
	}
}

func TestSwap(t *testing.T) {
	t.Parallel()
	for name, http2 := range map[string]bool{"HTTP2": true, "HTTP1": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			arrived, proceed := make(chan struct{}), make(chan struct{})
			old := faulty(t, Options{}, func(n int, w http.ResponseWriter, r *http.Request) {
				if n == 1 {
					close(arrived)
					<-proceed
				}
				says(200, pod)(n, w, r)
			})
			next := faulty(t, Options{}, func(n int, w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer new" {
					says(401, "")(n, w, r)
					return
				}
				says(200, pod)(n, w, r)
			})
			cfg, to := configOf(old.server), configOf(next.server)
			to.BearerToken = "new"
			if !http2 {
				cfg.NextProtos, to.NextProtos = []string{"http/1.1"}, []string{"http/1.1"}
			}
			c := newClient(t, cfg, Options{})
			result := make(chan error)
			go func() { result <- c.Get(t.Context(), pods, "n", "p", nil) }()
			<-arrived
			if err := c.Swap(to); err != nil {
				t.Fatal(err)
			}
			if err := c.Get(t.Context(), pods, "n", "p", nil); err != nil {
				t.Errorf("after the swap: %v", err)
			}
			close(proceed)
			if err := <-result; err != nil {
				t.Errorf("what was under way: %v", err)
			}
			old.awaitNoConnections(t)
			if old.calls != 1 || next.calls != 1 {
				t.Errorf("%d and %d requests, want one each", old.calls, next.calls)
			}
			c.Close()
			c.Close()
			next.awaitNoConnections(t)
			if err := c.Get(t.Context(), pods, "n", "p", nil); err != nil {
				t.Errorf("after closing: %v", err)
			}
			next.awaitNoConnections(t)
		})
	}
}

// awaitNoConnections fails unless the client closes all of its connections; the server notices it a little later.
func (g *rig) awaitNoConnections(t *testing.T) {
	t.Helper()
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for range 5000 {
		g.mu.Lock()
		n := len(g.conns)
		g.mu.Unlock()
		if n == 0 {
			return
		}
		<-poll.C
	}
	t.Error("connections are left open")
}

func TestRefusedConfigurations(t *testing.T) {
	t.Parallel()
	good := newClient(t, &rest.Config{Host: "https://localhost"}, Options{})
	for name, cfg := range map[string]*rest.Config{
		"None":                 nil,
		"BadAddress":           {Host: "https://user:hunter2@%zz"},
		"CredentialsInAddress": {Host: "https://user:hunter2@localhost"},
		"BadCA":                {Host: "https://localhost", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("hunter2")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := New(cfg, Options{})
			if err == nil || c != nil {
				t.Fatal("it was taken")
			}
			noHunter2(t, err)
			if err := good.Swap(cfg); err == nil {
				t.Error("Swap took it")
			}
		})
	}
	for name, o := range map[string]Options{
		"QPS": {QPS: -1}, "Burst": {Burst: -1}, "MaxInFlight": {MaxInFlight: -1}, "Timeout": {Timeout: -1}, "Retries": {Retries: 1000},
	} {
		if _, err := New(&rest.Config{Host: "https://localhost"}, o); err == nil {
			t.Errorf("negative or excessive %s was taken", name)
		}
	}
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	for n := range 70 {
		d := backoff(n)
		if want := min(firstBackoff<<min(n, 20), lastBackoff); d < want/2 || d > want {
			t.Errorf("backoff(%d) = %s, want between half of %s and all of it", n, d, want)
		}
	}
}
