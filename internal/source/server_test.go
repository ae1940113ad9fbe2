package source

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// secure is an https server with a certificate that only its own authority has signed.
type secure struct {
	*httptest.Server
	// ca is for SourceRef.CABundle.
	ca string

	mu       sync.Mutex
	requests []string
}

// serveTLS runs an https server for a test and notes what it is asked for.
func serveTLS(t testing.TB, h http.Handler) *secure {
	t.Helper()
	return serveWith(t, h, nil)
}

// serveWith is serveTLS with a configuration.
func serveWith(t testing.TB, h http.Handler, config *tls.Config) *secure {
	t.Helper()
	s := &secure{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, r.Method+" "+r.URL.Path)
		s.mu.Unlock()
		h.ServeHTTP(w, r)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes that end here on purpose
	s.TLS = config
	s.StartTLS()
	t.Cleanup(s.Close)
	s.ca = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	return s
}

// asked counts the requests that begin so.
func (s *secure) asked(prefix string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, r := range s.requests {
		if strings.HasPrefix(r, prefix) {
			n++
		}
	}
	return n
}

// guarded lets in those with the right password or token.
func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if user == "me" && password == "s3cret" || r.Header.Get("Authorization") == "Bearer s3cret-token" {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Www-Authenticate", `Basic realm="test"`)
		w.WriteHeader(http.StatusUnauthorized)
	})
}

// git runs git in a folder, apart from whatever is configured on this machine.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com", "GIT_AUTHOR_DATE=2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE=2026-01-01T00:00:00Z")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// repository is a Git repository with a work tree, and a bare one that is served.
type repository struct {
	work, root string
}

// newRepository makes a repository with files in "path", "content" pairs on branch main.
func newRepository(t testing.TB, pairs ...string) *repository {
	t.Helper()
	r := &repository{work: write(t, pairs...), root: t.TempDir()}
	git(t, r.work, "init", "-q", "-b", "main")
	git(t, r.root, "init", "-q", "--bare", "-b", "main", "repo.git")
	r.commit(t)
	return r
}

// commit commits all that is in the work tree, publishes it, and returns the commit.
func (r *repository) commit(t testing.TB) string {
	t.Helper()
	git(t, r.work, "add", "-A")
	git(t, r.work, "commit", "-q", "--allow-empty", "-m", "change")
	return r.publish(t)
}

func (r *repository) publish(t testing.TB) string {
	t.Helper()
	git(t, r.work, "push", "-q", "--force", r.bare(), "refs/heads/*:refs/heads/*", "refs/tags/*:refs/tags/*")
	return git(t, r.work, "rev-parse", "HEAD")
}

func (r *repository) bare() string { return filepath.Join(r.root, "repo.git") }

// put writes a file into the work tree.
func (r *repository) put(t testing.TB, name, content string) {
	t.Helper()
	name = filepath.Join(r.work, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// handler serves the repository as Git's own server does.
func (r *repository) handler(t testing.TB) http.Handler {
	t.Helper()
	path, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	return &cgi.Handler{
		Path: path, Args: []string{"http-backend"}, Dir: r.root, Stderr: io.Discard,
		Env: []string{"GIT_PROJECT_ROOT=" + r.root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null"},
	}
}

// gitRef is a reference to a repository that a server has as /repo.git.
func gitRef(kind Kind, s *secure, ref, path string) Ref {
	return Ref{Kind: kind, SourceRef: v1beta2.SourceRef{
		Git: &v1beta2.GitSource{URL: s.URL + "/repo.git", Ref: ref, Path: path}, CABundle: s.ca,
	}}
}

// secrets are credentials by name.
func secrets(all map[string]*Credentials) CredentialsFunc {
	return func(_ context.Context, name string) (*Credentials, error) { return all[name], nil }
}

// with names credentials.
func (r Ref) with(name string) Ref {
	r.CredentialsRef = &v1beta2.SecretReference{Name: name}
	return r
}

// answering answers everything the same.
func answering(contentType, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, body)
	})
}

// redirecting sends everybody elsewhere.
func redirecting(to string) http.Handler { return http.RedirectHandler(to, http.StatusFound) }

// renaming redirects from an old path to a new one.
func renaming(next http.Handler, from, to string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rest, ok := strings.CutPrefix(r.URL.Path, from); ok {
			http.Redirect(w, r, to+rest+"?"+r.URL.RawQuery, http.StatusMovedPermanently)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// cutting hangs up in the middle of the answer to paths that end so.
func cutting(next http.Handler, suffix string, after int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, suffix) {
			next.ServeHTTP(w, r)
			return
		}
		rec := httptest.NewRecorder()
		next.ServeHTTP(rec, r)
		w.Header().Set("Content-Type", rec.Header().Get("Content-Type"))
		_, _ = w.Write(rec.Body.Bytes()[:after])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
}

// damaging changes a byte in the second half of the answer to paths that end so.
func damaging(next http.Handler, suffix string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		next.ServeHTTP(rec, r)
		body := rec.Body.Bytes()
		if strings.HasSuffix(r.URL.Path, suffix) {
			body[len(body)-30] ^= 0x55
		}
		w.Header().Set("Content-Type", rec.Header().Get("Content-Type"))
		w.WriteHeader(rec.Code)
		_, _ = w.Write(body)
	})
}

func mustURL(t testing.TB, address string) *url.URL {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// newCertificate makes a certificate that has signed itself, and its key.
func newCertificate(t testing.TB) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
}

// serveMutual is serveTLS for those with a client certificate only. TLS 1.2 says within the handshake if it is wrong, not some time later.
func serveMutual(t testing.TB, cert []byte, h http.Handler) *secure {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	return serveWith(t, h, &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12})
}
