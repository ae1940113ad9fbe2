package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kyma-project/mothership/internal/cluster"
)

// ledger is what a server saw: requests by protocol, and by connection.
type ledger struct {
	mu             sync.Mutex
	protos, remote map[string]int
}

func (l *ledger) of(a answer) answer {
	l.protos, l.remote = map[string]int{}, map[string]int{}
	return func(n int, w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		l.protos[r.Proto]++
		l.remote[r.RemoteAddr]++
		l.mu.Unlock()
		a(n, w, r)
	}
}

func (l *ledger) check(t *testing.T, proto string, requests, connections int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.protos[proto] != requests || len(l.protos) != 1 || len(l.remote) != connections {
		t.Errorf("%v over %d connections, want %d of %s over %d", l.protos, len(l.remote), requests, proto, connections)
	}
}

// A connection is used again where the answer was read to its end and nobody wants it closed.
func TestTurnsConnection(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer      answer
		connections int
	}{
		"Read":   {says(200, pod), 1},
		"Chunks": {func(_ int, w http.ResponseWriter, _ *http.Request) { chunks(w, pod) }, 1},
		"Closed": {says(200, pod, "Connection: close"), 3},
		// What is left of a refusal is not read.
		"Refused": {says(403, strings.Repeat("x", maxFailureBody+1), plain), 3},
		"Empty":   {says(404, ""), 1},
		"Informed": {func(n int, w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			says(200, pod)(n, w, r)
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var l ledger
			g := faulty(t, Options{}, l.of(tc.answer))
			for range 3 {
				err := g.Get(cluster.InTurn(t.Context()), pods, "n", "p", new(metav1.PartialObjectMetadata))
				if refused := name == "Refused" || name == "Empty"; refused != (err != nil) {
					t.Fatal(err)
				}
			}
			l.check(t, "HTTP/1.1", 3, tc.connections)
			g.Close()
			g.awaitNoConnections(t)
		})
	}
}

func chunks(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "application/json")
	for _, c := range text {
		_, _ = io.WriteString(w, string(c))
		_ = http.NewResponseController(w).Flush()
	}
}

// A connection that the server has closed, or over which something came that nobody asked for, is not used again.
func TestTurnsConnectionThatIsNotQuiet(t *testing.T) {
	t.Parallel()
	const other = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 33\r\n\r\n" + `{"metadata":{"name":"not asked"}}`
	large := `{"metadata":{"name":"p","annotations":{"a":"` + strings.Repeat("x", 3*4096) + `"}}}`
	for name, tc := range map[string]struct {
		body, surplus string
		late          bool // the surplus is a record of its own
	}{
		"Closed":      {pod, "", false},
		"Surplus":     {pod, other, false},
		"SurplusLate": {pod, other, true},
		"Large":       {large, other, false},
		"LargeLate":   {large, other, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var l ledger
			sent := make(chan struct{}, 2)
			g := faulty(t, Options{Retries: -1}, l.of(func(_ int, w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				defer func() { sent <- struct{}{} }()
				first := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(tc.body), tc.body)
				if !tc.late {
					first += tc.surplus
				}
				_, _ = io.WriteString(conn, first)
				switch {
				case tc.late:
					_, _ = io.WriteString(conn, tc.surplus)
				case tc.surplus == "":
					_ = conn.Close()
				}
			}))
			for range 2 { // creating is not repeated
				var got metav1.PartialObjectMetadata
				if err := g.Create(cluster.InTurn(t.Context()), pods, "n", []byte(pod), &got); err != nil || got.Name != "p" {
					t.Fatalf("%q, %v", got.Name, err)
				}
				<-sent
			}
			l.check(t, "HTTP/1.1", 2, 2)
		})
	}
}

// A connection that nobody uses is closed after a while.
func TestTurnsExpire(t *testing.T) {
	t.Parallel()
	var l ledger
	g := faulty(t, Options{}, l.of(says(200, pod)))
	p := g.gate.current.transport.(*protocols)
	for range 2 {
		if err := g.Get(cluster.InTurn(t.Context()), pods, "n", "p", new(metav1.PartialObjectMetadata)); err != nil {
			t.Fatal(err)
		}
		p.inTurn.expire()
		if p.inTurn.idle == nil {
			t.Fatal("a connection was closed that had just been used")
		}
		p.inTurn.idle.used = p.inTurn.idle.used.Add(-maxTurnIdle)
		p.inTurn.expire()
		g.awaitNoConnections(t)
	}
	l.check(t, "HTTP/1.1", 2, 2)
}

// A server that does not shake hands keeps nobody beyond the end of the context.
func TestTurnsInterruptedHandshake(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(cluster.InTurn(t.Context()))
	go func() { // ends with the listener
		if conn, err := listener.Accept(); err == nil {
			cancel(cause) // while the client waits for the handshake
			_, _ = io.Copy(io.Discard, conn)
			_ = conn.Close()
		}
	}()
	c := newClient(t, &rest.Config{Host: "https://" + listener.Addr().String()}, Options{Retries: -1})
	if err := c.Get(ctx, pods, "n", "p", nil); !errors.Is(err, cause) {
		t.Errorf("error = %v", err)
	}
}

// Who asks while another does is not kept waiting, and one connection is kept.
func TestTurnsAtTheSameTime(t *testing.T) {
	t.Parallel()
	const many = 5
	var both sync.WaitGroup
	both.Add(many)
	var l ledger
	g := faulty(t, Options{}, l.of(func(n int, w http.ResponseWriter, r *http.Request) {
		if n <= many {
			both.Done()
			both.Wait()
		}
		says(200, pod)(n, w, r)
	}))
	var asking sync.WaitGroup
	for range many {
		asking.Go(func() {
			if err := g.Get(cluster.InTurn(t.Context()), pods, "n", "p", new(metav1.PartialObjectMetadata)); err != nil {
				t.Error(err)
			}
		})
	}
	asking.Wait()
	if err := g.Get(cluster.InTurn(t.Context()), pods, "n", "p", new(metav1.PartialObjectMetadata)); err != nil {
		t.Error(err)
	}
	l.check(t, "HTTP/1.1", many+1, many)
	g.Close()
	g.awaitNoConnections(t)
}

// The end of the caller's context ends a request that is under way, and its connection.
func TestTurnsInterrupted(t *testing.T) {
	t.Parallel()
	cause := errors.New("enough")
	for name, flush := range map[string]bool{"BeforeTheAnswer": false, "InTheAnswer": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(cluster.InTurn(t.Context()))
			g := faulty(t, Options{Retries: 1}, func(n int, w http.ResponseWriter, r *http.Request) {
				if flush {
					says(200, pod[:30])(n, w, r)
					_ = http.NewResponseController(w).Flush()
				}
				cancel(cause)
				hang(n, w, r)
			})
			err := g.Get(ctx, pods, "n", "p", new(metav1.PartialObjectMetadata))
			if !errors.Is(err, cause) || IsTransient(err) || g.Stats()["get"] != 1 {
				t.Errorf("error = %v after %v", err, g.Stats())
			}
			g.awaitNoConnections(t)
		})
	}
}

// What would be refused before it was read to its end, or goes to a proxy or without TLS, goes as all else does.
func TestNotInTurn(t *testing.T) {
	t.Parallel()
	big := []byte(fmt.Sprintf(`{"metadata":{"name":"p","annotations":{"a":%q}}}`, strings.Repeat("x", mostInTurn)))
	t.Run("Large", func(t *testing.T) {
		t.Parallel()
		var l ledger
		g := faulty(t, Options{}, l.of(says(200, pod)))
		err := g.Apply(cluster.InTurn(t.Context()), pods, "n", "p", big, ApplyOptions{Manager: "m"}, new(metav1.PartialObjectMetadata))
		if err != nil {
			t.Fatal(err)
		}
		l.check(t, "HTTP/2.0", 1, 1)
	})
	t.Run("Proxy", func(t *testing.T) {
		t.Parallel()
		g := faulty(t, Options{}, says(200, pod))
		cfg := configOf(g.server)
		nowhere := &url.URL{Scheme: "http", Host: "127.0.0.1:1"}
		cfg.Proxy = http.ProxyURL(nowhere)
		c := newClient(t, cfg, Options{Retries: -1})
		err := c.Get(cluster.InTurn(t.Context()), pods, "n", "p", nil)
		if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "proxyconnect") {
			t.Errorf("error = %v", err)
		}
	})
}

// An endless header is refused, and so is what comes before an answer without end.
func TestTurnsBounds(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		say   func(w io.Writer) error
		words string
	}{
		"Header": {func(w io.Writer) error {
			_, err := io.WriteString(w, "X-A: "+strings.Repeat("x", 4000)+"\r\n")
			return err
		}, "header of the answer is larger than 1 MiB"},
		"Early":    {func(w io.Writer) error { _, err := io.WriteString(w, "\r\nHTTP/1.1 103 Early Hints\r\n"); return err }, errEarly.Error()},
		"Nonsense": {func(w io.Writer) error { _, err := io.WriteString(w, "nonsense\r\n"); return err }, "malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := faulty(t, Options{Retries: -1, Timeout: 20 * time.Second}, func(_ int, w http.ResponseWriter, _ *http.Request) {
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				_, err = io.WriteString(conn, "HTTP/1.1 103 Early Hints\r\n")
				for range 1000 {
					if err == nil {
						err = tc.say(conn)
					}
				}
			})
			err := g.Get(cluster.InTurn(t.Context()), pods, "n", "p", nil)
			if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), tc.words) {
				t.Errorf("error = %v, want %q", err, tc.words)
			}
		})
	}
}
