package values_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/infra/local/localtest"
	"github.com/kyma-project/mothership/internal/values"
)

func TestMain(m *testing.M) { os.Exit(localtest.Main(m)) }

func TestRead(t *testing.T) {
	t.Parallel()
	srv := localtest.Server(t)
	namespace := localtest.Namespace(t, srv)
	c, err := client.New(srv.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
	for _, obj := range []client.Object{
		&corev1.ConfigMap{ObjectMeta: meta("base"), Data: map[string]string{"values.yaml": "a: {x: 1, z: 1}\nb: base", "list": "[1, 2]"}},
		&corev1.Secret{ObjectMeta: meta("over"), Data: map[string][]byte{"other.yaml": []byte("a: {z: s3cret}"), "broken": []byte("s3cret: s3cret: s3cret")}},
	} {
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	base := v1beta2.ValuesReference{Kind: "ConfigMap", Name: "base"}
	over := v1beta2.ValuesReference{Kind: "Secret", Name: "over", Key: "other.yaml"}
	inline := &runtime.RawExtension{Raw: []byte(`{"b":"inline"}`)}
	for _, tc := range []struct {
		name   string
		module *v1beta2.Module
		want   values.Result
	}{
		{"NoModule", nil, values.Result{}},
		{"Nothing", &v1beta2.Module{}, values.Result{Values: map[string]any{}}},
		{"LaterOnesWin", &v1beta2.Module{ValuesFrom: []v1beta2.ValuesReference{base, over}, Values: inline},
			values.Result{Values: map[string]any{"a": map[string]any{"x": 1.0, "z": "s3cret"}, "b": "inline"}}},
		{"OrderMatters", &v1beta2.Module{ValuesFrom: []v1beta2.ValuesReference{over, base}},
			values.Result{Values: map[string]any{"a": map[string]any{"x": 1.0, "z": 1.0}, "b": "base"}}},
		{"Missing", &v1beta2.Module{ValuesFrom: []v1beta2.ValuesReference{{Kind: "Secret", Name: "none"}, {Kind: "ConfigMap", Name: "base", Key: "none"}}},
			values.Result{Values: map[string]any{}, Missing: []string{"values/secret/none", "values/configmap/base"}}},
		{"Optional", &v1beta2.Module{ValuesFrom: []v1beta2.ValuesReference{{Kind: "Secret", Name: "none", Optional: true}}, Values: inline},
			values.Result{Values: map[string]any{"b": "inline"}}},
		{"NoMap", &v1beta2.Module{Name: "web", ValuesFrom: []v1beta2.ValuesReference{{Kind: "ConfigMap", Name: "base", Key: "list"}}},
			values.Result{Problem: "modules[web].valuesFrom[0]: key list of ConfigMap base is not YAML with a map at its top"}},
		{"Broken", &v1beta2.Module{Name: "web", ValuesFrom: []v1beta2.ValuesReference{base, {Kind: "Secret", Name: "over", Key: "broken"}}},
			values.Result{Problem: "modules[web].valuesFrom[1]: key broken of Secret over is not YAML with a map at its top"}},
		{"InlineIsNoMap", &v1beta2.Module{Name: "web", Values: &runtime.RawExtension{Raw: []byte(`[1]`)}},
			values.Result{Problem: "modules[web].values is not a map"}},
	} {
		got, err := values.Read(t.Context(), c, namespace, tc.module)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

func TestReadSaysWhatCouldNotBeRead(t *testing.T) {
	t.Parallel()
	c, err := client.New(localtest.Server(t).Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := &v1beta2.Module{ValuesFrom: []v1beta2.ValuesReference{{Kind: "Secret", Name: "Not A Name"}}}
	_, err = values.Read(t.Context(), c, "default/else", m)
	if err == nil || !strings.Contains(err.Error(), "reading Secret default/else/Not A Name of valuesFrom: ") {
		t.Errorf("error %v", err)
	}
}

func TestFacts(t *testing.T) {
	t.Parallel()
	m := &v1beta2.Module{ValuesFrom: []v1beta2.ValuesReference{{Kind: "Secret", Name: "a"}, {Kind: "ConfigMap", Name: "b"}}}
	if diff := cmp.Diff([]string{"values/secret/a", "values/configmap/b", "values/secret/sops-age"}, values.Facts(m)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := values.Facts(nil); got != nil {
		t.Errorf("of no module: %v", got)
	}
	if got := values.Facts(&v1beta2.Module{}); got != nil {
		t.Errorf("of a module without any: %v", got)
	}
}
