package controlplane

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/source"
)

// Each change shows at once, also one right after a read, of the same length.
func TestRecent(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "app.yaml")
	reads := 0
	f := recent(source.FetcherFunc(func(context.Context, source.Ref) (*source.Tree, error) {
		reads++
		text, err := os.ReadFile(file)
		return &source.Tree{Digest: string(text)}, err
	}))
	fetch := func(want string, wantReads int) {
		t.Helper()
		tree, err := f.Fetch(t.Context(), source.Ref{Kind: source.Manifests, SourceRef: v1beta2.SourceRef{Path: file}})
		if err != nil || tree.Digest != want || reads != wantReads {
			t.Errorf("got %+v, %v after %d reads; want %q after %d", tree, err, reads, want, wantReads)
		}
	}
	write := func(text string, at time.Time) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
	old := time.Now().Add(-time.Hour)
	write("one", old)
	fetch("one", 1)
	fetch("one", 1)
	write("two", old.Add(time.Second))
	fetch("two", 2)
	write("new", time.Now()) // too young to be remembered
	fetch("new", 3)
	write("yet", time.Now())
	fetch("yet", 4)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Fetch(t.Context(), source.Ref{Kind: source.Manifests, SourceRef: v1beta2.SourceRef{Path: file}}); err == nil {
		t.Error("what is gone is remembered")
	}
}
