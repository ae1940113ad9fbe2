package controlplane_test

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
)

// fault answers a request in the server's place, and says whether it did.
type fault func(w http.ResponseWriter, r *http.Request) bool

// proxy stands before a real API server, which it gives an identity of its own: so one server is as many runtimes as tests need.
// It counts what it is asked for and has faults on demand. It is safe for concurrent use.
type proxy struct {
	uid    string
	server *httptest.Server

	mu       sync.Mutex
	fault    fault    // nil has none
	requests []string // method and path of each
	token    string   // that it takes; empty takes all
}

// newProxy makes one before a server whose identity is known.
func newProxy(t *testing.T, behind *rest.Config, uid string) *proxy {
	t.Helper()
	target, err := url.Parse(behind.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(behind)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{uid: string(uuid.NewUUID())}
	forward := httputil.NewSingleHostReverseProxy(target)
	forward.Transport, forward.ErrorLog, forward.FlushInterval = transport, log.New(io.Discard, "", 0), -1
	forward.ModifyResponse = func(r *http.Response) error { return p.disguise(r, uid) }
	p.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !p.meets(w, r) {
			r.Header.Del("Authorization")
			forward.ServeHTTP(w, r)
		}
	}))
	p.server.Config.ErrorLog, p.server.EnableHTTP2 = forward.ErrorLog, true
	p.server.StartTLS()
	t.Cleanup(func() {
		p.server.CloseClientConnections()
		p.server.Close()
	})
	return p
}

// disguise replaces the identity in an answer.
func (p *proxy) disguise(r *http.Response, uid string) error {
	if r.Request.URL.Path != "/api/v1/namespaces/kube-system" {
		return nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	body = bytes.ReplaceAll(body, []byte(uid), []byte(p.uid))
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return nil
}

// meets counts a request, and answers it if there is a reason to.
func (p *proxy) meets(w http.ResponseWriter, r *http.Request) bool {
	p.mu.Lock()
	p.requests = append(p.requests, r.Method+" "+r.URL.Path)
	f, token := p.fault, p.token
	p.mu.Unlock()
	if token != "" && r.Header.Get("Authorization") != "Bearer "+token {
		return says(http.StatusUnauthorized, metav1.StatusReasonUnauthorized)(w, r)
	}
	return f != nil && f(w, r)
}

// has gives the proxy a fault, or none, and begins to count anew. Watches that are under way end, as they would if the server
// were struck.
func (p *proxy) has(f fault) {
	p.mu.Lock()
	p.fault, p.requests = f, nil
	p.mu.Unlock()
	if f != nil {
		p.server.CloseClientConnections()
	}
}

// forget begins to count anew.
func (p *proxy) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = nil
}

// asked are the requests since the last time that counting began, those of other methods than wanted left out.
func (p *proxy) asked(methods ...string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for _, r := range p.requests {
		method, _, _ := strings.Cut(r, " ")
		if len(methods) == 0 || strings.Contains(strings.Join(methods, " "), method) {
			out = append(out, r)
		}
	}
	return out
}

// writing are the methods that change something.
var writing = []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// kubeconfig leads to the proxy, with a token.
func (p *proxy) kubeconfig(token string) []byte {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	return kubeconfig(p.server.URL, ca, map[string]any{"token": token})
}

// kubeconfig is one with one context.
func kubeconfig(host string, ca []byte, user map[string]any) []byte {
	data, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "it",
		"contexts": []any{map[string]any{"name": "it", "context": map[string]any{"cluster": "it", "user": "it"}}},
		"clusters": []any{map[string]any{"name": "it", "cluster": map[string]any{"server": host, "certificate-authority-data": ca}}},
		"users":    []any{map[string]any{"name": "it", "user": user}},
	})
	if err != nil {
		panic(fmt.Sprintf("a kubeconfig is JSON: %v", err))
	}
	return data
}

// says answers with a Status, as a Kubernetes API does.
func says(code int, reason metav1.StatusReason) fault {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: int32(code), Reason: reason, Message: "it was told to",
		})
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

// at limits a fault to a part of the path.
func at(path string, f fault) fault {
	return func(w http.ResponseWriter, r *http.Request) bool {
		return strings.Contains(r.URL.Path, path) && f(w, r)
	}
}
