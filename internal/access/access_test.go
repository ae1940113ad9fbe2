package access_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/access"
	"github.com/kyma-project/mothership/internal/infra/local/localtest"
	"github.com/kyma-project/mothership/internal/module"
	"github.com/kyma-project/mothership/internal/remote"
)

func TestMain(m *testing.M) { os.Exit(localtest.Main(m)) }

const secret = "c4n4ry-it"

var name = types.NamespacedName{Namespace: "kcp-system", Name: "eu-1"}

// shelf has one Runtime and one Secret, as a cache and as the API itself.
type shelf struct {
	client.Reader

	mu      sync.Mutex
	runtime *v1beta2.Runtime
	secret  *corev1.Secret
	version int
	reads   int      // of the Secret's content
	behind  error    // why the API server does not answer from its own cache
	asked   []string // for the Secret's content, not older than what
}

func (s *shelf) Get(_ context.Context, key types.NamespacedName, obj client.Object, options ...client.GetOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch obj := obj.(type) {
	case *v1beta2.Runtime:
		if s.runtime != nil && key == name {
			s.runtime.DeepCopyInto(obj)
			return nil
		}
	case *metav1.PartialObjectMetadata:
		if s.secret != nil && key.Name == s.secret.Name {
			s.secret.ObjectMeta.DeepCopyInto(&obj.ObjectMeta)
			return nil
		}
	case *corev1.Secret:
		if s.secret != nil && key.Name == s.secret.Name {
			o := (&client.GetOptions{}).ApplyOptions(options).AsGetOptions()
			s.asked = append(s.asked, o.ResourceVersion)
			if s.behind != nil && o.ResourceVersion != "" {
				return s.behind
			}
			s.reads++
			s.secret.DeepCopyInto(obj)
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: "it"}, key.Name)
}

// has gives the shelf a kubeconfig, in a new version of the Secret.
func (s *shelf) has(kubeconfig []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.secret = &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name + "-kubeconfig", UID: "it", ResourceVersion: string(rune('0' + s.version))},
		Data:       map[string][]byte{"kubeconfig": kubeconfig},
	}
}

// knows are facts of the Runtime.
func (s *shelf) knows(known access.Known) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runtime.Status.Facts = []v1beta2.Fact{
		{Key: v1beta2.FactKubeconfigVersion, Value: known.Kubeconfig}, {Key: v1beta2.FactRuntimeUID, Value: known.UID}, {Key: v1beta2.FactKubernetesVersion, Value: known.Version},
	}
}

// setup is a pool over a shelf that leads to a real server.
func setup(t *testing.T, change ...func(*access.Options)) (*access.Pool, *shelf) {
	t.Helper()
	s := &shelf{runtime: &v1beta2.Runtime{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}, Spec: v1beta2.RuntimeSpec{Provider: v1beta2.ProviderLocal}}}
	s.has(working(t))
	o := access.Options{Cache: s, Live: s, Connection: remote.Options{Retries: -1, Timeout: 5 * time.Second}}
	for _, c := range change {
		c(&o)
	}
	return access.New(o), s
}

// A kubeconfig is read from the API server's cache if that has the version that is known, else from where the truth is.
func TestKubeconfigIsNotOlderThanKnown(t *testing.T) {
	for name, tt := range map[string]struct {
		behind error
		asked  []string
	}{
		"InTheCache": {nil, []string{"2"}},
		"Behind":     {apierrors.NewTimeoutError("Too large resource version", 1), []string{"2", ""}},
		"Slow":       {fmt.Errorf("asked again and again: %w", context.DeadlineExceeded), []string{"2", ""}}, // as client-go does then
	} {
		t.Run(name, func(t *testing.T) {
			p, s := setup(t)
			s.behind = tt.behind
			s.has(s.secret.Data["kubeconfig"])
			_, release := get(t, p)
			release()
			if !slices.Equal(s.asked, tt.asked) || s.reads != 1 {
				t.Errorf("asked for versions %q, read %d times", s.asked, s.reads)
			}
		})
	}
}

func working(t *testing.T) []byte {
	t.Helper()
	kubeconfig, err := localtest.Server(t).Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

func get(t *testing.T, p *access.Pool) (*module.Runtime, func()) {
	t.Helper()
	rt, release, err := p.Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return rt, release
}

func sum(s remote.Stats) int {
	n := 0
	for _, count := range s {
		n += count
	}
	return n
}

// A runtime is asked who it is once for each kubeconfig, however many ask at the same time, and not at all where that is known.
func TestIdentifyAsksOnce(t *testing.T) {
	t.Parallel()
	p, s := setup(t)
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			rt, release, err := p.Get(t.Context(), name)
			if err != nil {
				t.Error(err)
				return
			}
			defer release()
			if uid, version := rt.Known(); uid == "" || version == "" {
				t.Error("it is not known")
			}
		})
	}
	group.Wait()
	if n := sum(p.Stats()); n != 2 || s.reads != 1 {
		t.Errorf("%d requests, %d reads of the Secret, want 2 and 1", n, s.reads)
	}
	known, err := p.Identify(t.Context(), s.runtime)
	if err != nil || known.UID == "" || known.Kubeconfig != "it/1" {
		t.Fatalf("%+v: %v", known, err)
	}
	s.knows(known)
	q := access.New(access.Options{Cache: s, Live: s})
	again, err := q.Identify(t.Context(), s.runtime)
	if err != nil || again != known || q.Open() != 0 {
		t.Errorf("%+v: %v; %d connections", again, err, q.Open())
	}
	rt, release := get(t, q)
	defer release()
	if uid, _ := rt.Known(); uid != known.UID || sum(q.Stats()) != 0 {
		t.Errorf("%s after %d requests", uid, sum(q.Stats()))
	}
}

// Another kubeconfig is taken at the next Get; work that is under way goes on.
func TestKubeconfigIsSwapped(t *testing.T) {
	t.Parallel()
	p, s := setup(t)
	arrived, goOn := make(chan struct{}), make(chan struct{})
	slow := answering(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/configmaps") {
			close(arrived)
			<-goOn
		}
		answer(w, r)
	})
	s.has(slow)
	rt, release := get(t, p)
	defer release()
	work := make(chan error, 1)
	go func() { work <- rt.Usable(t.Context()) }()
	<-arrived
	s.has(working(t))
	next, releaseNext := get(t, p)
	defer releaseNext()
	before, _ := rt.Known()
	after, _ := next.Known()
	if before != "fake" || after == "fake" || after == "" {
		t.Errorf("it was %s and is %s", before, after)
	}
	close(goOn)
	if err := <-work; err != nil {
		t.Errorf("the work under way: %v", err)
	}
	if err := next.Usable(t.Context()); err != nil {
		t.Error(err)
	}
}

// answering is a server that is no Kubernetes, and a kubeconfig that leads to it.
func answering(t *testing.T, f http.HandlerFunc) []byte {
	t.Helper()
	srv := httptest.NewTLSServer(f)
	t.Cleanup(srv.Close)
	return leading(t, srv.URL, map[string]any{"token": secret}, map[string]any{"certificate-authority-data": pemOf(srv)})
}

func leading(t *testing.T, host string, user, more map[string]any) []byte {
	t.Helper()
	cl := map[string]any{"server": host}
	for key, value := range more {
		cl[key] = value
	}
	data, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "it",
		"contexts": []any{map[string]any{"name": "it", "context": map[string]any{"cluster": "it", "user": "it"}}},
		"clusters": []any{map[string]any{"name": "it", "cluster": cl}}, "users": []any{map[string]any{"name": "it", "user": user}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// answer is what a cluster says that has nothing.
func answer(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	var out any = map[string]any{"gitVersion": "v1.36.3"}
	switch {
	case strings.HasSuffix(r.URL.Path, "/configmaps"):
		out = metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}}
	case strings.Contains(r.URL.Path, "/namespaces/"):
		out = metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}, ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "fake"},
		}
	}
	_ = json.NewEncoder(w).Encode(out)
}

// What cannot be used has a reason, says what to do, and shows no secret.
func TestReasons(t *testing.T) {
	t.Parallel()
	refusing := func(code int) []byte {
		return answering(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			_, _ = w.Write([]byte("no " + secret))
		})
	}
	token := map[string]any{"token": secret}
	for what, test := range map[string]struct {
		prepare func(*shelf)
		reason  string
		words   string
	}{
		"NoRuntime": {func(s *shelf) { s.runtime = nil }, v1beta2.ReasonRuntimeMissing, "create it, or delete the Kyma"},
		"NoSecret":  {func(s *shelf) { s.secret = nil }, v1beta2.ReasonRuntimeNotReady, "Secret eu-1-kubeconfig"},
		"NoKey":     {func(s *shelf) { s.secret.Data = map[string][]byte{"other": []byte(secret)} }, v1beta2.ReasonKubeconfigInvalid, "key kubeconfig"},
		"NotYAML":   {func(s *shelf) { s.has([]byte("token: [" + secret)) }, v1beta2.ReasonKubeconfigInvalid, "Secret eu-1-kubeconfig"},
		"NoContext": {func(s *shelf) {
			s.has([]byte("apiVersion: v1\nkind: Config\nusers: [{name: a, user: {token: " + secret + "}}]"))
		}, v1beta2.ReasonKubeconfigInvalid, "no contexts"},
		"StartsAProgram": {func(s *shelf) {
			s.has(leading(t, "https://127.0.0.1:1", map[string]any{"exec": map[string]any{"apiVersion": "client.authentication.k8s.io/v1", "command": secret}}, nil))
		}, v1beta2.ReasonKubeconfigInvalid, "exec"},
		"ReadsAFile": {func(s *shelf) {
			s.has(leading(t, "https://127.0.0.1:1", map[string]any{"tokenFile": "/" + secret}, nil))
		}, v1beta2.ReasonKubeconfigInvalid, "tokenFile"},
		"BadCertificate": {func(s *shelf) {
			s.has(leading(t, "https://127.0.0.1:1", token, map[string]any{"certificate-authority-data": []byte(secret)}))
		}, v1beta2.ReasonKubeconfigInvalid, "certificate"},
		"Nobody":       {func(s *shelf) { s.has(leading(t, "https://127.0.0.1:1", token, nil)) }, v1beta2.ReasonUnreachable, "version"},
		"Unauthorized": {func(s *shelf) { s.has(refusing(http.StatusUnauthorized)) }, v1beta2.ReasonUnauthorized, "401"},
		"Forbidden":    {func(s *shelf) { s.has(refusing(http.StatusForbidden)) }, v1beta2.ReasonForbidden, "403"},
		"Throttled":    {func(s *shelf) { s.has(refusing(http.StatusTooManyRequests)) }, v1beta2.ReasonUnavailable, "429"},
		"Unavailable":  {func(s *shelf) { s.has(refusing(http.StatusBadGateway)) }, v1beta2.ReasonUnavailable, "502"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			p, s := setup(t)
			test.prepare(s)
			_, _, err := p.Get(t.Context(), name)
			if err == nil || access.ReasonOf(err) != test.reason || !strings.Contains(err.Error(), test.words) || strings.Contains(err.Error(), secret) {
				t.Errorf("%s: %v", access.ReasonOf(err), err)
			}
			if early := errors.As(err, new(*access.Error)); early != (sum(p.Stats()) == 0) {
				t.Errorf("%T after %d requests", err, sum(p.Stats()))
			}
			if s.runtime == nil {
				return
			}
			s.has(working(t)) // and mended
			_, release := get(t, p)
			release()
		})
	}
}

// Connections that nobody has used for a while are closed, others are not; what they have asked for stays counted.
func TestIdleConnectionsAreClosed(t *testing.T) {
	t.Parallel()
	p, _ := setup(t, func(o *access.Options) { o.Idle = 50 * time.Millisecond })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	rt, release := get(t, p)
	idle := time.After(300 * time.Millisecond)
	<-idle
	if p.Open() != 1 || rt.Usable(t.Context()) != nil {
		t.Error("closed while it was in use")
	}
	asked := sum(p.Stats())
	release()
	release() // twice does no harm
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(10 * time.Second); p.Open() > 0; {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("it is not closed")
		}
	}
	if n := sum(p.Stats()); n != asked {
		t.Errorf("%d requests are counted of %d", n, asked)
	}
	_, again := get(t, p)
	again()
	cancel()
	if err := <-ended; err != nil || p.Open() != 0 {
		t.Errorf("%v; %d connections at the end", err, p.Open())
	}
}

func TestForget(t *testing.T) {
	t.Parallel()
	p, _ := setup(t)
	p.Forget(name) // nothing
	_, release := get(t, p)
	p.Forget(name)
	if p.Open() != 1 {
		t.Error("closed while it was in use")
	}
	release()
	p.Forget(name)
	if p.Open() != 0 {
		t.Error("not closed")
	}
}

func TestGone(t *testing.T) {
	t.Parallel()
	leaving := &v1beta2.Runtime{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{}}}
	abandoned := leaving.DeepCopy()
	abandoned.Spec.DeletionPolicy = v1beta2.DeletionAbandon
	kept := abandoned.DeepCopy()
	kept.DeletionTimestamp = nil
	if !access.Gone(nil) || access.Gone(leaving) || !access.Gone(abandoned) || access.Gone(kept) {
		t.Error("gone is what is deleted to the end, or being deleted and to be abandoned")
	}
}

// pemOf is the certificate of a test server.
func pemOf(srv *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
}

// A runtime that does not answer is asked by Identify a few times, and then no more for a while: others probe it.
func TestFailuresAreRemembered(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	p, s := setup(t, func(o *access.Options) {
		o.Remember = time.Hour
		o.Admit = func(types.NamespacedName) error {
			asked.Add(1)
			return errors.New("it does not answer")
		}
	})
	for range 6 {
		if _, err := p.Identify(t.Context(), s.runtime); err == nil {
			t.Error("it is identified")
		}
	}
	if n := asked.Load(); n != 3 {
		t.Errorf("asked %d times, want 3", n)
	}
	s.has(working(t)) // another version of the Secret
	if _, err := p.Identify(t.Context(), s.runtime); err == nil || asked.Load() != 4 {
		t.Errorf("asked %d times: %v, want once more", asked.Load(), err)
	}
}
