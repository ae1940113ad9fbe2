package source

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kyma-project/mothership/api/v1beta2"
)

func TestMuxSchemes(t *testing.T) {
	t.Parallel()
	m := New(Options{})
	for _, url := range []string{"git+https://user:secret@example.com/repo", "oci://example.com/chart?secret", "nothing"} {
		_, err := m.Fetch(t.Context(), urlRef(Chart, url))
		wantError(t, err, ErrUnsupported, "are not supported: use one of http, https, or a local path")
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("message shows a credential: %v", err)
		}
	}
	_, err := m.Fetch(t.Context(), urlRef(Chart, "http:///nohost"))
	wantError(t, err, ErrInvalid, "not an address")
	_, err = m.Fetch(t.Context(), urlRef(Chart, "://secret"))
	wantError(t, err, ErrUnsupported, "(unreadable address)")
}

func TestMuxRegister(t *testing.T) {
	t.Parallel()
	data := packFiles(t, "demo/Chart.yaml", "name: demo")
	good, err := Unpack(t.Context(), urlRef(Chart, "oci://example.com/demo"), data, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	with := func(change func(*Tree)) *Tree {
		bad := *good
		bad.Files = append([]File(nil), good.Files...)
		change(&bad)
		return &bad
	}
	tests := map[string]struct {
		tree *Tree
		err  error
	}{
		"Good":        {tree: good},
		"Nothing":     {tree: nil, err: ErrInvalid},
		"NoDigest":    {tree: with(func(t *Tree) { t.Digest = "" }), err: ErrInvalid},
		"OtherDigest": {tree: with(func(t *Tree) { t.Digest = BytesDigest(nil) }), err: ErrDigest},
		"BadPath":     {tree: with(func(t *Tree) { t.Files[0].Path = "demo/../../x" }), err: ErrUnsafe},
		"Unsorted":    {tree: with(func(t *Tree) { t.Files = append(t.Files, File{Path: "a"}) }), err: ErrInvalid},
		"NoRoot":      {tree: with(func(t *Tree) { t.Root = "other" }), err: ErrNotFound},
		"TooLarge":    {tree: with(func(t *Tree) { t.Files[0].Data = make([]byte, 17<<20) }), err: ErrTooLarge},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := New(Options{})
			m.Register("OCI", FetcherFunc(func(ctx context.Context, _ Ref) (*Tree, error) {
				if _, ok := ctx.Deadline(); !ok {
					t.Error("the fetch has no deadline")
				}
				return tc.tree, nil
			}))
			ref := urlRef(Chart, "oci://example.com/demo")
			ref.Digest = BytesDigest(data)
			tree, err := m.Fetch(t.Context(), ref)
			if diff := cmp.Diff(tc.err, err, cmpopts.EquateErrors()); diff != "" {
				t.Error(diff)
			}
			if (tree != nil) != (tc.err == nil) {
				t.Errorf("tree is %+v", tree)
			}
		})
	}
}

func TestMuxTimeout(t *testing.T) {
	t.Parallel()
	m := New(Options{Timeout: time.Millisecond})
	m.Register("slow", FetcherFunc(func(ctx context.Context, _ Ref) (*Tree, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}))
	_, err := m.Fetch(t.Context(), urlRef(Chart, "slow://example.com/x"))
	wantError(t, err, ErrUnavailable, "fetching slow://example.com/x: did not end within 1ms")
}

func TestRefDigestIsChecked(t *testing.T) {
	t.Parallel()
	digests := []string{"sha256:abc", "md5:" + strings.Repeat("0", 64), "sha256:" + strings.Repeat("G", 64), strings.Repeat("0", 64),
		"sha256:" + strings.Repeat("A", 64)}
	for _, digest := range digests {
		ref := urlRef(Chart, "https://192.0.2.1/never-asked")
		ref.Digest = digest
		_, err := New(Options{}).Fetch(t.Context(), ref)
		wantError(t, err, ErrInvalid, "is not sha256:<64 lower-case hex digits>")
	}
}

func TestRefOf(t *testing.T) {
	t.Parallel()
	ref := &v1beta2.SourceRef{Path: "x"}
	for kind, s := range map[Kind]v1beta2.Source{Chart: {Chart: ref}, Kustomize: {Kustomize: ref}, Manifests: {Manifests: ref}} {
		got, err := RefOf(s)
		if err != nil || got.Kind != kind || got.SourceRef != *ref {
			t.Errorf("reference is %+v, %v", got, err)
		}
	}
	_, err := RefOf(v1beta2.Source{})
	wantError(t, err, ErrInvalid, "set exactly one")
	_, err = RefOf(v1beta2.Source{Chart: ref, Kustomize: ref})
	wantError(t, err, ErrInvalid, "has 2 of")
}

func TestRedact(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://u:p@example.com/x.tgz?token=t#f": "https://example.com/x.tgz",
		"git@github.com:org/repo.git":             "(unreadable address)",
		"https://example.com/%zz":                 "(unreadable address)",
		"mailto:u@example.com":                    "(unreadable address)",
	} {
		if got := Redact(address); got != want {
			t.Errorf("Redact(%q) is %q, want %q", address, got, want)
		}
	}
}

func TestErrorText(t *testing.T) {
	t.Parallel()
	err := at("reading archive", "https://example.com/x.tgz", refuse(ErrUnsafe, "../../etc/passwd", "leaves the archive: refused"))
	const want = `reading archive https://example.com/x.tgz: entry "../../etc/passwd" leaves the archive: refused`
	if err.Error() != want {
		t.Errorf("message is %q, want %q", err, want)
	}
	if again := at("fetching", "elsewhere", err); !errors.Is(again, err) || again.Error() != want {
		t.Errorf("message is %q", again)
	}
	long := refuse(ErrUnsafe, strings.Repeat("x", 5000), "is odd")
	if n := len(long.Error()); n > 300 {
		t.Errorf("message has %d bytes", n)
	}
}
