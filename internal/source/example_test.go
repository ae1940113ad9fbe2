package source_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/source"
)

// A folder of manifests, verified against its digest.
func ExampleNew() {
	dir, err := os.MkdirTemp("", "manifests")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	config := []byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: greeting\n")
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), config, 0o600); err != nil {
		panic(err)
	}

	tree, err := source.New(source.Options{}).Fetch(context.Background(), source.Ref{
		SourceRef: v1beta2.SourceRef{
			Path:   dir,
			Digest: "sha256:8b23fac9ef6247e053a7f0063492fd0884169962a8b668ddecadebbb5bf789ab",
		},
		Kind: source.Manifests,
	})
	if err != nil {
		panic(err)
	}
	for _, f := range tree.Files {
		fmt.Println(f.Path, len(f.Data))
	}
	// Output:
	// config.yaml 58
}

// One download for all who ask for the same content.
func ExampleCached() {
	requests := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests++
		fmt.Fprint(w, "kind: Namespace\n")
	}))
	defer srv.Close()

	sources := source.Cached(source.New(source.Options{}), 64<<20)
	ref := source.Ref{
		SourceRef: v1beta2.SourceRef{URL: srv.URL + "/ns.yaml", Digest: source.BytesDigest([]byte("kind: Namespace\n"))},
		Kind:      source.Manifests,
	}
	for range 3 {
		if _, err := sources.Fetch(context.Background(), ref); err != nil {
			panic(err)
		}
	}
	fmt.Println(requests)
	// Output:
	// 1
}
