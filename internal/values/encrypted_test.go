package values_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/infra/local/localtest"
	"github.com/kyma-project/mothership/internal/values"
)

// encrypted is a file of internal/sops that the real program has encrypted.
func encrypted(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "sops", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestReadDecrypts follows a namespace from no keys to the right ones. Each step reads live, so that nothing has to be restarted.
func TestReadDecrypts(t *testing.T) {
	t.Parallel()
	srv := localtest.Server(t)
	namespace := localtest.Namespace(t, srv)
	c, err := client.New(srv.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(encrypted(t, "suffix.yaml"), "port: 5432", "port: 1", 1)
	for _, obj := range []client.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c"}, Data: map[string]string{
			"values.yaml": encrypted(t, "suffix.yaml"), "changed": changed, "plain": "port: 1",
		}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "s"}, StringData: map[string]string{"json": encrypted(t, "json.json")}},
	} {
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	m := &v1beta2.Module{Name: "web", ValuesFrom: []v1beta2.ValuesReference{
		{Kind: "Secret", Name: "s", Key: "json"}, {Kind: "ConfigMap", Name: "c"}, {Kind: "ConfigMap", Name: "c", Key: "plain"},
	}}
	read := func(step string, m *v1beta2.Module, want values.Result) {
		t.Helper()
		got, err := values.Read(t.Context(), c, namespace, m)
		if err != nil {
			t.Fatalf("%s: %v", step, err)
		}
		for _, secret := range []string{"hunter2", "HUNTER2", "AGE-SECRET-KEY-1"} {
			if strings.Contains(got.Problem, secret) {
				t.Errorf("%s: the problem shows %s", step, secret)
			}
		}
		if want.Problem != "" && strings.Contains(got.Problem, want.Problem) {
			want.Problem = got.Problem
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step, diff)
		}
	}
	read("without keys", m, values.Result{
		Values: map[string]any{"port": 1.0}, Missing: []string{"values/secret/sops-age"},
	})

	key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: values.KeySecret}, StringData: map[string]string{"note": "x"}}
	if err := c.Create(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	set := func(data map[string]string) {
		t.Helper()
		key.Data, key.StringData = nil, data
		if err := c.Update(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	read("with a Secret without keys", m, values.Result{
		Problem: "modules[web].valuesFrom[0]: key json of Secret s: Secret sops-age, keys that end in .agekey: reading age keys: there is none",
	})
	set(map[string]string{"a.agekey": "AGE-SECRET-KEY-HUNTER2"})
	read("with a malformed key", m, values.Result{Problem: "reading age keys, file 1, line 1: it is no secret key"})
	set(map[string]string{"a.agekey": encrypted(t, "other.txt")})
	read("with another's key", m, values.Result{
		Problem: "key json of Secret s: it is encrypted by SOPS, but no key at hand opens it: it is encrypted for \"age1",
	})
	set(map[string]string{"a.agekey": encrypted(t, "other.txt"), "b.agekey": encrypted(t, "key.txt")})
	read("with the keys", m, values.Result{Values: map[string]any{
		"replicas": 3.0, "ratio": 0.5, "enabled": true, "password": "hunter2hunter2", "empty": "", "none": nil,
		"list":      []any{map[string]any{"a": "b"}, 1.0, "x"},
		"db_secret": map[string]any{"user": "u", "list": []any{"a", 2.0}}, "port": 1.0,
	}})
	read("what was changed", &v1beta2.Module{Name: "web", ValuesFrom: []v1beta2.ValuesReference{{Kind: "ConfigMap", Name: "c", Key: "changed"}}},
		values.Result{Problem: "it was changed after it was encrypted: something was added, removed or moved"})
}
