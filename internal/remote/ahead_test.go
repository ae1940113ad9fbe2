package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kyma-project/mothership/internal/cluster"
)

// podsOf are applications of pods n/p0, n/p1, …
func podsOf(n int) []cluster.Application {
	out := make([]cluster.Application, n)
	for i := range out {
		name := fmt.Sprintf("p%d", i)
		out[i] = cluster.Application{
			Resource: pods, Namespace: "n", Name: name, Body: fmt.Appendf(nil, `{"metadata":{"name":%q}}`, name), Options: ApplyOptions{Manager: "m"},
		}
	}
	return out
}

// itsName answers with an object of the name that the request is to.
func itsName(_ int, w http.ResponseWriter, r *http.Request) { saysPod(w, path.Base(r.URL.Path)) }

func saysPod(w http.ResponseWriter, name string) {
	says(200, fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":"n"}}`, name))(0, w, nil)
}

// outcomes are what ApplyEach tells, "ok" or the error, by object; each is told once.
func outcomes(ctx context.Context, t *testing.T, c *Client, objects []cluster.Application) []string {
	t.Helper()
	out := make([]string, len(objects))
	c.ApplyEach(ctx, objects, func(i int, answer *metav1.PartialObjectMetadata, err error) bool {
		if out[i] != "" {
			t.Errorf("object %d was told of twice: %s, %v", i, out[i], err)
		}
		switch {
		case err != nil:
			out[i] = err.Error()
		case answer.Name != objects[i].Name:
			t.Errorf("object %d: the answer is that of %s", i, answer.Name)
		default:
			out[i] = "ok"
		}
		return true
	})
	return out
}

func oks(n int) []string { return slices.Repeat([]string{"ok"}, n) }

// TestApplyEachAhead: requests are there before the first of them is answered, as many as may be.
func TestApplyEachAhead(t *testing.T) {
	t.Parallel()
	const objects = mostAhead + 5
	var mu sync.Mutex
	var ahead []int
	g := faulty(t, Options{Retries: -1}, func(_ int, w http.ResponseWriter, first *http.Request) {
		_, _ = io.Copy(io.Discard, first.Body)
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		reqs := []*http.Request{first}
		for total := 0; total < objects; reqs = nil {
			for len(reqs) < min(mostAhead, objects-total) { // nothing is answered before
				req, err := http.ReadRequest(rw.Reader)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, req.Body)
				reqs = append(reqs, req)
			}
			mu.Lock()
			ahead = append(ahead, len(reqs))
			mu.Unlock()
			for _, req := range reqs {
				body := fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"n"}}`, path.Base(req.URL.Path))
				_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
			}
			total += len(reqs)
		}
	})
	if diff := cmp.Diff(oks(objects), outcomes(cluster.InTurn(t.Context()), t, g.Client, podsOf(objects))); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff([]int{mostAhead, 5}, ahead); diff != "" || g.Stats()[VerbApply] != objects {
		t.Errorf("%v requests; sent ahead (-want +got):\n%s", g.Stats(), diff)
	}
}

// TestApplyEach: whatever a server does, each object is told of once; what failed in passing, or was left unanswered, is sent again.
func TestApplyEach(t *testing.T) {
	t.Parallel()
	const n = 5
	on := func(name string, times int, do answer) answer { // p2's first requests
		var mu sync.Mutex
		seen := 0
		return func(k int, w http.ResponseWriter, r *http.Request) {
			if path.Base(r.URL.Path) == name {
				mu.Lock()
				seen++
				now := seen <= times
				mu.Unlock()
				if now {
					do(k, w, r)
					return
				}
			}
			itsName(k, w, r)
		}
	}
	odd := func(text string) []string {
		out := oks(n)
		out[2] = text
		return out
	}
	for name, tc := range map[string]struct {
		options  Options
		answer   answer
		want     []string
		requests int
		conns    int
		waits    bool // until the server cannot be at work any more
	}{
		"Good":      {Options{}, itsName, oks(n), n, 1, false},
		"Conflict":  {Options{}, on("p2", 9, says(409, status(409, "Conflict", "taken"))), odd("applying Pod n/p2: 409 conflict: taken"), n, 1, false},
		"Throttled": {Options{}, on("p2", 2, says(429, status(429, "TooManyRequests", "later"), "Retry-After: 0")), oks(n), n + 2, 1, false},
		"Throttled for ever": {
			Options{Retries: 2}, on("p2", 9, says(429, status(429, "TooManyRequests", "later"))), odd("applying Pod n/p2: 429 throttled: later"), n + 2, 1, false,
		},
		// What was left unanswered is sent one by one: the server may not know what to do with it.
		"Dropped": {Options{}, on("p2", 1, drop), oks(n), n + n - 2, 2, true},
		"Closed": {Options{}, func(k int, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Connection", "close")
			itsName(k, w, r)
		}, oks(n), n + n - 1, n, false},
		"Cut short":    {Options{Retries: -1}, on("p2", 9, says(200, pod, "Content-Length: 1000")), odd("applying Pod n/p2: truncated answer: unexpected EOF"), n + n - 3, 2, true},
		"Of another":   {Options{}, on("p2", 9, says(200, pod)), odd("applying Pod n/p2: unexpected answer: the answer cannot be decoded: it is of another object"), n + n - 3, 2, true},
		"Refused":      {Options{}, on("p2", 9, says(403, strings.Repeat("x", maxFailureBody+1), html)), odd("applying Pod n/p2: 403 forbidden: the answer is text/html, not a Kubernetes Status"), n + n - 3, 2, true},
		"Unauthorized": {Options{}, says(401, status(401, "Unauthorized", "who?")), nil, n, 1, false},
		"Few at once":  {Options{QPS: 50, Burst: 2}, itsName, oks(n), n, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var l ledger
			g := faulty(t, tc.options, l.of(tc.answer))
			got := outcomes(cluster.InTurn(t.Context()), t, g.Client, podsOf(n))
			for i := len(tc.want); i < n; i++ {
				tc.want = append(tc.want, fmt.Sprintf("applying Pod n/p%d: 401 unauthorized: who?", i))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("outcomes (-want +got):\n%s", diff)
			}
			if sent := g.Stats()[VerbApply]; sent != tc.requests {
				t.Errorf("%d requests, want %d", sent, tc.requests)
			}
			g.mu.Lock()
			if waited := len(g.waits) > 0 && g.waits[0] > 20*time.Second; waited != tc.waits {
				t.Errorf("it waited for %s", g.waits)
			}
			g.mu.Unlock()
			l.mu.Lock()
			if len(l.remote) != tc.conns {
				t.Errorf("%d connections, want %d", len(l.remote), tc.conns)
			}
			l.mu.Unlock()
			g.Close()
			g.awaitNoConnections(t)
			if len(g.gate.slots) != 0 || g.gate.current.inUse != 0 {
				t.Errorf("%d slots and %d uses are left", len(g.gate.slots), g.gate.current.inUse)
			}
		})
	}
}

// TestApplyEachEnds: nothing more is sent once the caller wants no more, and nothing at all where it is not admitted.
func TestApplyEachEnds(t *testing.T) {
	t.Parallel()
	g := faulty(t, Options{Retries: -1}, itsName)
	told := 0
	g.ApplyEach(cluster.InTurn(t.Context()), podsOf(2*mostAhead), func(int, *metav1.PartialObjectMetadata, error) bool {
		told++
		return told < 3
	})
	if sent := g.Stats()[VerbApply]; told != 3 || sent != mostAhead {
		t.Errorf("%d told, %d sent", told, sent)
	}
	if got := outcomes(cluster.InTurn(t.Context()), t, g.Client, podsOf(3)); cmp.Diff(oks(3), got) != "" {
		t.Errorf("afterwards: %v", got)
	}
	if g.gate.current.ahead() == nil {
		t.Error("nothing is sent ahead any more")
	}

	admitted := 0
	g = faulty(t, Options{Admit: func() error {
		if admitted++; admitted > 3 {
			return errStopped
		}
		return nil
	}}, itsName)
	got := outcomes(cluster.InTurn(t.Context()), t, g.Client, podsOf(4))
	if diff := cmp.Diff(append(oks(3), "applying Pod n/p3: interrupted: "+errStopped.Error()), got); diff != "" || g.Stats()[VerbApply] != 3 {
		t.Errorf("%v requests; outcomes (-want +got):\n%s", g.Stats(), diff)
	}
}

// TestApplyEachElsewhere: where nothing can be sent ahead, objects are applied one by one, and impossible ones are refused.
func TestApplyEachElsewhere(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		ctx   func(context.Context) context.Context
		size  int
		proto string
	}{
		"AtOnce": {cluster.AtOnce, 0, "HTTP/2.0"},
		"Large":  {cluster.InTurn, mostInTurn, "HTTP/2.0"},
		"Half":   {cluster.InTurn, mostInTurn / 2, "HTTP/1.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var l ledger
			g := faulty(t, Options{}, l.of(itsName))
			objects := podsOf(3)
			for i := range objects {
				objects[i].Body = fmt.Appendf(nil, `{"metadata":{"annotations":{"a":%q}}}`, strings.Repeat("x", tc.size))
			}
			if diff := cmp.Diff(oks(3), outcomes(tc.ctx(t.Context()), t, g.Client, objects)); diff != "" {
				t.Errorf("outcomes (-want +got):\n%s", diff)
			}
			l.check(t, tc.proto, 3, 1)
		})
	}
	g := faulty(t, Options{}, itsName)
	objects := podsOf(4)
	objects[1].Namespace, objects[2].Options.Manager = "", ""
	want := []string{"ok", "applying Pod p1: invalid: a namespace is needed", "applying Pod n/p2: invalid: a field manager is needed", "ok"}
	if diff := cmp.Diff(want, outcomes(cluster.InTurn(t.Context()), t, g.Client, objects)); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
}

// TestApplyEachInterrupted: the end of the caller's context, and the deadline of a request, end what is under way.
func TestApplyEachInterrupted(t *testing.T) {
	t.Parallel()
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(cluster.InTurn(t.Context()))
	asked := 0
	o := Options{Ask: func(context.Context, bool) func(bool) {
		if asked++; asked == 3 { // two are answered
			time.AfterFunc(10*time.Millisecond, func() { cancel(cause) })
		}
		return func(bool) {}
	}}
	g := faulty(t, o, func(n int, w http.ResponseWriter, r *http.Request) {
		if n == 3 {
			hang(n, w, r)
			return
		}
		itsName(n, w, r)
	})
	var got []string
	g.ApplyEach(ctx, podsOf(5), func(i int, _ *metav1.PartialObjectMetadata, err error) bool {
		got = append(got, fmt.Sprint(i, " ", err))
		return true
	})
	want := []string{"0 <nil>", "1 <nil>"}
	for i := 2; i < 5; i++ {
		want = append(want, fmt.Sprintf("%d applying Pod n/p%d: interrupted: enough", i, i))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	g.awaitNoConnections(t)
}

// TestApplyEachHangs: a request that takes too long ends the connection, and the next ones are sent one by one: something in between may
// have swallowed them.
func TestApplyEachHangs(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"Small": 0, "Large": 6 << 10} { // a server of Go does not notice the end of the connection behind the latter
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			end := make(chan struct{})
			defer close(end)
			g := faulty(t, Options{Timeout: 400 * time.Millisecond}, func(n int, w http.ResponseWriter, r *http.Request) {
				if n == 3 {
					select {
					case <-r.Context().Done():
					case <-end:
					}
					return
				}
				itsName(n, w, r)
			})
			objects := podsOf(5)
			for i := range objects {
				objects[i].Body = fmt.Appendf(nil, `{"metadata":{"annotations":{"a":%q}}}`, strings.Repeat("x", size))
			}
			if diff := cmp.Diff(oks(5), outcomes(cluster.InTurn(t.Context()), t, g.Client, objects)); diff != "" {
				t.Errorf("outcomes (-want +got):\n%s", diff)
			}
			if sent := g.Stats()[VerbApply]; sent != 8 || g.gate.current.ahead() != nil {
				t.Errorf("%d requests; nothing is to be sent ahead any more: %t", sent, g.gate.current.ahead() == nil)
			}
		})
	}
}

// TestApplyEachToSilent: a server that has not answered for a while gets less time for the first answer, and all of it for the others.
func TestApplyEachToSilent(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var bounds []string
	g := faulty(t, Options{Timeout: 80 * time.Second, Contact: 8 * time.Second}, func(n int, w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		bounds = append(bounds, r.URL.Query().Get("timeout"))
		mu.Unlock()
		itsName(n, w, r)
	})
	for range 2 {
		if diff := cmp.Diff(oks(2), outcomes(cluster.InTurn(t.Context()), t, g.Client, podsOf(2))); diff != "" {
			t.Errorf("outcomes (-want +got):\n%s", diff)
		}
	}
	if diff := cmp.Diff([]string{"1000ms", "1000ms", "10000ms", "10000ms"}, bounds); diff != "" {
		t.Errorf("how long the server may take (-want +got):\n%s", diff)
	}
	hangs := faulty(t, Options{Timeout: time.Minute, Contact: 50 * time.Millisecond, Retries: 3}, hang)
	var err error
	hangs.ApplyEach(cluster.InTurn(t.Context()), podsOf(2), func(_ int, _ *metav1.PartialObjectMetadata, e error) bool {
		err = e
		return false
	})
	if !errors.Is(err, ErrTimeout) || hangs.Stats()[VerbApply] != 2 {
		t.Errorf("%v after %v", err, hangs.Stats())
	}
}

// TestApplyEachQuotesNothing: what follows an answer whose length is wrong may be a Secret's.
func TestApplyEachQuotesNothing(t *testing.T) {
	t.Parallel()
	g := faulty(t, Options{Retries: -1}, func(_ int, w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		body := `{"metadata":{"name":"p0","namespace":"n"}}`
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%shunter2\r\n\r\n", len(body), body)
	})
	var told []string
	g.ApplyEach(cluster.InTurn(t.Context()), podsOf(2), func(_ int, _ *metav1.PartialObjectMetadata, err error) bool {
		told = append(told, fmt.Sprint(err))
		return true
	})
	want := []string{"<nil>", "applying Pod n/p1: unreachable: what follows the last answer is no answer"}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

// TestApplyEachMayAsk: who is told of an outcome may ask the server something, whatever else is under way.
func TestApplyEachMayAsk(t *testing.T) {
	t.Parallel()
	g := faulty(t, Options{MaxInFlight: 1}, itsName)
	ctx := cluster.InTurn(t.Context())
	told := 0
	g.ApplyEach(ctx, podsOf(mostAhead+1), func(int, *metav1.PartialObjectMetadata, error) bool {
		if err := g.Get(ctx, pods, "n", "p", new(metav1.PartialObjectMetadata)); err != nil {
			t.Error(err)
		}
		told++
		return true
	})
	if told != mostAhead+1 {
		t.Errorf("%d told", told)
	}
}

// TestApplyEachSwapped: credentials that change while a turn waits are those of its requests, and a closed client keeps no connection.
func TestApplyEachSwapped(t *testing.T) {
	t.Parallel()
	g := faulty(t, Options{MaxInFlight: 1}, func(n int, w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer another" {
			says(401, "")(n, w, r)
			return
		}
		itsName(n, w, r)
	})
	ctx := cluster.InTurn(t.Context())
	g.gate.slots <- struct{}{}
	waits := make(chan struct{})
	g.gate.ask = func(context.Context, bool) func(bool) {
		select {
		case <-waits:
		default:
			close(waits)
		}
		return func(bool) {}
	}
	go func() { // ends with the test, which waits for what it lets go on
		<-waits
		cfg := configOf(g.server)
		cfg.BearerToken = "another"
		if err := g.Swap(cfg); err != nil {
			t.Error(err)
		}
		<-g.gate.slots
	}()
	if diff := cmp.Diff(oks(3), outcomes(ctx, t, g.Client, podsOf(3))); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	g.ApplyEach(ctx, podsOf(3), func(i int, _ *metav1.PartialObjectMetadata, err error) bool {
		if err != nil {
			t.Error(err)
		}
		g.Close()
		return true
	})
	g.awaitNoConnections(t)
}

// TestApplyEachAsks: the engine is told of each wait, one after the other, and which of them say nothing about the way to the server.
func TestApplyEachAsks(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	open, most := 0, 0
	var told, sent []bool
	g := faulty(t, Options{Ask: func(_ context.Context, ahead bool) func(bool) {
		mu.Lock()
		defer mu.Unlock()
		sent = append(sent, ahead)
		open++
		most = max(most, open)
		var once sync.Once
		return func(ok bool) {
			once.Do(func() {
				mu.Lock()
				defer mu.Unlock()
				open--
				told = append(told, ok)
			})
		}
	}}, func(n int, w http.ResponseWriter, r *http.Request) {
		if n == 2 {
			says(401, "")(n, w, r)
			return
		}
		itsName(n, w, r)
	})
	outcomes(cluster.InTurn(t.Context()), t, g.Client, podsOf(3))
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff([]bool{true, false, true}, told); diff != "" || open != 0 || most != 1 {
		t.Errorf("%d waits are open, %d were at once; told (-want +got):\n%s", open, most, diff)
	}
	if diff := cmp.Diff([]bool{false, true, true}, sent); diff != "" {
		t.Errorf("sent before (-want +got):\n%s", diff)
	}
}
