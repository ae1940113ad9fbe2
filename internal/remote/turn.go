package remote

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// turns asks a server one thing after the other over one connection of HTTP/1.1, each on the goroutine that asks. Requests are written and answers
// read by net/http; its Transport has two goroutines for each connection, so that each request is three times that somebody has to be
// woken, which is a third of what it costs. It is safe for concurrent use: who comes while another asks has a connection made for itself.
type turns struct {
	of   *http.Transport // whose proxy and TLS configuration count
	dial dialer
	// single says that the server has left requests unanswered that were sent ahead.
	single atomic.Bool

	mu     sync.Mutex
	config *tls.Config // made when it is first needed
	idle   *turnConn   // nil if there is none
	timed  bool        // expire will be called
}

// turnConn is a connection.
type turnConn struct {
	raw  net.Conn
	conn *tls.Conn
	in   meter
	r    *bufio.Reader
	w    *bufio.Writer
	used time.Time
}

const (
	// maxTurnIdle is how long a connection is kept that nobody uses.
	maxTurnIdle = 5 * time.Second
	// maxHeader bounds the header of an answer, maxEarly how many answers may come before the answer (1xx).
	maxHeader = 1 << 20
	maxEarly  = 5
)

// errNotInTurn says that requests do not go to the server by itself, or not over TLS.
var errNotInTurn = errors.New("not to be asked in turn")

// take is a connection for a request: the idle one, or a new one. Nothing was sent over it where there is an error.
func (t *turns) take(req *http.Request) (*turnConn, error) {
	if c := t.takeIdle(); c != nil {
		if c.isQuiet() {
			return c, nil
		}
		_ = c.raw.Close()
	}
	return t.connect(req)
}

// takeIdle is the idle connection, which it is no more; nil if there is none.
func (t *turns) takeIdle() *turnConn {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.idle
	t.idle = nil
	return c
}

// isQuiet says whether a connection is open and nothing has come over it that nobody asked for: what had would be taken for the next answer.
func (c *turnConn) isQuiet() bool {
	if !isSilent(c.raw) {
		return false
	}
	c.in.left = maxHeader
	_ = c.conn.SetReadDeadline(longAgo)
	_, err := c.r.Peek(1) // of what was read, by TLS too: nothing is asked of the system once the deadline is over
	_ = c.conn.SetReadDeadline(time.Time{})
	return errors.Is(err, os.ErrDeadlineExceeded)
}

// longAgo is a deadline that is over.
var longAgo = time.Unix(1, 0)

// connect makes a connection.
func (t *turns) connect(req *http.Request) (*turnConn, error) {
	if req.URL.Scheme != "https" {
		return nil, errNotInTurn
	}
	if t.of.Proxy != nil {
		proxy, err := t.of.Proxy(req)
		if err != nil {
			return nil, err
		}
		if proxy != nil {
			return nil, errNotInTurn
		}
	}
	ctx, host := req.Context(), req.URL.Hostname()
	if strings.ContainsFunc(host, func(r rune) bool { return r >= utf8.RuneSelf }) { // net/http knows its name in DNS
		return nil, errNotInTurn
	}
	raw, err := t.dial(ctx, "tcp", net.JoinHostPort(host, cmp.Or(req.URL.Port(), "443")))
	if err != nil {
		return nil, err
	}
	conn := tls.Client(raw, t.configFor(host))
	shaking, cancel := context.WithTimeoutCause(ctx, handshakeTimeout, errHandshake)
	defer cancel()
	if err := conn.HandshakeContext(shaking); err != nil {
		_ = raw.Close()
		if shaking.Err() != nil {
			return nil, context.Cause(shaking)
		}
		return nil, err
	}
	c := &turnConn{raw: raw, conn: conn, in: meter{r: conn, over: errHeaderTooLarge}, w: bufio.NewWriter(conn)}
	c.r = bufio.NewReader(&c.in)
	return c, nil
}

var errHandshake = fmt.Errorf("the TLS handshake took longer than %s", handshakeTimeout)

// configFor is the TLS configuration, which is of one host only.
func (t *turns) configFor(host string) *tls.Config {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.config == nil {
		if t.config = t.of.Clone().TLSClientConfig; t.config == nil { // a clone's, so that nobody else changes it
			t.config = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		t.config.NextProtos = []string{"http/1.1"}
		t.config.DynamicRecordSizingDisabled = true // a record of 1 KiB is for pages that are shown before they are all there
		t.config.ServerName = cmp.Or(t.config.ServerName, host)
	}
	return t.config
}

// ask sends a request over a connection, which is another's turn, or no more, once the answer was read and closed.
func (t *turns) ask(c *turnConn, req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	stop := context.AfterFunc(ctx, c.interrupt)
	resp, err := c.roundTrip(req)
	if err != nil {
		stop()
		_ = c.raw.Close()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
	resp.Body = &turnBody{ReadCloser: resp.Body, turns: t, turn: c, stop: stop, once: resp.Close || req.Close, empty: resp.Body == http.NoBody}
	return resp, nil
}

// interrupt ends whatever is under way.
func (c *turnConn) interrupt() { _ = c.raw.SetDeadline(longAgo) }

func (c *turnConn) roundTrip(req *http.Request) (*http.Response, error) {
	if err := req.Write(c.w); err != nil {
		return nil, err
	}
	if err := c.w.Flush(); err != nil {
		return nil, err
	}
	return c.answer(req)
}

// answer reads the header of the next answer, which is that to req.
func (c *turnConn) answer(req *http.Request) (*http.Response, error) {
	c.in.left = maxHeader
	for range maxEarly + 1 {
		resp, err := http.ReadResponse(c.r, req)
		switch {
		case err != nil:
			return nil, err
		case resp.StatusCode >= http.StatusOK:
			c.in.left = math.MaxInt // bodies are bounded by who reads them
			return resp, nil
		case resp.StatusCode == http.StatusSwitchingProtocols:
			return nil, errEarly
		}
	}
	return nil, errEarly
}

var errEarly = errors.New("the server answers with something else than an answer")

// leave ends the turn of a connection, which is kept if it can be used again.
func (t *turns) leave(c *turnConn, again bool) {
	if again {
		t.give(c)
		return
	}
	_ = c.raw.Close()
}

// give keeps a connection for the next, for a while.
func (t *turns) give(c *turnConn) {
	c.used = time.Now()
	t.mu.Lock()
	c, t.idle = t.idle, c
	if !t.timed {
		t.timed = true
		time.AfterFunc(maxTurnIdle, t.expire)
	}
	t.mu.Unlock()
	c.close()
}

// expire closes the connection if nobody has used it for long.
func (t *turns) expire() {
	t.mu.Lock()
	c := t.idle
	if c != nil {
		if left := maxTurnIdle - time.Since(c.used); left > 0 {
			time.AfterFunc(left, t.expire)
			t.mu.Unlock()
			return
		}
	}
	t.idle, t.timed = nil, false
	t.mu.Unlock()
	c.close()
}

func (t *turns) closeIdle() { t.takeIdle().close() }

// close ends a connection in order, if there is one.
func (c *turnConn) close() {
	if c != nil {
		_ = c.conn.Close()
	}
}

// turnBody is the answer to a request in turn. What is left of it when it is closed is not waited for: the connection is closed, too.
type turnBody struct {
	io.ReadCloser
	turns *turns
	turn  *turnConn
	stop  func() bool
	once  bool // the connection is not used again
	empty bool // there is nothing to read
	read  atomic.Bool
	ended atomic.Bool
}

// Read reads on.
func (b *turnBody) Read(p []byte) (int, error) {
	switch {
	case b.read.Load():
		return 0, io.EOF
	case b.ended.Load():
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		whole := err == io.EOF //nolint:errorlint // nothing wraps it where the body is at its end
		b.read.Store(whole)
		b.end(whole)
	}
	return n, err
}

// Close ends the request. It may be called more than once, and beside Read.
func (b *turnBody) Close() error {
	b.end(b.empty)
	return nil
}

func (b *turnBody) end(whole bool) {
	if b.ended.Swap(true) {
		return
	}
	b.turns.leave(b.turn, b.stop() && whole && !b.once)
}

var errHeaderTooLarge = fmt.Errorf("the header of the answer is larger than %d MiB", maxHeader>>20)
