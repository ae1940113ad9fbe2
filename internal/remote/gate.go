package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

const (
	// maxListBody bounds the answer to a list, or a discovery document.
	maxListBody = 64 << 20
	// maxObjectBody bounds every other answer.
	maxObjectBody = 16 << 20
)

// gate is what every request passes: limits, address and credentials of the moment, count, deadline, size. It is an
// http.RoundTripper for requests whose URL has the path of the Kubernetes API only; scheme and host are filled in.
// It is safe for concurrent use.
type gate struct {
	limiter   *rate.Limiter
	slots     chan struct{} // holds one entry per request under way
	timeout   time.Duration
	userAgent string
	pause     func(context.Context, time.Duration) error
	admit     func() error
	ask       func(ctx context.Context, ahead bool) (answered func(ok bool))
	contact   time.Duration
	heard     atomic.Int64 // when the server last answered, in nanoseconds since 1970
	counter   counter

	mu      sync.Mutex
	current *generation // guarded by mu
	closed  bool        // guarded by mu
}

var _ http.RoundTripper = (*gate)(nil)

// generation is one set of address and credentials. It lives until its last request has ended.
type generation struct {
	base        *url.URL
	transport   http.RoundTripper
	header      http.Header // of requests that have none of their own
	credentials []string    // literal secrets, for scrub
	inUse       int         // guarded by gate.mu
}

// newGeneration makes the transport of a configuration. No request is made.
func newGeneration(cfg *rest.Config, userAgent string) (*generation, error) {
	if cfg == nil {
		return nil, errors.New("no configuration for the runtime was given")
	}
	cfg = rest.CopyConfig(cfg)
	cfg.DisableCompression = true
	connecting(cfg)
	if cfg.Proxy == nil {
		// A proxy function of its own keeps the transport out of client-go's process-wide cache: that would keep the
		// credentials of every runtime ever seen, and share connections that are ours to close.
		cfg.Proxy = http.ProxyFromEnvironment
	}
	base, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("reading the runtime's address: %w", withoutURL(err))
	}
	if base.User != nil {
		return nil, errors.New("the runtime's address carries credentials: give them as a token or a client certificate")
	}
	g := &generation{base: base}
	for _, c := range []string{cfg.BearerToken, cfg.Password} {
		if c != "" {
			g.credentials = append(g.credentials, c)
		}
	}
	g.header = takeHeader(cfg, userAgent)
	g.transport, err = rest.TransportFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("making a transport for %s: %w", base.Host, err)
	}
	return g, nil
}

// takeHeader takes what is the same in the header of each request out of a configuration: client-go has a wrapper for each, which copies
// the request and its header. cfg is changed.
func takeHeader(cfg *rest.Config, userAgent string) http.Header {
	h := http.Header{"User-Agent": {userAgent}}
	cfg.UserAgent = ""
	other := cfg.BearerTokenFile != "" || cfg.Username != "" || cfg.ExecProvider != nil || cfg.AuthProvider != nil
	if cfg.BearerToken != "" && !other { // else client-go decides which of them is used
		h["Authorization"] = []string{"Bearer " + cfg.BearerToken}
		cfg.BearerToken = ""
	}
	return h
}

// withoutURL strips the address, which may carry a password, from an error of net/url.
func withoutURL(err error) error {
	var parse *url.Error
	if errors.As(err, &parse) {
		return parse.Err
	}
	return errors.New("it is not a URL, or a host and port")
}

// RoundTrip sends a request. Errors are the transport's, or context.Cause of the request's context.
func (g *gate) RoundTrip(req *http.Request) (*http.Response, error) {
	sent := false
	resp, _, err := g.send(req.Context(), verbOf(req), 0, func(ctx context.Context) (*http.Request, error) {
		sent = true
		own, url := req.WithContext(ctx), *req.URL
		own.Header, own.URL = req.Header.Clone(), &url
		return own, nil
	})
	if !sent && req.Body != nil {
		_ = req.Body.Close()
	}
	return resp, err
}

// send makes a request that counts as a verb and sends it; request, whose error is that of send, is called once it is its turn, with a context that ends when the
// request's deadline does, which is returned, too. URL and header of the request are changed. The answer to a watch lasts longer than
// that: once it has begun, it takes no slot from others, and its size has no bound.
func (g *gate) send(
	ctx context.Context, verb string, lasts time.Duration, request func(context.Context) (*http.Request, error),
) (*http.Response, context.Context, error) {
	ok, answered := false, g.ask(ctx, false)
	defer func() { answered(ok) }()
	if err := g.enter(ctx); err != nil {
		return nil, ctx, err
	}
	if err := g.admit(); err != nil {
		<-g.slots
		return nil, ctx, &refusal{err}
	}
	b := &body{gate: g, gen: g.acquire(), left: boundOf(verb)}
	ctx, extend, cancel := g.deadline(ctx, lasts)
	b.cancel = cancel
	req, err := request(ctx)
	if err != nil {
		b.end()
		return nil, ctx, err
	}
	g.counter.add(verb, 1)
	resp, err := b.gen.transport.RoundTrip(b.gen.address(req))
	if err != nil {
		b.end()
		return nil, ctx, err
	}
	g.heard.Store(time.Now().UnixNano())
	ok = works(resp.StatusCode)
	if lasts > 0 && resp.StatusCode == http.StatusOK {
		extend()
		b.leave()
		b.left = math.MaxInt64 // its reader bounds each event
	}
	b.ReadCloser, resp.Body = resp.Body, b
	return resp, ctx, nil
}

// deadline ends a request's context with errDeadline when its time is over. extend gives a watch the time that it lasts.
func (g *gate) deadline(ctx context.Context, lasts time.Duration) (_ context.Context, extend, cancel func()) {
	if lasts <= 0 {
		timeout, cause := g.patience()
		ctx, cancel := context.WithTimeoutCause(ctx, timeout, cause)
		return ctx, func() {}, cancel
	}
	ctx, end := context.WithCancelCause(ctx)
	timer := time.AfterFunc(g.timeout, func() { end(errDeadline) })
	return ctx, func() { timer.Reset(lasts) }, func() { timer.Stop(); end(nil) }
}

// enter waits for a slot and a token.
func (g *gate) enter(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case g.slots <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	token := g.limiter.Reserve()
	if delay := token.Delay(); delay > 0 {
		if err := g.pause(ctx, delay); err != nil {
			token.Cancel()
			<-g.slots
			return err
		}
	}
	return nil
}

// refusal says that a request was not to be sent.
type refusal struct{ cause error }

func (r *refusal) Error() string { return r.cause.Error() }
func (r *refusal) Unwrap() error { return r.cause }

func (g *gate) acquire() *generation {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.current.inUse++
	return g.current
}

// release ends one request. Connections of a generation that is no longer wanted are closed when they fall idle.
func (g *gate) release(gen *generation) {
	g.mu.Lock()
	gen.inUse--
	unwanted := gen.inUse == 0 && (g.closed || gen != g.current)
	g.mu.Unlock()
	if unwanted {
		utilnet.CloseIdleConnectionsFor(gen.transport)
	}
}

func (g *gate) swap(next *generation) {
	g.mu.Lock()
	last := g.current
	g.current = next
	g.mu.Unlock()
	if last != nil {
		utilnet.CloseIdleConnectionsFor(last.transport)
	}
}

func (g *gate) close() {
	g.mu.Lock()
	g.closed = true
	gen := g.current
	g.mu.Unlock()
	utilnet.CloseIdleConnectionsFor(gen.transport)
}

// address directs a request, whose URL has a path only, to the generation's server, with its credentials. req, its URL and its header are
// changed.
func (gen *generation) address(req *http.Request) *http.Request {
	u := req.URL
	u.Scheme, u.Host = gen.base.Scheme, gen.base.Host
	if prefix := strings.TrimSuffix(gen.base.Path, "/"); prefix != "" || !strings.HasPrefix(u.Path, "/") {
		u.Path = prefix + "/" + strings.TrimPrefix(u.Path, "/")
	}
	u.RawPath, req.Host = "", ""
	for name, values := range gen.header {
		if len(req.Header[name]) == 0 {
			req.Header[name] = values
		}
	}
	return req
}

func boundOf(verb string) int64 {
	switch verb {
	case VerbList, VerbDiscovery:
		return maxListBody
	case VerbWatch:
		return maxWatchEvent
	}
	return maxObjectBody
}

// body bounds an answer and ends its request when it is closed.
type body struct {
	io.ReadCloser
	left int64

	gate        *gate
	gen         *generation
	cancel      func()
	gone, ended atomic.Bool
}

// leave gives the request's slot to another.
func (b *body) leave() {
	if !b.gone.Swap(true) {
		<-b.gate.slots
	}
}

func (b *body) end() {
	if !b.ended.Swap(true) {
		b.cancel()
		b.gate.release(b.gen)
		b.leave()
	}
}

func (b *body) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return b.atBound()
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// atBound tells an answer that ends at its bound from one that goes on.
func (b *body) atBound() (int, error) {
	var one [1]byte
	n, err := b.ReadCloser.Read(one[:])
	if n > 0 {
		return 0, errBodyTooLarge
	}
	return 0, err
}

func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.end()
	return err
}

// pause waits, and returns context.Cause at once when the context ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
