package controlplane_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/go-logr/logr/testr"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/controlplane"
)

// start starts an embedded control plane and waits until it works.
func start(t *testing.T, dir string) (*controlplane.ControlPlane, client.Client) {
	t.Helper()
	cp, err := controlplane.Start(t.Context(), controlplane.Config{
		Local: &controlplane.Local{Dir: dir}, Log: testr.NewWithOptions(t, testr.Options{Verbosity: 1}),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cp.Close(); err != nil {
			t.Error(err)
		}
	})
	select {
	case <-cp.Ready():
	case err := <-cp.Err():
		t.Fatal(err)
	case <-time.After(time.Minute):
		t.Fatal("not ready in time")
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1beta2.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.NewWithWatch(cp.Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return cp, c
}

// until watches a Kyma until it is as wanted.
func until(t *testing.T, c client.Client, k *v1beta2.Kyma, ok func(*v1beta2.Kyma) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w, err := c.(client.WithWatch).Watch(ctx, &v1beta2.KymaList{}, client.InNamespace(k.Namespace))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if seen, is := e.Object.(*v1beta2.Kyma); is && seen.Name == k.Name {
			seen.DeepCopyInto(k)
			t.Logf("%s %s %+v", e.Type, seen.Status.State, seen.Status.Modules)
			if ok(k) {
				return
			}
		}
	}
	t.Fatalf("the Kyma did not become as wanted: %+v", k.Status)
}

func create(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, obj := range objects {
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
}

const space = controlplane.DefaultNamespace

func TestFirstModule(t *testing.T) {
	dir, source := t.TempDir(), filepath.Join(t.TempDir(), "a.yaml")
	if err := os.WriteFile(source, []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: b}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, c := start(t, dir)
	k := &v1beta2.Kyma{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "eu-1"}, Spec: v1beta2.KymaSpec{
		Channel: "regular", Modules: []v1beta2.Module{{Name: "one"}},
	}}
	create(t, c,
		&v1beta2.Runtime{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "eu-1"}, Spec: v1beta2.RuntimeSpec{Provider: "local", DriftDetection: v1beta2.DriftWatch}},
		&v1beta2.ModuleTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "one-1.0.0"}, Spec: v1beta2.ModuleTemplateSpec{
			ModuleName: "one", Version: "1.0.0", Source: v1beta2.Source{Manifests: &v1beta2.SourceRef{Path: source}},
		}},
		&v1beta2.ModuleReleaseMeta{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "one"}, Spec: v1beta2.ModuleReleaseMetaSpec{
			ModuleName: "one", Channels: []v1beta2.ChannelVersion{{Channel: "regular", Version: "1.0.0"}},
		}}, k)
	until(t, c, k, func(k *v1beta2.Kyma) bool { return k.Status.State == v1beta2.StateReady && len(k.Status.Modules) == 1 })
	var secret corev1.Secret
	if err := c.Get(t.Context(), types.NamespacedName{Namespace: space, Name: "eu-1-kubeconfig"}, &secret); err != nil {
		t.Fatal(err)
	}
}
