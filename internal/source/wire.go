package source

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// maxRedirects bounds how often a server may send us elsewhere.
const maxRedirects = 5

// wire is how one fetch speaks HTTP: to the server of its reference, and to whom that sends us, if the guard allows it.
type wire struct {
	d      *downloader
	origin *url.URL
	creds  *Credentials
	rt     http.RoundTripper
	// transports of rt, to be closed.
	transports []*http.Transport
}

// open prepares to speak to the server of a reference.
func (d *downloader) open(ref Ref, address string) (*wire, error) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return nil, refuse(ErrInvalid, "", "this is not an address")
	}
	roots, err := d.rootsOf(ref)
	if err != nil {
		return nil, err
	}
	w := &wire{d: d, origin: u, creds: ref.creds}
	if w.creds == nil {
		w.creds = ofAddress(u)
	}
	cert, err := w.creds.certificate()
	if err != nil {
		return nil, err
	}
	g := d.guard(u.Hostname())
	w.rt = w.via(g.transport(roots))
	if cert != nil {
		known := g.transport(roots)
		known.TLSClientConfig.Certificates = []tls.Certificate{*cert}
		w.rt = &certified{origin: u, known: w.via(known), unknown: w.rt}
	}
	return w, nil
}

// via sends requests to mirrors, over a transport that is closed with the wire.
func (w *wire) via(t *http.Transport) http.RoundTripper {
	w.transports = append(w.transports, t)
	return &mirrored{t, w.d.mirrors}
}

// certified shows the client certificate to the reference's own server only.
type certified struct {
	origin         *url.URL
	known, unknown http.RoundTripper
}

// RoundTrip judges by the host that was meant.
func (c *certified) RoundTrip(req *http.Request) (*http.Response, error) {
	if sameOrigin(c.origin, req.URL) {
		return c.known.RoundTrip(req)
	}
	return c.unknown.RoundTrip(req)
}

// guard watches over the connections of one fetch.
func (d *downloader) guard(origin string) *guard {
	return &guard{origin: origin, allowPrivate: d.allowPrivate, private: d.private, mirrors: d.mirrors, proxies: d.proxies}
}

// rootsOf are the authorities that may have signed a server's certificate.
func (d *downloader) rootsOf(ref Ref) (*x509.CertPool, error) {
	if ref.CABundle == "" {
		return d.roots, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(ref.CABundle)) {
		return nil, refuse(ErrInvalid, "", "caBundle holds no PEM certificate")
	}
	return pool, nil
}

func (w *wire) close() {
	for _, t := range w.transports {
		t.CloseIdleConnections()
	}
}

// ask is one request.
type ask struct {
	url *url.URL
	// method is GET by default.
	method string
	// etag of what we have: a server that has the same answers 304.
	etag string
	// body and its type, which are never sent to another place than url.
	body        []byte
	contentType string
}

// answer is what a server sent.
type answer struct {
	// data is nil where the server has the same as we.
	data []byte
	etag string
	// url and contentType of the answer, after redirects.
	url         *url.URL
	contentType string
}

// bytes requests and reads to the end, as often as it is worth trying.
func (w *wire) bytes(ctx context.Context, a ask) (*answer, error) {
	var got *answer
	err := w.d.retry(ctx, func(ctx context.Context, alive func()) (err error) {
		got, err = w.attempt(ctx, a, alive)
		return err
	})
	if err != nil {
		return nil, err
	}
	return got, nil
}

// attempt is one download.
func (w *wire) attempt(ctx context.Context, a ask, alive func()) (*answer, error) {
	resp, err := w.do(ctx, a)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	got := &answer{etag: resp.Header.Get("Etag"), url: resp.Request.URL, contentType: resp.Header.Get("Content-Type")}
	if resp.StatusCode == http.StatusNotModified && a.etag != "" {
		return got, nil
	}
	if err := statusError(resp); err != nil {
		return nil, err
	}
	if limit := w.d.limits.Download; resp.ContentLength > limit {
		return nil, refuse(ErrTooLarge, "", "server announces %d bytes, the limit is %d", resp.ContentLength, limit)
	}
	got.data, err = w.d.body(ctx, &touching{resp.Body, alive})
	return got, err
}

// body reads what the server sends, whatever length it announced.
func (d *downloader) body(ctx context.Context, r io.Reader) ([]byte, error) {
	var data bytes.Buffer
	n, err := io.Copy(&data, io.LimitReader(r, d.limits.Download+1))
	if err == nil {
		err = context.Cause(ctx) // an answer to our hanging up is none
	}
	if err != nil {
		return nil, transportError(ctx, err, "ended in the middle")
	}
	if n > d.limits.Download {
		return nil, refuse(ErrTooLarge, "", "server sends more than the limit of %d bytes", d.limits.Download)
	}
	return data.Bytes(), nil
}

// do requests an address and follows redirects. It is done here and not by http.Client because a redirect is hostile
// until checked: nothing of the first request (credentials, query, referrer) goes to another server.
func (w *wire) do(ctx context.Context, a ask) (*http.Response, error) {
	for range maxRedirects + 1 {
		resp, err := w.request(ctx, a)
		if err != nil {
			return nil, err
		}
		if !isRedirect(resp.StatusCode) {
			return resp, nil
		}
		_ = resp.Body.Close()
		if a.body != nil {
			return nil, refuse(ErrUnsupported, "", "server redirects what is sent to it: refused")
		}
		if a.url, err = redirect(a.url, resp.Header.Get("Location")); err != nil {
			return nil, err
		}
	}
	return nil, refuse(ErrUnsupported, "", "server redirects more than %d times", maxRedirects)
}

// request sends one request.
func (w *wire) request(ctx context.Context, a ask) (*http.Response, error) {
	bare := *a.url
	bare.User, bare.Fragment = nil, ""
	if a.method == "" {
		a.method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(ctx, a.method, bare.String(), bytes.NewReader(a.body))
	if err != nil {
		return nil, refuse(ErrInvalid, "", "this is not an address")
	}
	w.dress(req, a)
	resp, err := w.rt.RoundTrip(req)
	if err != nil {
		return nil, transportError(ctx, err, "cannot be reached")
	}
	return resp, nil
}

// dress adds headers. Credentials go to the reference's own server only.
func (w *wire) dress(req *http.Request, a ask) {
	req.Header.Set("User-Agent", "mothership")
	req.Header.Set("Accept", "application/gzip, application/x-tar, application/zip, application/yaml, */*;q=0.5")
	if a.etag != "" {
		req.Header.Set("If-None-Match", a.etag)
	}
	if a.contentType != "" {
		req.Header.Set("Content-Type", a.contentType)
	}
	if sameOrigin(w.origin, req.URL) {
		w.creds.sign(req)
	}
}

// sameOrigin says whether two addresses are of one server.
func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && portOf(a) == portOf(b)
}

func portOf(u *url.URL) string {
	if port := u.Port(); port != "" {
		return port
	}
	return map[string]string{"http": "80", "https": "443"}[u.Scheme]
}

// redirect is the address that a server sends us to, if that is allowed.
func redirect(from *url.URL, location string) (*url.URL, error) {
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
