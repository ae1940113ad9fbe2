package source

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"time"
)

// maxRetryAfter bounds what a server's Retry-After can ask for.
const maxRetryAfter = 10 * time.Second

// retry tries as often as allowed, as long as the server is unavailable. Each attempt has a context of its own that
// ends when alive was not called for a while.
func (d *downloader) retry(ctx context.Context, try func(ctx context.Context, alive func()) error) error {
	var last error
	for n := range d.attempts {
		last = d.once(ctx, try)
		if !errors.Is(last, ErrUnavailable) || n == d.attempts-1 || ctx.Err() != nil {
			return last
		}
		if d.pause(ctx, delay(n, last)) != nil {
			return last
		}
	}
	return last
}

// once is one attempt.
func (d *downloader) once(ctx context.Context, try func(ctx context.Context, alive func()) error) error {
	ctx, alive, stop := watch(ctx, d.stall)
	defer stop()
	return try(ctx, alive)
}

// retryAfterError is how long a server asks us to wait.
type retryAfterError time.Duration

func (r retryAfterError) Error() string { return "it asks to wait " + time.Duration(r).String() }

// retryAfter reads seconds or a date (RFC 9110, section 10.2.3); nil if there is neither.
func retryAfter(header string) error {
	if s, err := strconv.Atoi(header); err == nil && s > 0 {
		return retryAfterError(time.Duration(min(s, 24*3600)) * time.Second)
	}
	if t, err := http.ParseTime(header); err == nil && time.Until(t) > 0 {
		return retryAfterError(time.Until(t).Round(time.Second))
	}
	return nil
}

// delay before the next attempt: 200 ms, doubled each time, give or take half of it, or what the server asks for.
func delay(n int, err error) time.Duration {
	if after, ok := errors.AsType[retryAfterError](err); ok {
		return min(time.Duration(after), maxRetryAfter)
	}
	d := 200 * time.Millisecond << min(n, 6)
	return d/2 + rand.N(d)
}

// pause waits, or ends with the context.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// errStalled is the cause of the end of an attempt whose server was silent for too long.
var errStalled = errors.New("server stalls")

// watch ends the context when alive was not called for a while. stop releases everything.
func watch(ctx context.Context, d time.Duration) (_ context.Context, alive, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	t := time.AfterFunc(d, func() { cancel(errStalled) })
	return ctx, func() { t.Reset(d) }, func() { t.Stop(); cancel(nil) }
}

// touching calls alive for each read that brought something.
type touching struct {
	io.Reader
	alive func()
}

func (t *touching) Read(p []byte) (int, error) {
	n, err := t.Reader.Read(p)
	if n > 0 {
		t.alive()
	}
	return n, err
}

// transportError says whether an error of the connection is a refusal of ours, for ever, or may be gone next time.
func transportError(ctx context.Context, err error, problem string) error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	var (
		dns  *net.DNSError
		cert *tls.CertificateVerificationError
		op   *net.OpError
	)
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, errStalled), errors.Is(cause, errTimeout):
		return &Error{Problem: problem, Reason: ErrUnavailable, Err: cause}
	case cause != nil:
		return &Error{Problem: problem, Err: cause}
	case errors.As(err, &dns) && dns.IsNotFound:
		return &Error{Problem: "host does not exist", Reason: ErrNotFound, Err: err}
	case errors.As(err, &cert):
		return &Error{Problem: "server's certificate is not trusted", Reason: ErrDenied, Err: err}
	case errors.As(err, &op) && op.Op == "remote error": // an alert of TLS
		return &Error{Problem: "server refuses to speak TLS with us: does it want another client certificate (tls.crt, tls.key)?", Reason: ErrDenied, Err: err}
	}
	return &Error{Problem: problem, Reason: ErrUnavailable, Err: err}
}
