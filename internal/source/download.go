package source

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// maxRedirects bounds how often a server may send us elsewhere.
const maxRedirects = 5

// maxRetryAfter bounds what a server's Retry-After can ask for.
const maxRetryAfter = 10 * time.Second

// downloader is the Fetcher of http and https. Every download has a transport of its own, so that no connection that
// was allowed for one reference is used for another, and none outlives it.
type downloader struct {
	limits       Limits
	timeout      time.Duration
	stall        time.Duration
	attempts     int
	allowPrivate bool
	roots        *x509.CertPool
	// proxies chooses the proxy of a request; tests replace it.
	proxies func(*http.Request) (*url.URL, error)
	// pause waits between attempts; tests replace it.
	pause func(context.Context, time.Duration) error
}

var _ Fetcher = (*downloader)(nil)

func newDownloader(o Options) *downloader {
	d := &downloader{
		limits: o.Limits.withDefaults(), timeout: o.Timeout, stall: o.Stall, attempts: orDefault(o.Attempts, 3),
		allowPrivate: o.AllowPrivate, roots: o.RootCAs, proxies: http.ProxyFromEnvironment, pause: pause,
	}
	if d.stall <= 0 {
		d.stall = 20 * time.Second
	}
	return d
}

// Fetch downloads, verifies and unpacks.
func (d *downloader) Fetch(ctx context.Context, ref Ref) (*Tree, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, d.timeout, errTimeout)
	defer cancel()
	u, err := url.Parse(ref.URL)
	if err != nil || u.Hostname() == "" {
		return nil, at("downloading", ref.String(), refuse(ErrInvalid, "", "this is not an address"))
	}
	data, err := d.download(ctx, u)
	if err != nil {
		return nil, at("downloading", ref.String(), err)
	}
	return Unpack(ctx, ref, data, d.limits)
}

// download tries as often as allowed, as long as the server is unavailable.
func (d *downloader) download(ctx context.Context, u *url.URL) ([]byte, error) {
	g := &guard{origin: u.Hostname(), allowPrivate: d.allowPrivate, proxies: d.proxies}
	transport := g.transport(d.roots)
	defer transport.CloseIdleConnections()
	var last error
	for n := range d.attempts {
		data, err := d.attempt(ctx, transport, u)
		if !errors.Is(err, ErrUnavailable) {
			return data, err
		}
		last = err
		if n == d.attempts-1 || ctx.Err() != nil {
			break
		}
		if err := d.pause(ctx, delay(n, err)); err != nil {
			break
		}
	}
	return nil, last
}

// attempt is one download.
func (d *downloader) attempt(ctx context.Context, rt http.RoundTripper, u *url.URL) ([]byte, error) {
	ctx, alive, stop := watch(ctx, d.stall)
	defer stop()
	resp, err := d.get(ctx, rt, u)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if err := statusError(resp); err != nil {
		return nil, err
	}
	if resp.ContentLength > d.limits.Download {
		return nil, refuse(ErrTooLarge, "", "server announces %d bytes, the limit is %d", resp.ContentLength, d.limits.Download)
	}
	return d.body(ctx, &touching{resp.Body, alive})
}

// body reads what the server sends, whatever length it announced.
func (d *downloader) body(ctx context.Context, r io.Reader) ([]byte, error) {
	var data bytes.Buffer
	n, err := io.Copy(&data, io.LimitReader(r, d.limits.Download+1))
	if err != nil {
		return nil, transportError(ctx, err, "ended in the middle")
	}
	if n > d.limits.Download {
		return nil, refuse(ErrTooLarge, "", "server sends more than the limit of %d bytes", d.limits.Download)
	}
	return data.Bytes(), nil
}

// get requests an address and follows redirects. It is done here and not by http.Client because a redirect is hostile
// until checked: nothing of the first request (credentials, query, referrer) goes to the next server.
func (d *downloader) get(ctx context.Context, rt http.RoundTripper, u *url.URL) (*http.Response, error) {
	for range maxRedirects + 1 {
		resp, err := d.request(ctx, rt, u)
		if err != nil {
			return nil, err
		}
		if !isRedirect(resp.StatusCode) {
			return resp, nil
		}
		_ = resp.Body.Close()
		if u, err = d.redirect(u, resp.Header.Get("Location")); err != nil {
			return nil, err
		}
	}
	return nil, refuse(ErrUnsupported, "", "server redirects more than %d times", maxRedirects)
}

// request sends one GET.
func (d *downloader) request(ctx context.Context, rt http.RoundTripper, u *url.URL) (*http.Response, error) {
	bare := *u
	bare.User, bare.Fragment = nil, ""
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, bare.String(), nil)
	if err != nil {
		return nil, refuse(ErrInvalid, "", "this is not an address")
	}
	req.Header.Set("User-Agent", "mothership")
	req.Header.Set("Accept", "application/gzip, application/x-tar, application/yaml, */*;q=0.5")
	if password, ok := u.User.Password(); ok || u.User != nil {
		req.SetBasicAuth(u.User.Username(), password)
	}
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return nil, transportError(ctx, err, "cannot be reached")
	}
	return resp, nil
}

// redirect is the address that a server sends us to, if that is allowed.
func (d *downloader) redirect(from *url.URL, location string) (*url.URL, error) {
	to, err := from.Parse(location)
	switch {
	case err != nil || location == "":
		return nil, refuse(ErrInvalid, "", "server redirects to something that is no address")
	case to.Scheme != "http" && to.Scheme != "https":
		return nil, refuse(ErrUnsupported, "", "server redirects to an address of scheme %s: refused", quote(to.Scheme))
	case to.Hostname() == "":
		return nil, refuse(ErrInvalid, "", "server redirects to an address without a host")
	case from.Scheme == "https" && to.Scheme == "http":
		return nil, refuse(ErrUnsafe, "", "server redirects from https to http (%s): refused", Redact(to.String()))
	}
	to.User = nil
	return to, nil
}

func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect,
		http.StatusPermanentRedirect:
		return true
	}
	return false
}

// statusError is the error of an answer that is not 200.
func statusError(resp *http.Response) error {
	code := resp.StatusCode
	e := refuse(ErrUnsupported, "", "server answers %d %s", code, http.StatusText(code))
	e.Status = code
	switch {
	case code == http.StatusOK:
		return nil
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		e.Reason = ErrDenied
	case code == http.StatusNotFound, code == http.StatusGone:
		e.Reason = ErrNotFound
	case code == http.StatusTooManyRequests, code >= 500:
		e.Reason = ErrUnavailable
		e.Err = retryAfter(resp.Header.Get("Retry-After"))
	}
	return e
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
	}
	return &Error{Problem: problem, Reason: ErrUnavailable, Err: err}
}
