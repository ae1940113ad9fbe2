package remote

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kyma-project/mothership/internal/infra/local/localtest"
)

var widget = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}

func TestKnownKindsNeedNoRequest(t *testing.T) {
	t.Parallel()
	c, _ := realClient(t)
	declared := Resource{GroupVersionResource: widget.GroupVersion().WithResource("widgets"), Kind: "Widget", Namespaced: true}
	c.Declare(declared)
	for gvk, want := range map[schema.GroupVersionKind]Resource{
		widget: declared,
		{Group: "apps", Version: "v1", Kind: "Deployment"}: {
			GroupVersionResource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
			Kind:                 "Deployment", Namespaced: true,
		},
	} {
		got, err := c.Resource(t.Context(), gvk)
		if err != nil || got != want || got.GVK() != gvk {
			t.Errorf("Resource(%s) = %v, %v; want %v", gvk, got, err, want)
		}
	}
	if n := c.Stats().Total(); n != 0 {
		t.Errorf("%d requests, want none", n)
	}
}

func TestDiscovery(t *testing.T) {
	t.Parallel()
	srv := localtest.Server(t)
	admin := newClient(t, srv.Config(), Options{})
	const group = "discovery.example.com"
	define(t, admin, group, "v1", "v1beta1")
	gvk := schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Widget"}
	discover := func(t *testing.T) *Client { return newClient(t, srv.Config(), Options{}) }

	t.Run("OneRequestForAll", func(t *testing.T) {
		t.Parallel()
		c := discover(t)
		var g sync.WaitGroup
		for range 10 {
			g.Go(func() {
				r, err := c.Resource(t.Context(), gvk)
				if err != nil || r.Resource != "widgets" || !r.Namespaced {
					t.Errorf("Resource = %v, %v", r, err)
				}
			})
		}
		g.Wait()
		if got := c.Stats()["discovery"]; got != 1 {
			t.Errorf("%d discovery requests, want 1", got)
		}
	})
	t.Run("MissNamesOtherVersions", func(t *testing.T) {
		t.Parallel()
		c := discover(t)
		missing := gvk.GroupKind().WithVersion("v7")
		for n := 1; n <= 2; n++ {
			_, err := c.Resource(t.Context(), missing)
			var noKind *NoKindError
			if !errors.As(err, &noKind) || !errors.Is(err, ErrNoKind) || IsTransient(err) {
				t.Fatalf("error = %v, want a NoKindError", err)
			}
			if diff := cmp.Diff([]string{"v1", "v1beta1"}, noKind.Versions); diff != "" {
				t.Errorf("versions (-want +got):\n%s", diff)
			}
			if got := c.Stats()["discovery"]; got != n {
				t.Errorf("%d discovery requests after %d misses", got, n)
			}
		}
	})
	t.Run("CoreGroupHasItsOwnDocument", func(t *testing.T) {
		t.Parallel()
		c := discover(t)
		c.Forget(schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
		r, err := c.Resource(t.Context(), schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
		if err != nil || r.Resource != "pods" || !r.Namespaced {
			t.Errorf("Resource = %v, %v", r, err)
		}
		if _, err := c.Resource(t.Context(), r.GVK()); err != nil || c.Stats().Total() != 1 {
			t.Errorf("%v after %v requests, want the mapping to be learnt by one", err, c.Stats())
		}
	})
	t.Run("DeclaredWronglyThenForgotten", func(t *testing.T) {
		t.Parallel()
		c := discover(t)
		wrong := Resource{GroupVersionResource: gvk.GroupVersion().WithResource("widgetses"), Kind: "Widget", Namespaced: true}
		c.Declare(wrong)
		_, err := c.ListMeta(t.Context(), wrong, ListOptions{})
		if !errors.Is(err, ErrNoKind) || !errors.Is(err, ErrNotFound) {
			t.Fatalf("listing: %v, want that the kind is not served", err)
		}
		c.Forget(gvk)
		r, err := c.Resource(t.Context(), gvk)
		if err != nil || r.Resource != "widgets" {
			t.Errorf("Resource = %v, %v; want what the server says", r, err)
		}
	})
	t.Run("Served", func(t *testing.T) {
		t.Parallel()
		c := discover(t)
		for gvk, want := range map[schema.GroupVersionKind]bool{
			gvk:                               true,
			gvk.GroupKind().WithVersion("v7"): false,
			{Version: "v1", Kind: "Pod"}:      true,
			{Group: group, Version: "v1", Kind: "Gadget"}:            false,
			{Group: "nowhere.example.com", Version: "v1", Kind: "W"}: false,
		} {
			got, err := c.Served(t.Context(), gvk)
			if err != nil || got != want {
				t.Errorf("Served(%s) = %v, %v; want %v", gvk, got, err, want)
			}
		}
	})
}

func TestUnavailableAPIServiceFailsItsOwnGroupOnly(t *testing.T) {
	t.Parallel()
	srv := localtest.Start(t) // an unavailable APIService disturbs namespace deletion: not in the shared server
	c := newClient(t, srv.Config(), Options{})
	define(t, c, "healthy.example.com", "v1")
	services := resource(t, c, "apiregistration.k8s.io/v1", "APIService")
	if err := c.Create(t.Context(), services, "", []byte(`{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1.broken.example.com"},
		"spec": {"group": "broken.example.com", "version": "v1", "groupPriorityMinimum": 10, "versionPriority": 10,
			"insecureSkipTLSVerify": true, "service": {"namespace": "default", "name": "nobody"}}}`), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Resource(t.Context(), schema.GroupVersionKind{Group: "healthy.example.com", Version: "v1", Kind: "Widget"}); err != nil {
		t.Errorf("a kind of another group: %v", err)
	}
	broken := schema.GroupVersionKind{Group: "broken.example.com", Version: "v1", Kind: "Widget"}
	_, err := c.Resource(t.Context(), broken)
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for n := 0; errors.Is(err, ErrNoKind) && n < 1000; n++ { // it takes a moment until the server's discovery has the APIService
		<-poll.C
		_, err = c.Resource(t.Context(), broken)
	}
	if !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrNoKind) || !IsTransient(err) {
		t.Errorf("a kind of the unavailable group: %v, want that it is unknown for now", err)
	}
	if !strings.Contains(err.Error(), "the APIService of broken.example.com/v1 does not answer") {
		t.Errorf("error = %v", err)
	}
}
