package apitest

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// TestObjectsOfTheFieldAreAcceptedUnchanged takes objects as they are written for Kyma's lifecycle-manager: each is accepted
// strictly, kept whole, and known to the Go types.
func TestObjectsOfTheFieldAreAcceptedUnchanged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	files, err := filepath.Glob("../../api/testdata/field/*.yaml")
	if err != nil || len(files) < 6 {
		t.Fatalf("finding the objects: %q, %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want, err := decode(string(content))
			if err != nil {
				t.Fatal(err)
			}
			made := b.mustCreate(t, want)
			got, err := b.resource(want.GetKind()).Get(t.Context(), made.GetName(), metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			want.SetNamespace(b.namespace)
			for _, path := range lost(want.Object, got.Object, "") {
				t.Errorf("%s is not what was written", path)
			}
			typed, err := v1beta2Scheme(t).New(got.GroupVersionKind())
			if err != nil {
				t.Fatal(err)
			}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(got.Object, typed, true); err != nil {
				t.Errorf("the Go types do not know all of it: %v", err)
			}
		})
	}
}

func v1beta2Scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1beta2.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return scheme
}

// lost are the paths of what stands in one document and not, or otherwise, in the other. The other may have more fields, as
// the server adds defaults.
func lost(want, got any, path string) []string {
	switch want := want.(type) {
	case map[string]any:
		other, ok := got.(map[string]any)
		if !ok {
			return []string{path}
		}
		var paths []string
		for _, key := range slices.Sorted(maps.Keys(want)) {
			if _, found := other[key]; !found {
				paths = append(paths, path+"."+key)
				continue
			}
			paths = append(paths, lost(want[key], other[key], path+"."+key)...)
		}
		return paths
	case []any:
		other, ok := got.([]any)
		if !ok || len(other) != len(want) {
			return []string{path}
		}
		var paths []string
		for i := range want {
			paths = append(paths, lost(want[i], other[i], fmt.Sprintf("%s[%d]", path, i))...)
		}
		return paths
	}
	if want != got {
		return []string{path}
	}
	return nil
}

func TestLostFindsWhatIsLost(t *testing.T) {
	t.Parallel()
	want := map[string]any{"a": "x", "b": []any{map[string]any{"c": int64(1)}}, "d": true}
	got := map[string]any{"a": "x", "b": []any{map[string]any{"c": int64(2), "more": "x"}}}
	if paths := lost(want, got, ""); !slices.Equal(paths, []string{".b[0].c", ".d"}) {
		t.Errorf("lost %q", paths)
	}
}
