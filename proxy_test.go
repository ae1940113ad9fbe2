package mothership_test

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// fault answers a request in the server's place, and says whether it did.
type fault func(w http.ResponseWriter, r *http.Request) bool

// proxy stands before a real API server and has faults on demand. It is safe for concurrent use.
type proxy struct {
	cfg *rest.Config

	mu     sync.Mutex
	fault  fault // guarded by mu; nil has none
	struck int   // how often it answered; guarded by mu
}

func newProxy(t *testing.T, behind *rest.Config) *proxy {
	t.Helper()
	target, err := url.Parse(behind.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(behind)
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(target)
	forward.Transport, forward.ErrorLog = transport, log.New(io.Discard, "", 0)
	p := &proxy{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !p.strike(w, r) {
			forward.ServeHTTP(w, r)
		}
	}))
	server.Config.ErrorLog, server.EnableHTTP2 = forward.ErrorLog, true
	server.StartTLS()
	t.Cleanup(server.Close)
	p.cfg = &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: pemOf(server)}}
	return p
}

// pemOf is the certificate of a test server.
func pemOf(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

func (p *proxy) strike(w http.ResponseWriter, r *http.Request) bool {
	p.mu.Lock()
	f := p.fault
	p.mu.Unlock()
	if f == nil {
		return false
	}
	done := true // also if it panics
	defer func() {
		if done {
			p.mu.Lock()
			p.struck++
			p.mu.Unlock()
		}
	}()
	done = f(w, r)
	return done
}

// has gives the proxy a fault, or none.
func (p *proxy) has(f fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault, p.struck = f, 0
}

func (p *proxy) strikes() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.struck
}

// at limits a fault to requests of a method and a part of the path; empty ones match all.
func at(method, path string, f fault) fault {
	return func(w http.ResponseWriter, r *http.Request) bool {
		return (method == "" || r.Method == method) && strings.Contains(r.URL.Path, path) && f(w, r)
	}
}

// times limits a fault to the first requests that it is meant for.
func times(n int, f fault) fault {
	var left atomic.Int64
	left.Store(int64(n))
	return func(w http.ResponseWriter, r *http.Request) bool {
		if left.Add(-1) < 0 {
			return false
		}
		done := f(w, r)
		if !done {
			left.Add(1)
		}
		return done
	}
}

// says answers with a Status, as a Kubernetes API does.
func says(code int, reason metav1.StatusReason, message string) fault {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: int32(code), Reason: reason, Message: message,
		})
		return true
	}
}

// page answers with something that no Kubernetes API says.
func page(code int, contentType, text string) fault {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, text)
		return true
	}
}

// hangs keeps the request until its sender gives up.
func hangs(_ http.ResponseWriter, r *http.Request) bool {
	<-r.Context().Done()
	return true
}

// refuses ends the connection without an answer.
func refuses(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }
