package source

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// serve runs a server for a test.
func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv
}

// hurried is a Mux whose pauses between attempts are noted, not waited for.
func hurried(o Options) (*Mux, *[]time.Duration) {
	if o.Limits == (Limits{}) {
		o.Limits = small
	}
	m, pauses := New(o), &[]time.Duration{}
	m.web.pause = func(_ context.Context, d time.Duration) error {
		*pauses = append(*pauses, d)
		return nil
	}
	return m, pauses
}

func TestDownload(t *testing.T) {
	t.Parallel()
	data := packFiles(t, "demo/Chart.yaml", "name: demo")
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "me" || password != "pw" || r.URL.RawQuery != "q=1" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write(data)
	})
	m, _ := hurried(Options{})
	ref := urlRef(Chart, strings.Replace(srv.URL, "://", "://me:pw@", 1)+"/demo.tgz?q=1#fragment")
	ref.Digest = BytesDigest(data)
	tree, err := m.Fetch(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	wantPaths(t, tree, "demo/Chart.yaml")
	if tree.Trusted || tree.Digest != ref.Digest {
		t.Errorf("tree is %+v", tree)
	}

	ref.Digest = BytesDigest(nil)
	_, err = m.Fetch(t.Context(), ref)
	wantError(t, err, ErrDigest, ref.Digest, BytesDigest(data), srv.URL+"/demo.tgz")
	if strings.Contains(err.Error(), "pw") || strings.Contains(err.Error(), "q=1") {
		t.Errorf("message shows a credential: %v", err)
	}
}

func TestDownloadStatus(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status, requests int
		reason           error
	}{
		{401, 1, ErrDenied}, {403, 1, ErrDenied}, {404, 1, ErrNotFound}, {410, 1, ErrNotFound}, {418, 1, ErrUnsupported},
		{204, 1, ErrUnsupported}, {206, 1, ErrUnsupported}, {304, 1, ErrUnsupported},
		{429, 3, ErrUnavailable}, {500, 3, ErrUnavailable}, {503, 3, ErrUnavailable},
	}
	for _, tc := range tests {
		t.Run(fmt.Sprint(tc.status), func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int32
			srv := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				requests.Add(1)
				w.Header().Set("Retry-After", "3600")
				w.WriteHeader(tc.status)
			})
			m, pauses := hurried(Options{})
			_, err := m.Fetch(t.Context(), urlRef(Chart, srv.URL+"/x.tgz"))
			wantError(t, err, tc.reason, fmt.Sprintf("downloading %s/x.tgz: server answers %d", srv.URL, tc.status))
			if e, ok := errors.AsType[*Error](err); !ok || e.Status != tc.status {
				t.Errorf("error is %#v", err)
			}
			if int(requests.Load()) != tc.requests {
				t.Errorf("%d requests, want %d", requests.Load(), tc.requests)
			}
			for _, p := range *pauses {
				if p != maxRetryAfter {
					t.Errorf("pause is %s, want the longest that Retry-After may ask for", p)
				}
			}
		})
	}
}

func TestDownloadTriesAgain(t *testing.T) {
	t.Parallel()
	failures := map[string]http.HandlerFunc{
		"Unavailable": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"Reset":       func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"EndsInTheMiddle": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte("a: 1"))
		},
	}
	for name, fail := range failures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int32
			srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if requests.Add(1) < 3 {
					fail(w, r)
					return
				}
				_, _ = w.Write([]byte("a: 1"))
			})
			m, pauses := hurried(Options{})
			if _, err := m.Fetch(t.Context(), urlRef(Manifests, srv.URL+"/x.yaml")); err != nil {
				t.Fatal(err)
			}
			if n := len(*pauses); n != 2 || (*pauses)[1] <= 0 || (*pauses)[1] > time.Second {
				t.Errorf("pauses are %v", *pauses)
			}
		})
	}
	t.Run("NothingListens", func(t *testing.T) {
		t.Parallel()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		m, pauses := hurried(Options{Attempts: 2})
		_, err = m.Fetch(t.Context(), urlRef(Manifests, "http://"+l.Addr().String()+"/x.yaml"))
		wantError(t, err, ErrUnavailable, "cannot be reached")
		if len(*pauses) != 1 {
			t.Errorf("pauses are %v", *pauses)
		}
	})
}

// stall answers some bytes and then nothing until the client goes away.
func stall(w http.ResponseWriter, r *http.Request) {
	_, _ = w.Write([]byte("a: 1\n"))
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

func TestDownloadStalls(t *testing.T) {
	t.Parallel()
	silent := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for name, h := range map[string]http.HandlerFunc{"InTheMiddle": stall, "BeforeTheAnswer": silent} {
		t.Run(name+"/Timeout", func(t *testing.T) {
			t.Parallel()
			m, _ := hurried(Options{Timeout: 50 * time.Millisecond})
			_, err := m.Fetch(t.Context(), urlRef(Manifests, serve(t, h).URL))
			wantError(t, err, ErrUnavailable, "did not end within 50ms")
			wantError(t, err, context.DeadlineExceeded)
		})
		t.Run(name+"/Silence", func(t *testing.T) {
			t.Parallel()
			m, pauses := hurried(Options{Stall: 20 * time.Millisecond})
			_, err := m.Fetch(t.Context(), urlRef(Manifests, serve(t, h).URL))
			wantError(t, err, ErrUnavailable, "server stalls")
			if len(*pauses) != 2 {
				t.Errorf("pauses are %v", *pauses)
			}
		})
		t.Run(name+"/Cancelled", func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
				cancel()
				h(w, r)
			})
			m, pauses := hurried(Options{})
			_, err := m.Fetch(ctx, urlRef(Manifests, srv.URL))
			wantError(t, err, context.Canceled)
			if errors.Is(err, ErrUnavailable) || len(*pauses) != 0 {
				t.Errorf("error is %v, pauses are %v", err, *pauses)
			}
		})
	}
}

func TestDownloadIsBounded(t *testing.T) {
	t.Parallel()
	endless := func(w http.ResponseWriter, _ *http.Request) {
		chunk := []byte(strings.Repeat("a", 32<<10))
		for {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}
	announced := func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "9999999999") }
	m, _ := hurried(Options{})
	_, err := m.Fetch(t.Context(), urlRef(Manifests, serve(t, endless).URL))
	wantError(t, err, ErrTooLarge, "server sends more than the limit of 1048576 bytes")
	_, err = m.Fetch(t.Context(), urlRef(Manifests, serve(t, announced).URL))
	wantError(t, err, ErrTooLarge, "server announces 9999999999 bytes")
}

func TestDownloadShorterLength(t *testing.T) {
	t.Parallel()
	data := packFiles(t, "demo/Chart.yaml", "name: demo")
	srv := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n%s", data) // beyond 40 is never read
	})
	m, _ := hurried(Options{})
	_, err := m.Fetch(t.Context(), urlRef(Chart, srv.URL))
	wantError(t, err, ErrInvalid, "cut off")
}

func TestDownloadRedirects(t *testing.T) {
	t.Parallel()
	target := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" || r.Header.Get("Referer") != "" {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		_, _ = w.Write([]byte("a: 1\n"))
	})
	_, port, err := net.SplitHostPort(target.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		location     string
		allowPrivate bool
		err          error
		says         string
	}{
		"SameHost":        {location: target.URL + "/x.yaml?token=secret"},
		"Relative":        {location: "/final"},
		"Metadata":        {location: "http://169.254.169.254/latest/meta-data", err: ErrUnsafe, says: "169.254.169.254, a private address"},
		"MappedMetadata":  {location: "http://[::ffff:169.254.169.254]/", err: ErrUnsafe, says: "a private address"},
		"Loopback6":       {location: "http://[::1]:" + port + "/", err: ErrUnsafe, says: "a private address"},
		"NameOfLoopback":  {location: "http://localhost:" + port + "/", err: ErrUnsafe, says: "a private address"},
		"OtherLoopback":   {location: "http://127.0.0.2:" + port + "/", err: ErrUnsafe, says: "a private address"},
		"PrivateNetwork":  {location: "http://10.0.0.1/", err: ErrUnsafe, says: "a private address"},
		"AllowedLoopback": {location: "http://localhost:" + port + "/", allowPrivate: true},
		"Loop":            {location: "/loop", err: ErrUnsupported, says: "redirects more than 5 times"},
		"File":            {location: "file:///etc/passwd", err: ErrUnsupported, says: `scheme "file"`},
		"NoLocation":      {location: "", err: ErrInvalid, says: "no address"},
		"BadLocation":     {location: "http://secret:%zz", err: ErrInvalid, says: "no address"},
		"UserInfoDropped": {location: strings.Replace(target.URL, "://", "://secret:secret@", 1)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/final" {
					_, _ = w.Write([]byte("a: 1\n"))
					return
				}
				w.Header().Set("Location", tc.location)
				w.WriteHeader(http.StatusFound)
			})
			m, _ := hurried(Options{AllowPrivate: tc.allowPrivate})
			start := strings.Replace(srv.URL, "://", "://user:secret@", 1) + "/start?secret"
			_, err := m.Fetch(t.Context(), urlRef(Manifests, start))
			if tc.err == nil {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			wantError(t, err, tc.err, tc.says)
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("message shows a credential: %v", err)
			}
		})
	}
}

func TestDownloadTLS(t *testing.T) {
	t.Parallel()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/down" {
			http.Redirect(w, r, "http://"+r.Host+"/x", http.StatusMovedPermanently)
			return
		}
		_, _ = w.Write([]byte("a: 1\n"))
	}))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes that end here on purpose
	srv.StartTLS()
	t.Cleanup(srv.Close)
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	m, _ := hurried(Options{RootCAs: roots})
	if _, err := m.Fetch(t.Context(), urlRef(Manifests, srv.URL)); err != nil {
		t.Fatal(err)
	}
	_, err := m.Fetch(t.Context(), urlRef(Manifests, srv.URL+"/down"))
	wantError(t, err, ErrUnsafe, "redirects from https to http")

	stranger, pauses := hurried(Options{RootCAs: x509.NewCertPool()})
	_, err = stranger.Fetch(t.Context(), urlRef(Manifests, srv.URL))
	wantError(t, err, ErrDenied, "certificate is not trusted")
	if len(*pauses) != 0 {
		t.Errorf("pauses are %v", *pauses)
	}
}

func TestDownloadThroughProxy(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 10)
	proxy := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.String()
		if r.URL.Path == "/redirect" {
			w.Header().Set("Location", "http://169.254.169.254/latest")
			w.WriteHeader(http.StatusFound)
			return
		}
		_, _ = w.Write([]byte("a: 1\n"))
	})
	m, _ := hurried(Options{})
	m.web.proxies = func(*http.Request) (*url.URL, error) { return url.Parse(proxy.URL) }
	if _, err := m.Fetch(t.Context(), urlRef(Manifests, "http://charts.example.com/x.yaml")); err != nil {
		t.Fatal(err)
	}
	if got := <-asked; got != "http://charts.example.com/x.yaml" {
		t.Errorf("proxy was asked for %s", got)
	}
	_, err := m.Fetch(t.Context(), urlRef(Manifests, "http://charts.example.com/redirect"))
	wantError(t, err, ErrUnsafe, "169.254.169.254, a private address")

	m.web.proxies = func(*http.Request) (*url.URL, error) { return nil, errors.New("secret") }
	_, err = m.Fetch(t.Context(), urlRef(Manifests, "http://charts.example.com/x.yaml"))
	wantError(t, err, ErrInvalid, "proxy's address in the environment is malformed")
}

func TestCanonicalAddr(t *testing.T) {
	t.Parallel()
	for proxy, want := range map[string]string{
		"http://proxy": "proxy:80", "https://proxy": "proxy:443", "socks5://proxy": "proxy:1080", "http://[::1]:3128": "[::1]:3128",
	} {
		u, err := url.Parse(proxy)
		if err != nil {
			t.Fatal(err)
		}
		if got := canonicalAddr(u); got != want {
			t.Errorf("%s is dialled at %s, want %s", proxy, got, want)
		}
	}
}

func TestGuardAllow(t *testing.T) {
	t.Parallel()
	public := netip.MustParseAddr("93.184.216.34")
	private := netip.MustParseAddr("10.1.2.3")
	g := &guard{origin: "charts.example.com"}
	steps := []struct {
		host string
		addr netip.Addr
		ok   bool
	}{
		{"Charts.Example.com", private, true}, // an address of its own network, named by the reference
		{"other.example.com", private, false},
		{"other.example.com", public, true},
		{"charts.example.com", public, true},
		{"charts.example.com", private, false}, // the name changed its address
	}
	for i, s := range steps {
		if err := g.allow(s.host, s.addr); (err == nil) != s.ok {
			t.Errorf("step %d: %s at %s: %v", i, s.host, s.addr, err)
		}
	}
}

func TestIsPrivate(t *testing.T) {
	t.Parallel()
	private := []string{"127.0.0.1", "::1", "0.0.0.0", "::", "10.0.0.1", "172.16.0.1", "192.168.0.1", "169.254.169.254", "fe80::1",
		"fd00:ec2::254", "100.100.100.200", "168.63.129.16", "192.0.0.192", "224.0.0.1", "255.255.255.255", "::ffff:127.0.0.1",
		"64:ff9b::7f00:1", "2002:7f00:1::", "fe80::1%eth0"}
	for _, a := range private {
		if !isPrivate(netip.MustParseAddr(a)) {
			t.Errorf("%s passes for public", a)
		}
	}
	for _, a := range []string{"93.184.216.34", "2606:2800:220:1::1", "172.32.0.1", "100.128.0.1"} {
		if isPrivate(netip.MustParseAddr(a)) {
			t.Errorf("%s passes for private", a)
		}
	}
}

func TestDownloadTimeoutInPause(t *testing.T) {
	t.Parallel()
	srv := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	m := New(Options{Timeout: 200 * time.Millisecond})
	m.web.pause = func(ctx context.Context, _ time.Duration) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	_, err := m.Fetch(t.Context(), urlRef(Manifests, srv.URL))
	wantError(t, err, ErrUnavailable, "server answers 502 Bad Gateway")
}

func TestPauseEndsWithContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantError(t, pause(ctx, time.Hour), context.Canceled)
	if err := pause(t.Context(), time.Nanosecond); err != nil {
		t.Error(err)
	}
}

func TestDelay(t *testing.T) {
	t.Parallel()
	for n := range 10 {
		most := 200 * time.Millisecond << min(n, 6) * 3 / 2
		if d := delay(n, nil); d < most/3 || d > most {
			t.Errorf("delay %d is %s", n, d)
		}
	}
	date := time.Now().Add(5 * time.Second).UTC().Format(http.TimeFormat)
	if d := delay(0, retryAfter(date)); d < 3*time.Second || d > 5*time.Second {
		t.Errorf("delay until a date is %s", d)
	}
	for _, h := range []string{"", "-1", "soon", "Mon, 02 Jan 2006 15:04:05 GMT"} {
		if err := retryAfter(h); err != nil {
			t.Errorf("Retry-After %q is %v", h, err)
		}
	}
}
