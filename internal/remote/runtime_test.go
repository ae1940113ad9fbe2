package remote

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func runtimeClient(t *testing.T, c *Client) client.Client {
	t.Helper()
	cl, err := c.Client()
	if err != nil {
		t.Fatal(err)
	}
	return cl
}

func TestRuntimeClient(t *testing.T) {
	t.Parallel()
	c, ns := realClient(t)
	cl := runtimeClient(t, c)
	ctx := t.Context()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "a"}, Data: map[string]string{"k": "1"}}
	if err := cl.Create(ctx, cm); err != nil {
		t.Fatal(err)
	}
	cm.Data["k"] = "2"
	if err := cl.Update(ctx, cm); err != nil {
		t.Fatal(err)
	}
	var list corev1.ConfigMapList
	if err := cl.List(ctx, &list, client.InNamespace(ns)); err != nil || len(list.Items) == 0 {
		t.Fatalf("%d items, %v", len(list.Items), err)
	}
	partial := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}
	if err := cl.Get(ctx, client.ObjectKeyFromObject(cm), partial); err != nil || partial.UID != cm.UID {
		t.Fatalf("%v, %v", partial.UID, err)
	}
	if err := cl.Delete(ctx, cm); err != nil {
		t.Fatal(err)
	}
	if err := cl.Get(ctx, client.ObjectKeyFromObject(cm), cm); !apierrors.IsNotFound(err) {
		t.Errorf("reading what is deleted: %v", err)
	}
	want := Stats{"create": 1, "update": 1, "list": 1, "get": 2, "delete": 1}
	if diff := cmp.Diff(want, c.Stats()); diff != "" {
		t.Errorf("requests, and no discovery (-want +got):\n%s", diff)
	}
}

func TestRuntimeClientFollowsSwapAndLimits(t *testing.T) {
	t.Parallel()
	c, ns := realClient(t)
	g := faulty(t, Options{Timeout: 50 * time.Millisecond}, turn(says(302, "", "Location: https://elsewhere.invalid"), hang))
	cl := runtimeClient(t, g.Client)
	var cm corev1.ConfigMap
	key := client.ObjectKey{Namespace: ns, Name: "kube-root-ca.crt"}
	if err := cl.Get(t.Context(), key, &cm); err == nil {
		t.Error("a redirect was followed")
	}
	if err := cl.Get(t.Context(), key, &cm); err == nil {
		t.Error("a server that hangs gave an answer")
	}
	g.gate.timeout = time.Minute
	g.gate.swap(c.gate.current)
	if err := cl.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "b"}}); err != nil {
		t.Errorf("after the swap: %v", err)
	}
}

func TestRESTMapper(t *testing.T) {
	t.Parallel()
	c, _ := realClient(t)
	const group = "mapper.example.com"
	define(t, c, group, "v1", "v1alpha1")
	m := runtimeClient(t, c).RESTMapper()
	gk := schema.GroupKind{Group: group, Kind: "Widget"}

	mapping, err := m.RESTMapping(gk, "v7", "v1alpha1")
	if err != nil || mapping.Resource != gk.WithVersion("v1alpha1").GroupVersion().WithResource("widgets") || mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		t.Errorf("RESTMapping = %+v, %v", mapping, err)
	}
	if mapping, err := m.RESTMapping(gk); err != nil || mapping.GroupVersionKind.Version != "v1" {
		t.Errorf("preferred RESTMapping = %+v, %v", mapping, err)
	}
	if _, err := m.RESTMapping(gk, "v7"); !meta.IsNoMatchError(err) {
		t.Errorf("RESTMapping of an unserved version: %v", err)
	}
	partial := schema.GroupVersionResource{Resource: "widgets", Group: group}
	if got, err := m.KindFor(partial); err != nil || got != gk.WithVersion("v1") {
		t.Errorf("KindFor = %v, %v", got, err)
	}
	if got, err := m.KindsFor(partial); err != nil || len(got) != 2 {
		t.Errorf("KindsFor = %v, %v", got, err)
	}
	if got, err := m.ResourceFor(partial); err != nil || got.Version != "v1" {
		t.Errorf("ResourceFor = %v, %v", got, err)
	}
	if got, err := m.ResourcesFor(partial); err != nil || len(got) != 2 {
		t.Errorf("ResourcesFor = %v, %v", got, err)
	}
	if got, err := m.ResourceSingularizer("widgets"); err != nil || got != "widget" {
		t.Errorf("ResourceSingularizer = %v, %v", got, err)
	}

	cl := runtimeClient(t, c)
	custom := &unstructured.Unstructured{}
	custom.SetGroupVersionKind(gk.WithVersion("v1"))
	custom.SetNamespace("default")
	custom.SetName("w")
	if err := cl.Create(t.Context(), custom); err != nil {
		t.Fatal(err)
	}
	if err := cl.Delete(t.Context(), custom); err != nil {
		t.Error(err)
	}
}
