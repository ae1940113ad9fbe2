package remote

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/kyma-project/mothership/internal/infra/local/localtest"
)

func TestMain(m *testing.M) { os.Exit(localtest.Main(m)) }

// realClient is a client of the shared API server, and a namespace of the test's own.
func realClient(t testing.TB) (*Client, string) {
	t.Helper()
	srv := localtest.Server(t)
	return newClient(t, srv.Config(), Options{}), localtest.Namespace(t, srv)
}

func newClient(t testing.TB, cfg *rest.Config, o Options) *Client {
	t.Helper()
	c, err := New(cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// resource maps a kind of "group/version".
func resource(t testing.TB, c *Client, groupVersion, kind string) Resource {
	t.Helper()
	r, err := c.Resource(t.Context(), schema.FromAPIVersionAndKind(groupVersion, kind))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// configMap is the JSON of a ConfigMap.
func configMap(name string, data map[string]string, labels map[string]string) []byte {
	return mustJSON(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "labels": labels}, "data": data,
	})
}

// definition is the JSON of a CustomResourceDefinition of Widgets in a group, with the versions given.
func definition(group string, versions ...string) []byte {
	var list []any
	for i, v := range versions {
		list = append(list, map[string]any{
			"name": v, "served": true, "storage": i == 0,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
		})
	}
	return mustJSON(map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "widgets." + group},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced", "versions": list,
			"names": map[string]any{"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
		},
	})
}

// define creates a CRD, waits until it is served, and deletes it after the test.
func define(t *testing.T, c *Client, group string, versions ...string) {
	t.Helper()
	crds := resource(t, c, "apiextensions.k8s.io/v1", "CustomResourceDefinition")
	if err := c.Create(t.Context(), crds, "", definition(group, versions...), nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := c.Delete(ctx, crds, "", "widgets."+group, DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	awaitServed(t, c, schema.GroupVersionKind{Group: group, Version: versions[0], Kind: "Widget"})
}

func awaitServed(t *testing.T, c *Client, gvk schema.GroupVersionKind) {
	t.Helper()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		served, err := c.Served(ctx, gvk)
		if err != nil {
			t.Fatal(err)
		}
		if served {
			return
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			t.Fatalf("%s is not served in time", gvk)
		}
	}
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

func names(items []metav1.PartialObjectMetadata) string {
	var out []string
	for _, item := range items {
		out = append(out, item.Name)
	}
	return strings.Join(out, " ")
}
