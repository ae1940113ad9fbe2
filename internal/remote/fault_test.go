package remote

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kyma-project/mothership/internal/cluster"
)

// These tests talk to a server that misbehaves as a real one does on demand only.

const token = "s3cr3t-bearer-token"

var pods = Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Kind: "Pod", Namespaced: true}

// rig is a faulty server and a client of it that does not really wait between attempts.
type rig struct {
	*Client
	server *httptest.Server

	mu    sync.Mutex
	calls int                         // guarded by mu
	waits []time.Duration             // between attempts; guarded by mu
	conns map[net.Conn]http.ConnState // guarded by mu
}

// answer is a handler that is told the number of the request, from 1.
type answer func(n int, w http.ResponseWriter, r *http.Request)

func faulty(t testing.TB, o Options, handle answer) *rig {
	t.Helper()
	g := &rig{conns: map[net.Conn]http.ConnState{}}
	g.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handle(g.count(), w, r)
	}))
	g.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	g.server.Config.ConnState = g.note
	g.server.EnableHTTP2 = true
	g.server.StartTLS()
	t.Cleanup(g.server.Close)
	g.Client = newClient(t, configOf(g.server), o)
	g.pause = func(ctx context.Context, d time.Duration) error {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.waits = append(g.waits, d)
		return context.Cause(ctx)
	}
	g.backoff = func(n int) time.Duration { return time.Duration(n+1) * time.Millisecond }
	return g
}

func configOf(s *httptest.Server) *rest.Config {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return &rest.Config{Host: s.URL, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
}

func (g *rig) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls++
	return g.calls
}

func (g *rig) note(c net.Conn, s http.ConnState) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if s == http.StateClosed {
		delete(g.conns, c)
		return
	}
	g.conns[c] = s
}

// says answers with a code, a body and headers ("Name: value").
func says(code int, body string, headers ...string) answer {
	return func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			w.Header().Set(name, value)
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// status is the JSON of a Status.
func status(code int, reason metav1.StatusReason, message string) string {
	return string(mustJSON(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: int32(code), Reason: reason, Message: message,
	}))
}

const (
	html    = "Content-Type: text/html; charset=utf-8"
	plain   = "Content-Type: text/plain"
	audited = "Audit-Id: 6c0b3f7c"
	pod     = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":"n"}}`
)

// eachWay runs a test twice, once with a context in which one thing is asked after the other: each over another protocol.
func eachWay(t *testing.T, name string, test func(t *testing.T, ctx context.Context)) {
	t.Helper()
	for way, in := range map[string]func(context.Context) context.Context{"AtOnce": cluster.AtOnce, "InTurn": cluster.InTurn} {
		t.Run(name+way, func(t *testing.T) {
			t.Parallel()
			test(t, in(t.Context()))
		})
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	soon, seconds := []time.Duration{1e6, 2e6, 3e6, 4e6}, func(n int) []time.Duration {
		d := time.Duration(n) * time.Second
		return []time.Duration{d, d, d, d}
	}
	for name, tc := range map[string]struct {
		answer answer
		want   error
		words  string
		waits  []time.Duration
	}{
		"Unauthorized":    {says(401, status(401, "Unauthorized", "Unauthorized")), ErrUnauthorized, "reading Pod n/p: 401 unauthorized: Unauthorized", nil},
		"ForbiddenByPage": {says(403, "<html>", html), ErrForbidden, "403 forbidden: the answer is text/html, not a Kubernetes Status", nil},
		"EchoedToken":     {says(403, status(403, "Forbidden", "no: "+token+" or Bearer abcdefgh12345")), ErrForbidden, "no: [redacted] or Bearer [redacted]", nil},
		"EchoedInText":    {says(400, "Authorization: Bearer "+token, plain), ErrInvalid, "Authorization: Bearer [redacted]", nil},
		"Conflict":        {says(409, status(409, "Conflict", "changed")), ErrConflict, "409 conflict: changed", nil},
		"Expired":         {says(410, status(410, "Expired", "too old")), ErrExpired, "410 expired", nil},
		"TooLargeRequest": {says(413, status(413, "RequestEntityTooLarge", "limit is 3145728")), ErrInvalid, "413 invalid", nil},

		"Throttled":            {says(429, status(429, "TooManyRequests", "slow down")), ErrThrottled, "429 throttled", soon},
		"ThrottledForSeconds":  {says(429, "", "Retry-After: 2"), ErrThrottled, "429 throttled", seconds(2)},
		"ThrottledForAnHour":   {says(429, "", "Retry-After: 3600"), ErrThrottled, "429 throttled", seconds(10)},
		"ThrottledToThePast":   {says(429, "", "Retry-After: Wed, 21 Oct 2015 07:28:00 GMT"), ErrThrottled, "", soon},
		"ThrottledTillFarAway": {says(429, "", "Retry-After: Wed, 21 Oct 2125 07:28:00 GMT"), ErrThrottled, "", seconds(10)},
		"ThrottledForNonsense": {says(429, "", "Retry-After: -3 soon"), ErrThrottled, "", soon},
		"InternalError":        {says(500, status(500, "InternalError", "etcd")), ErrUnavailable, "500 unavailable: etcd", soon},
		"NotImplemented":       {says(501, ""), ErrUnavailable, "501 unavailable", nil},
		"BadGateway":           {says(502, "<html>", html), ErrUnavailable, "502 unavailable", soon},
		"Unavailable":          {says(503, "no backend\nat all\x1b[31m", plain, "Retry-After: 1"), ErrUnavailable, "503 unavailable: no backend", seconds(1)},
		"GatewayTimeout":       {says(504, status(504, "Timeout", "slow")), ErrUnavailable, "504 unavailable", soon},
		"NotServed":            {says(404, "404 page not found\n", plain, audited), ErrNoKind, "404 kind not served: 404 page not found", nil},
		"NotFoundByPage":       {says(404, "404 page not found\n", plain), ErrUnexpected, "404 unexpected answer", nil},
		"Redirect":             {says(302, "", "Location: https://user:"+token+"@elsewhere.invalid/"), ErrUnexpected, "redirect, which is not followed", nil},
		"PermanentRedirect":    {says(308, "", "Location: /api"), ErrUnexpected, "redirect, which is not followed", nil},
		"Page":                 {says(200, "<html>login</html>", html), ErrUnexpected, `content type is "text/html; charset=utf-8"`, nil},
		"OtherContentType":     {says(200, pod, "Content-Type: application/yaml"), ErrUnexpected, "content type", nil},
		"NoJSON":               {says(200, `{"kind":]`), ErrUnexpected, "invalid character", nil},
		"OtherTypes":           {says(200, `{"metadata":{"name":7}}`), ErrUnexpected, "", nil},
		"NoObject":             {says(200, `{"kind":"Pod"}`), ErrUnexpected, "it is no object", nil},
		"Null":                 {says(200, `null`), ErrUnexpected, "it is no object", nil},
		"HalfAnObject":         {says(200, pod[:40]), ErrTruncated, "truncated answer", soon},
		"NothingAtAll":         {says(200, ``), ErrTruncated, "truncated answer", soon},
		"ShorterThanAnnounced": {says(200, pod, "Content-Length: 4000"), ErrTruncated, "truncated answer", soon},
		"EndlessBody":          {endless, ErrTooLarge, "answer too large: more than 16 MiB", nil},
		"ConnectionDropped":    {drop, ErrUnreachable, "unreachable", soon},
		"NotModifiedUnasked":   {says(304, ""), ErrUnexpected, "304 unexpected answer", nil},
	} {
		eachWay(t, name, func(t *testing.T, ctx context.Context) {
			g := faulty(t, Options{}, tc.answer)
			err := g.Get(ctx, pods, "n", "p", new(metav1.PartialObjectMetadata))
			if !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.words) {
				t.Fatalf("error = %v, want %v with %q", err, tc.want, tc.words)
			}
			if errors.Is(err, ErrNotFound) != (tc.want == ErrNoKind) {
				t.Errorf("not found = %v: %v", errors.Is(err, ErrNotFound), err)
			}
			if strings.Contains(fmt.Sprintf("%+v %#v", err, err), token) || strings.ContainsAny(err.Error(), "\x1b") {
				t.Errorf("the error has what it must not: %+v", err)
			}
			if diff := cmp.Diff(tc.waits, g.waits); diff != "" {
				t.Errorf("waits (-want +got):\n%s", diff)
			}
			if IsTransient(err) != (tc.waits != nil) || g.Stats()["get"] != len(tc.waits)+1 || g.calls != len(tc.waits)+1 {
				t.Errorf("transient = %v after %d calls, counted %v", IsTransient(err), g.calls, g.Stats())
			}
		})
	}
}

func endless(_ int, w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, err := io.WriteString(w, `{"metadata":{"name":"`)
	for chunk := strings.Repeat("x", 1<<16); err == nil; {
		_, err = io.WriteString(w, chunk)
	}
}

// drop ends the connection, or the stream, without an answer.
func drop(int, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// hang keeps a request until the client gives up.
func hang(_ int, _ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // before that, the server does not notice over HTTP/1.1
	<-r.Context().Done()
}

func TestRepetition(t *testing.T) {
	t.Parallel()
	webhook := says(500, status(500, "InternalError", `Internal error occurred: failed calling webhook "w": dial tcp: refused`))
	calls := map[string]func(context.Context, *Client) error{
		"Get":    func(ctx context.Context, c *Client) error { return c.Get(ctx, pods, "n", "p", nil) },
		"Create": func(ctx context.Context, c *Client) error { return c.Create(ctx, pods, "n", []byte(pod), nil) },
		"Apply": func(ctx context.Context, c *Client) error {
			return c.Apply(ctx, pods, "n", "p", []byte(pod), ApplyOptions{Manager: "m"}, nil)
		},
		"Patch": func(ctx context.Context, c *Client) error {
			return c.Patch(ctx, pods, "n", "p", types.MergePatchType, []byte(`{}`), PatchOptions{}, nil)
		},
		"PatchDry": func(ctx context.Context, c *Client) error {
			return c.Patch(ctx, pods, "n", "p", types.MergePatchType, []byte(`{}`), PatchOptions{DryRun: true}, nil)
		},
		"Delete": func(ctx context.Context, c *Client) error { return c.Delete(ctx, pods, "n", "p", DeleteOptions{}) },
		"DeleteUID": func(ctx context.Context, c *Client) error {
			return c.Delete(ctx, pods, "n", "p", DeleteOptions{UID: "u"})
		},
	}
	safe := []string{"Get", "Apply", "PatchDry", "DeleteUID"}
	all := append([]string{"Create", "Patch", "Delete"}, safe...)
	for name, tc := range map[string]struct {
		answer   answer
		repeated []string
	}{
		"Throttled":     {says(429, ""), all},
		"Unavailable":   {says(503, ""), all},
		"WebhookFailed": {webhook, all},
		"InternalError": {says(500, ""), safe},
		"Dropped":       {drop, safe},
		"Forbidden":     {says(403, ""), nil},
	} {
		for verb, call := range calls {
			eachWay(t, name+verb, func(t *testing.T, ctx context.Context) {
				g := faulty(t, Options{Retries: 1}, tc.answer)
				if err := call(ctx, g.Client); err == nil {
					t.Fatal("no error")
				}
				want := 1
				for _, v := range tc.repeated {
					if v == verb {
						want = 2
					}
				}
				if g.calls != want {
					t.Errorf("%d requests, want %d", g.calls, want)
				}
			})
		}
	}
}

func TestRecovery(t *testing.T) {
	t.Parallel()
	eachWay(t, "", func(t *testing.T, ctx context.Context) {
		g := faulty(t, Options{}, func(n int, w http.ResponseWriter, r *http.Request) {
			sent, _ := io.ReadAll(r.Body)
			switch {
			case string(sent) != pod:
				says(400, "the body is gone", plain)(n, w, r)
			case n < 3:
				says(503, "")(n, w, r)
			default:
				says(200, string(sent))(n, w, r)
			}
		})
		var got metav1.PartialObjectMetadata
		if err := g.Apply(ctx, pods, "n", "p", []byte(pod), ApplyOptions{Manager: "m"}, &got); err != nil || got.Name != "p" {
			t.Fatalf("got %v, %v", got.Name, err)
		}
		if diff := cmp.Diff(Stats{"apply": 3}, g.Stats()); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	})
}

func TestNoRetries(t *testing.T) {
	t.Parallel()
	g := faulty(t, Options{Retries: -1}, says(503, ""))
	if err := g.Get(t.Context(), pods, "n", "p", nil); !errors.Is(err, ErrUnavailable) || g.calls != 1 {
		t.Errorf("%v after %d requests, want one", err, g.calls)
	}
}

func TestHangs(t *testing.T) {
	t.Parallel()
	for name, a := range map[string]answer{
		"BeforeTheAnswer": hang,
		"InTheAnswer": func(n int, w http.ResponseWriter, r *http.Request) {
			says(200, pod[:30])(n, w, r)
			_ = http.NewResponseController(w).Flush()
			hang(n, w, r)
		},
	} {
		eachWay(t, name, func(t *testing.T, ctx context.Context) {
			g := faulty(t, Options{Timeout: 30 * time.Millisecond, Retries: 2}, a)
			err := g.Get(ctx, pods, "n", "p", nil)
			if !errors.Is(err, ErrTimeout) || !IsTransient(err) || g.Stats()["get"] != 3 {
				t.Errorf("%v after %v, want a timeout after 3 requests", err, g.Stats())
			}
			err = g.Create(ctx, pods, "n", []byte(pod), nil)
			if !errors.Is(err, ErrTimeout) || g.Stats()["create"] != 1 {
				t.Errorf("%v after %v, want that creating is not repeated", err, g.Stats())
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := "https://" + listener.Addr().String()
	_ = listener.Close()
	plainHTTP := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plainHTTP.Close)
	other := httptest.NewUnstartedServer(http.NotFoundHandler())
	other.Config.ErrorLog = log.New(io.Discard, "", 0)
	other.StartTLS()
	t.Cleanup(other.Close)
	for name, tc := range map[string]struct {
		cfg       *rest.Config
		transient bool
	}{
		"Refused":          {&rest.Config{Host: refused}, true},
		"UnknownHost":      {&rest.Config{Host: "https://no-such-host.invalid"}, true},
		"ServerWithoutTLS": {&rest.Config{Host: strings.Replace(plainHTTP.URL, "http:", "https:", 1)}, true},
		"UnknownAuthority": {&rest.Config{Host: other.URL}, false},
	} {
		eachWay(t, name, func(t *testing.T, ctx context.Context) {
			c := newClient(t, tc.cfg, Options{Retries: 1, Timeout: 20 * time.Second})
			c.pause = func(context.Context, time.Duration) error { return nil }
			err := c.Create(ctx, pods, "n", []byte(pod), nil)
			if !errors.Is(err, ErrUnreachable) || IsTransient(err) != tc.transient {
				t.Errorf("error = %v, transient %v; want unreachable, transient %v", err, IsTransient(err), tc.transient)
			}
			var statusErr *apierrors.StatusError
			if errors.As(err, &statusErr) {
				t.Errorf("%v claims a Status", err)
			}
		})
	}
}
