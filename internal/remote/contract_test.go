package remote

import (
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kyma-project/mothership/internal/infra/local/localtest"
)

func TestResourceFor(t *testing.T) {
	t.Parallel()
	srv := localtest.Server(t)
	const group = "preferred.example.com"
	define(t, newClient(t, srv.Config(), Options{}), group, "v1alpha1", "v1", "v1beta1")
	gk := schema.GroupKind{Group: group, Kind: "Widget"}
	for name, tc := range map[string]struct {
		gk       schema.GroupKind
		declared []string
		want     string
		requests int
	}{
		"BuiltIn":    {schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}, nil, "v2", 0},
		"Declared":   {gk, []string{"v1beta1", "v1alpha1"}, "v1beta1", 0},
		"Discovered": {gk, nil, "v1", 1},
		"Missing":    {schema.GroupKind{Group: group, Kind: "Gadget"}, nil, "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClient(t, srv.Config(), Options{})
			for _, v := range tc.declared {
				c.Declare(Resource{GroupVersionResource: tc.gk.WithVersion(v).GroupVersion().WithResource("widgets"), Kind: tc.gk.Kind})
			}
			for range 2 {
				r, err := c.ResourceFor(t.Context(), tc.gk)
				if r.Version != tc.want || (err != nil) != (tc.want == "") || err != nil && !errors.Is(err, ErrNoKind) {
					t.Errorf("ResourceFor = %v, %v; want version %q", r, err, tc.want)
				}
			}
			if got := c.Stats().Total(); got != tc.requests {
				t.Errorf("%d requests, want %d", got, tc.requests)
			}
		})
	}
}

func TestServes(t *testing.T) {
	t.Parallel()
	c, _ := realClient(t)
	const group = "serves.example.com"
	define(t, c, group, "v1")
	widgets := resource(t, c, group+"/v1", "Widget")
	missing := widgets
	missing.Version = "v7"
	before := c.Stats()
	for r, want := range map[Resource]bool{widgets: true, missing: false} {
		if got, err := c.Serves(t.Context(), r); err != nil || got != want {
			t.Errorf("Serves(%s) = %v, %v; want %v", r, got, err, want)
		}
	}
	if diff := cmp.Diff(Stats{VerbWait: 2}, c.Stats().Sub(before)); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	g := faulty(t, Options{}, says(404, "404 page not found", plain))
	if _, err := g.Serves(t.Context(), widgets); !errors.Is(err, ErrUnexpected) {
		t.Errorf("Serves behind a proxy that knows nothing: %v", err)
	}
}

// TestOldDiscovery has a server from before aggregated discovery.
func TestOldDiscovery(t *testing.T) {
	t.Parallel()
	g := faulty(t, Options{}, func(n int, w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/apis":
			says(200, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)(n, w, r)
		case "/apis/example.com/v1":
			says(200, `{"kind":"APIResourceList","groupVersion":"example.com/v1","resources":[
				{"name":"widgets/status","kind":"Widget","namespaced":true},{"name":"widgets","kind":"Widget","namespaced":true}]}`)(n, w, r)
		default:
			says(404, "404 page not found", plain, audited)(n, w, r)
		}
	})
	r, err := g.Resource(t.Context(), widget)
	if err != nil || r.Resource != "widgets" || !r.Namespaced {
		t.Errorf("Resource = %v, %v", r, err)
	}
	for _, gvk := range []schema.GroupVersionKind{widget.GroupKind().WithVersion("v2"), widget.GroupVersion().WithKind("Gadget")} {
		if _, err := g.Resource(t.Context(), gvk); !errors.Is(err, ErrNoKind) {
			t.Errorf("Resource(%s): %v, want that it is not served", gvk, err)
		}
	}
}

func TestDiscoveryIsRevalidated(t *testing.T) {
	t.Parallel()
	const document = `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[
		{"metadata":{"name":"example.com"},"versions":[{"version":"v1","freshness":"Current","resources":[
			{"resource":"widgets","responseKind":{"group":"","version":"","kind":"Widget"},"scope":"Namespaced"},
			{"resource":"only","responseKind":null,"scope":"Cluster"},
			{"resource":"../evil","responseKind":{"kind":"Evil"},"scope":"Cluster"}]}]}]}`
	asked := make(chan string, 4)
	g := faulty(t, Options{}, func(n int, w http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Get("If-None-Match")
		if n == 2 {
			says(304, "")(n, w, r)
			return
		}
		says(200, document, `Etag: "one"`)(n, w, r)
	})
	for range 2 {
		_, err := g.Resource(t.Context(), schema.GroupVersionKind{Group: "other.example.com", Version: "v1", Kind: "Widget"})
		const want = "kind Widget of other.example.com/v1 is not served: the server has that kind in example.com"
		if err == nil || err.Error() != want {
			t.Errorf("error = %v, want %q", err, want)
		}
	}
	if first, second := <-asked, <-asked; first != "" || second != `"one"` {
		t.Errorf("ETags %q and %q were sent", first, second)
	}
	if _, err := g.Resource(t.Context(), widget); err != nil || g.calls != 2 {
		t.Errorf("%v after %d requests, want what was discovered", err, g.calls)
	}
	if _, err := g.Resource(t.Context(), widget.GroupVersion().WithKind("Evil")); !errors.Is(err, ErrNoKind) {
		t.Errorf("a name that leads elsewhere: %v", err)
	}
	if err := g.Swap(configOf(g.server)); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Resource(t.Context(), widget); err != nil || g.calls != 4 {
		t.Errorf("%v after %d requests, want that a swap forgets what was discovered", err, g.calls)
	}
}

func TestImpossibleRequests(t *testing.T) {
	t.Parallel()
	g := faulty(t, Options{}, says(200, pod))
	nodes := Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, Kind: "Node"}
	ctx, apply := t.Context(), ApplyOptions{Manager: "m"}
	for name, err := range map[string]error{
		"NoName":         g.Get(ctx, pods, "n", "", nil),
		"NoNamespace":    g.Get(ctx, pods, "", "p", nil),
		"SlashInName":    g.Delete(ctx, pods, "n", "p/status", DeleteOptions{}),
		"ParentInName":   g.Delete(ctx, pods, "n", "..", DeleteOptions{}),
		"Percent":        g.Apply(ctx, pods, "n%2f", "p", nil, apply, nil),
		"NoManager":      g.Apply(ctx, pods, "n", "p", []byte(pod), ApplyOptions{}, nil),
		"NamespaceOfAll": g.Create(ctx, nodes, "n", []byte(pod), nil),
		"NoResource":     g.Patch(ctx, Resource{}, "n", "p", "", nil, PatchOptions{}, nil),
	} {
		if !errors.Is(err, ErrInvalid) || IsTransient(err) {
			t.Errorf("%s: %v, want invalid", name, err)
		}
	}
	if _, err := g.ListMeta(ctx, pods, ListOptions{Namespace: "../kube-system"}); !errors.Is(err, ErrInvalid) {
		t.Errorf("listing elsewhere: %v", err)
	}
	if _, err := g.Resource(ctx, schema.GroupVersionKind{Kind: "Pod"}); err == nil {
		t.Error("a kind without a version was mapped")
	}
	if _, err := g.Served(ctx, schema.GroupVersionKind{Group: "..", Version: "v1", Kind: "Pod"}); err == nil {
		t.Error("a group that leads elsewhere was asked for")
	}
	if g.calls != 0 {
		t.Errorf("%d requests were sent", g.calls)
	}
}

func TestVerbOf(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ method, path, contentType, want string }{
		{"GET", "/version", "", VerbVersion},
		{"GET", "/api", "", VerbDiscovery},
		{"GET", "/api/v1", "", VerbDiscovery},
		{"GET", "/apis", "", VerbDiscovery},
		{"GET", "/apis/apps", "", VerbDiscovery},
		{"GET", "/apis/apps/v1", "", VerbDiscovery},
		{"GET", "/api/v1/namespaces", "", VerbList},
		{"GET", "/api/v1/namespaces/a", "", VerbGet},
		{"PUT", "/api/v1/namespaces/a/finalize", "", VerbUpdate},
		{"GET", "/api/v1/namespaces/a/status", "", VerbGet},
		{"GET", "/api/v1/namespaces/a/pods", "", VerbList},
		{"GET", "/api/v1/namespaces/a/pods/p", "", VerbGet},
		{"GET", "/api/v1/namespaces/a/pods/p/log", "", VerbGet},
		{"GET", "/apis/apps/v1/deployments", "", VerbList},
		{"HEAD", "/apis/rbac.authorization.k8s.io/v1/clusterroles/r", "", VerbGet},
		{"POST", "/apis/apps/v1/namespaces/a/deployments", "", VerbCreate},
		{"PATCH", "/apis/apps/v1/namespaces/a/deployments/d", "application/apply-patch+yaml", VerbApply},
		{"PATCH", "/apis/apps/v1/namespaces/a/deployments/d", "application/merge-patch+json", VerbPatch},
		{"DELETE", "/api/v1/namespaces/a", "", VerbDelete},
		{"DELETE", "/api/v1/namespaces/a/pods", "", VerbDeleteCollection},
		{"OPTIONS", "/api/v1/pods", "", "options"},
	} {
		req, err := http.NewRequest(tc.method, tc.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", tc.contentType)
		if got := verbOf(req); got != tc.want {
			t.Errorf("%s %s is %q, want %q", tc.method, tc.path, got, tc.want)
		}
	}
}
