package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/kind"
)

// FuzzNew checks that no objects, whatever is in them, make a bundle panic, and that what becomes one keeps its promises: the same
// again from the same input, each object once, labelled, with the digest of its own bytes, and without what belongs to the server.
// The seeds are under testdata/fuzz.
func FuzzNew(f *testing.F) {
	f.Fuzz(func(t *testing.T, text []byte, once bool) {
		first, err := New(manifests(t, text, once), fuzzOptions)
		again, errAgain := New(manifests(t, text, once), fuzzOptions)
		if (err == nil) != (errAgain == nil) || err != nil && err.Error() != errAgain.Error() {
			t.Fatalf("once %v, then %v", err, errAgain)
		}
		if err != nil {
			if first != nil || !errors.Is(err, ErrEmpty) && !errors.As(err, new(*Error)) {
				t.Fatalf("%v, %v", first, err)
			}
			return
		}
		if first.Digest != again.Digest {
			t.Fatalf("digest %s, then %s", first.Digest, again.Digest)
		}
		seen := map[Ref]bool{}
		for _, o := range first.Objects {
			if seen[o.Ref] {
				t.Fatalf("%s is there twice", o.Ref)
			}
			seen[o.Ref] = true
			checkObject(t, o)
		}
		if _, err := first.Definitions(); err != nil && !errors.As(err, new(*Error)) {
			t.Fatal(err)
		}
	})
}

var fuzzOptions = Options{
	Module: "m", Namespace: "n",
	ScopeOf: func(gk schema.GroupKind) kind.Scope {
		if strings.HasPrefix(gk.Kind, "N") {
			return kind.ScopeNamespaced
		}
		return kind.ScopeUnknown
	},
}

// manifests decodes JSON values as renderers do; what is no object is left out.
func manifests(t *testing.T, text []byte, once bool) []Manifest {
	t.Helper()
	var out []Manifest
	for line := range bytes.Lines(text) {
		var obj map[string]any
		if kjson.UnmarshalCaseSensitivePreserveInts(line, &obj) == nil && obj != nil {
			out = append(out, Manifest{Object: obj, Origin: "fuzz", Once: once})
		}
	}
	return out
}

// checkObject checks what every object of a bundle promises.
func checkObject(t *testing.T, o *Object) {
	t.Helper()
	var obj struct {
		Metadata struct {
			Name        string            `json:"name"`
			Labels      map[string]string `json:"labels"`
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	var all map[string]any
	if err := errors.Join(json.Unmarshal(o.Bytes, &obj), json.Unmarshal(o.Bytes, &all)); err != nil {
		t.Fatalf("%s: %v", o.Ref, err)
	}
	if obj.Metadata.Name != o.Name || obj.Metadata.Annotations[o.DigestKey] != o.Digest {
		t.Fatalf("%s has another name or digest in its bytes: %s", o.Ref, o.Bytes)
	}
	if o.Member != (obj.Metadata.Labels[v1beta2.ApplySetPartOfLabel] == ApplySetID("n", "m")) {
		t.Fatalf("%s: member %t: %s", o.Ref, o.Member, o.Bytes)
	}
	slot := `"` + o.DigestKey + `":"`
	if Digest(bytes.Replace(o.Bytes, []byte(slot+o.Digest), []byte(slot+noDigest), 1)) != o.Digest {
		t.Fatalf("%s: the digest is not that of its bytes: %s", o.Ref, o.Bytes)
	}
	meta := all["metadata"].(map[string]any)
	for _, field := range serverFields {
		if _, ok := meta[field]; ok {
			t.Fatalf("%s has metadata.%s", o.Ref, field)
		}
	}
	if _, ok := all["status"]; ok {
		t.Fatalf("%s has a status", o.Ref)
	}
}
