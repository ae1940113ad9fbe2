package content_test

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kyma-project/mothership/sim/content"
)

func config(name, value string) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": name, "namespace": "demo", "uid": "of somebody else", "labels": map[string]any{"a": "b"}},
		"data":     map[string]any{"text": value},
	}
}

func intern(t *testing.T, object map[string]any) *content.Content {
	t.Helper()
	c, err := content.New(object)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestEqualContentsAreOne(t *testing.T) {
	t.Parallel()
	a, b, other := intern(t, config("one", "x")), intern(t, config("one", "x")), intern(t, config("one", "y"))
	if a != b {
		t.Error("equal contents are two")
	}
	if a == other {
		t.Error("different contents are one")
	}
}

func TestForms(t *testing.T) {
	t.Parallel()
	c := intern(t, config("forms", "x"))
	id := content.Identity{UID: content.UID(1, 2), ResourceVersion: 7, Created: time.Unix(1e9, 0), Generation: 3}
	meta := map[string]any{
		"name": "forms", "namespace": "demo", "labels": map[string]any{"a": "b"}, "uid": string(id.UID),
		"resourceVersion": "7", "generation": 3.0, "creationTimestamp": "2001-09-09T01:46:40Z",
	}
	for form, want := range map[string]map[string]any{
		string(c.AppendObject(nil, "v2", id)): {
			"apiVersion": "v2", "kind": "ConfigMap", "metadata": meta, "data": map[string]any{"text": "x"},
		},
		string(c.AppendMetadata(nil, id)): {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": meta},
	} {
		var got map[string]any
		if err := json.Unmarshal([]byte(form), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestTreeSurvivesCollection(t *testing.T) {
	t.Parallel()
	c := intern(t, config("tree", "x"))
	runtime.GC()
	runtime.GC()
	want := config("tree", "x")
	delete(want["metadata"].(map[string]any), "uid")
	if diff := cmp.Diff(want, c.Tree()); diff != "" {
		t.Error(diff)
	}
}

func TestUIDsDiffer(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for seed := range uint64(50) {
		for birth := range uint64(50) {
			uid := string(content.UID(seed, birth))
			if seen[uid] || len(uid) != 36 || strings.Count(uid, "-") != 4 || uid[14] != '4' {
				t.Fatalf("UID %s of %d, %d", uid, seed, birth)
			}
			seen[uid] = true
		}
	}
}
