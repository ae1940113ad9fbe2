package remote

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// connectTimeout and handshakeTimeout bound what comes before a request: a server that is there takes up a connection at
	// once, however busy it is. The first leaves time for one repetition of what got lost.
	connectTimeout   = 3 * time.Second
	handshakeTimeout = 5 * time.Second
	keepAlive        = 30 * time.Second
	// silence is how long a server has not answered for when Options.Contact applies.
	silence = 30 * time.Second
)

// errSilent is errDeadline for a server that has not answered for a while.
var errSilent = fmt.Errorf("%w, nor for a while", errDeadline)

// connecting bounds how long that takes, and gives requests the protocol that suits them. cfg is changed.
func connecting(cfg *rest.Config) {
	dial := cfg.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: connectTimeout, KeepAlive: keepAlive}).DialContext
	}
	cfg.Dial = gathered(dial)
	cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		t, ok := rt.(*http.Transport) // it is this configuration's own: see newGeneration
		if !ok {
			return rt
		}
		t.TLSHandshakeTimeout = handshakeTimeout
		return newProtocols(t, dial)
	})
}

// patience is the deadline of a request that is sent now, and the cause with which it ends the request.
func (g *gate) patience() (time.Duration, error) {
	if g.contact < g.timeout && time.Now().UnixNano()-g.heard.Load() > int64(silence) {
		return g.contact, errSilent
	}
	return g.timeout, errDeadline
}

// works says whether an answer shows that the server does its work, for us.
func works(code int) bool {
	return code < 500 && code != http.StatusUnauthorized && code != http.StatusTooManyRequests
}

// onceKey marks the context of calls that are not repeated.
type onceKey struct{}

// Once is a context whose calls are not repeated after failures: for a probe, a failure is an answer.
func Once(ctx context.Context) context.Context { return context.WithValue(ctx, onceKey{}, true) }

// mayRepeat says whether a call may be made again after a failed attempt.
func (c *Client) mayRepeat(ctx context.Context, attempt int, q *request, err *Error) bool {
	return attempt < c.retries && q.retriable(err) && ctx.Value(onceKey{}) == nil
}

// rest waits between two attempts.
func (c *Client) rest(ctx context.Context, delay time.Duration) error {
	answered := c.gate.ask(ctx, false)
	defer answered(false)
	return c.pause(ctx, delay)
}
