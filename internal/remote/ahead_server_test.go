package remote

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kyma-project/mothership/internal/cluster"
	"github.com/kyma-project/mothership/internal/infra/local/localtest"
)

// TestApplyEachOfARealServer: kube-apiserver takes what is sent ahead, and refuses what it refuses.
func TestApplyEachOfARealServer(t *testing.T) {
	t.Parallel()
	c, namespace := realClient(t)
	r := resource(t, c, "v1", "ConfigMap")
	var objects []cluster.Application
	want := oks(2 * mostAhead)
	for i := range want {
		name := fmt.Sprintf("c%d", i)
		body := configMap(name, map[string]string{"i": name}, nil)
		if i == 7 {
			body = []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c7"},"data":{"i":7}}`)
			want[i] = "refused"
		}
		objects = append(objects, cluster.Application{Resource: r, Namespace: namespace, Name: name, Body: body, Options: ApplyOptions{Manager: "m"}})
	}
	got := outcomes(cluster.InTurn(t.Context()), t, c, objects)
	if strings.HasPrefix(got[7], "applying ConfigMap "+namespace+"/c7: 500 invalid: ") {
		got[7] = "refused"
	}
	if diff := cmp.Diff(want, got); diff != "" || c.Stats()[VerbApply] != len(objects) {
		t.Errorf("%v; outcomes (-want +got):\n%s", c.Stats(), diff)
	}
	if c.gate.current.ahead() == nil {
		t.Error("nothing is sent ahead any more")
	}
	list, err := c.ListMeta(t.Context(), r, ListOptions{Namespace: namespace})
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < len(objects)-1 {
		t.Errorf("%d objects are there: %s", len(list), names(list))
	}
}

// TestApplyEachIsBounded: a kube-apiserver gives up what it was told to give up, so that nothing is carried out after it was repeated.
func TestApplyEachIsBounded(t *testing.T) {
	t.Parallel()
	srv := localtest.Server(t)
	namespace := localtest.Namespace(t, srv)
	c := newClient(t, srv.Config(), Options{Timeout: mostAhead * time.Second / 2})
	var mu sync.Mutex
	called := map[string]int{}
	gaveUp := make(chan struct{}, 1)
	hook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
			return
		}
		mu.Lock()
		called[review.Request.Name]++
		slow := review.Request.Name == "c1" && called["c1"] == 1
		mu.Unlock()
		if slow {
			<-r.Context().Done() // bounded by the webhook's timeout
			gaveUp <- struct{}{}
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(hook.Close)
	hooks := resource(t, c, "admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration")
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw})
	err := c.Create(t.Context(), hooks, "", mustJSON(map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": map[string]any{"name": namespace},
		"webhooks": []any{map[string]any{
			"name": "slow.example.com", "admissionReviewVersions": []any{"v1"}, "sideEffects": "None", "timeoutSeconds": 30,
			"clientConfig":      map[string]any{"url": hook.URL, "caBundle": ca},
			"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": namespace}},
			"rules": []any{map[string]any{
				"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "operations": []any{"*"}, "resources": []any{"configmaps"},
			}},
		}},
	}), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := c.Delete(ctx, hooks, "", namespace, DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	r := resource(t, c, "v1", "ConfigMap")
	awaitHook(t, c, r, namespace, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return called["probe"] > 0
	})
	var objects []cluster.Application
	for i := range 3 {
		name := fmt.Sprintf("c%d", i)
		objects = append(objects, cluster.Application{Resource: r, Namespace: namespace, Name: name, Body: configMap(name, nil, nil), Options: ApplyOptions{Manager: "m"}})
	}
	before := c.Stats()
	if diff := cmp.Diff(oks(3), outcomes(cluster.InTurn(t.Context()), t, c, objects)); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	select {
	case <-gaveUp:
	default:
		t.Error("the server has not given up")
	}
	mu.Lock()
	defer mu.Unlock()
	if sent := c.Stats().Sub(before)[VerbApply]; sent < 4 || called["c1"] != 2 { // more, where it closes the connection while it answers, or the machine is busy
		t.Errorf("%d requests, webhooks called %v", sent, called)
	}
}

// awaitHook applies an object until a webhook is called for it.
func awaitHook(t *testing.T, c *Client, r Resource, namespace string, called func() bool) {
	t.Helper()
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for range 400 {
		if err := c.Apply(t.Context(), r, namespace, "probe", configMap("probe", nil, nil), ApplyOptions{Manager: "m"}, nil); err != nil {
			t.Fatal(err)
		}
		if called() {
			return
		}
		<-poll.C
	}
	t.Fatal("the webhook is not called")
}

// BenchmarkApplyEach compares what is sent ahead with one by one, over loopback.
func BenchmarkApplyEach(b *testing.B) {
	for name, single := range map[string]bool{"Ahead": false, "OneByOne": true} {
		b.Run(name, func(b *testing.B) {
			g := faulty(b, Options{QPS: 1e9, Burst: 1 << 30}, itsName)
			g.gate.current.transport.(*protocols).inTurn.single.Store(single)
			ctx := cluster.InTurn(b.Context())
			objects := podsOf(20)
			b.ReportAllocs()
			for b.Loop() {
				g.ApplyEach(ctx, objects, func(_ int, _ *metav1.PartialObjectMetadata, err error) bool {
					if err != nil {
						b.Fatal(err)
					}
					return true
				})
			}
		})
	}
}
