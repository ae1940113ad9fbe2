package source

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kyma-project/mothership/api/v1beta2"
)

func TestRefTo(t *testing.T) {
	t.Parallel()
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	oci := func(url, tag, digest string) v1beta2.SourceRef {
		return v1beta2.SourceRef{OCI: &v1beta2.OCISource{URL: url, Tag: tag, Digest: digest}}
	}
	git := func(url, ref, path string) v1beta2.SourceRef {
		return v1beta2.SourceRef{Git: &v1beta2.GitSource{URL: url, Ref: ref, Path: path}}
	}
	for place, want := range map[string]v1beta2.SourceRef{
		"":                              {},
		"-":                             {Path: "-"},
		"charts/web":                    {Path: "charts/web"},
		"/a b/c://d":                    {Path: "/a b/c://d"},
		"https://example.com/x.tgz?a=b": {URL: "https://example.com/x.tgz?a=b"},
		"s3://bucket/x":                 {URL: "s3://bucket/x"},
		"oci://example.com/web:1.0":     oci("oci://example.com/web", "1.0", ""),
		"OCI://example.com:5000/a/web":  oci("oci://example.com:5000/a/web", "", ""),
		"oci://h:5000/web:1@" + digest:  oci("oci://h:5000/web", "", digest),
		"git+https://example.com/org/repo.git@v1.0#charts/web": git("https://example.com/org/repo.git", "v1.0", "charts/web"),
		"git+https://me:pw@example.com/repo":                   git("https://me:pw@example.com/repo", "", ""),
		"git+ssh://git@example.com/repo@feature/one":           git("ssh://git@example.com/repo", "feature/one", ""),
		"git+https://example.com/repo#a":                       git("https://example.com/repo", "", "a"),
	} {
		if diff := cmp.Diff(want, RefTo(place)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", place, diff)
		}
	}
}

func TestRefSaysWhatItIs(t *testing.T) {
	t.Parallel()
	commit := strings.Repeat("0123456789", 4)
	for want, ref := range map[string]v1beta2.SourceRef{
		"https://example.com/repo@main#a":           {Git: &v1beta2.GitSource{URL: "https://me:s3cret@example.com/repo", Ref: "main", Path: "a"}},
		"https://example.com/repo@012345678901":     {Git: &v1beta2.GitSource{URL: "https://example.com/repo", Ref: commit}},
		"https://example.com/charts/web ~1.2":       {Helm: &v1beta2.HelmSource{Repository: "https://example.com/charts?s3cret", Chart: "web", Version: "~1.2"}},
		"oci://example.com/web:1":                   {OCI: &v1beta2.OCISource{URL: "oci://example.com/web", Tag: "1"}},
		"https://example.com/x.tgz":                 {URL: "https://me:s3cret@example.com/x.tgz?s3cret"},
		"standard input":                            {Path: "-"},
		"web":                                       {Path: "web"},
		"oci://example.com/web@" + BytesDigest(nil): {OCI: &v1beta2.OCISource{URL: "oci://example.com/web", Digest: BytesDigest(nil)}},
	} {
		r := Ref{SourceRef: ref}
		if got := r.String(); got != want {
			t.Errorf("reference is %q, want %q", got, want)
		}
		if local := strings.HasPrefix(want, "standard") || want == "web"; r.IsLocal() != local {
			t.Errorf("%s: local is %t", want, r.IsLocal())
		}
	}
}

func TestRefIsChecked(t *testing.T) {
	t.Parallel()
	helm := func(repository, chart string) *v1beta2.HelmSource {
		return &v1beta2.HelmSource{Repository: repository, Chart: chart}
	}
	oci := func(url, tag, digest string) *v1beta2.OCISource {
		return &v1beta2.OCISource{URL: url, Tag: tag, Digest: digest}
	}
	tests := map[string]struct {
		kind Kind
		ref  v1beta2.SourceRef
		err  error
		says string
	}{
		"TwoPlaces":       {Chart, v1beta2.SourceRef{Path: "a", OCI: oci("oci://h/x", "1", "")}, ErrInvalid, "2 places"},
		"HelmOfManifests": {Manifests, v1beta2.SourceRef{Helm: helm("https://h", "x")}, ErrInvalid, "holds charts, not manifests"},
		"HelmByOCI":       {Chart, v1beta2.SourceRef{Helm: helm("oci://h/x", "x")}, ErrUnsupported, "a chart in a registry is set as oci"},
		"HelmNoHost":      {Chart, v1beta2.SourceRef{Helm: helm("https://", "x")}, ErrInvalid, "not the address"},
		"HelmNoChart":     {Chart, v1beta2.SourceRef{Helm: helm("https://h", "")}, ErrInvalid, "name of the chart is missing"},
		"OCINoRepository": {Chart, v1beta2.SourceRef{OCI: oci("oci://h", "1", "")}, ErrInvalid, "oci://HOST/REPOSITORY"},
		"OCIPassword":     {Chart, v1beta2.SourceRef{OCI: oci("oci://me:s3cret@h/x", "1", "")}, ErrInvalid, "oci://HOST/REPOSITORY"},
		"OCIByHTTPS":      {Chart, v1beta2.SourceRef{OCI: oci("https://h/x", "1", "")}, ErrUnsupported, "begins with oci://"},
		"OCINoTag":        {Chart, v1beta2.SourceRef{OCI: oci("oci://h/x", "", "")}, ErrInvalid, "exactly one of tag and digest"},
		"OCIBoth":         {Chart, v1beta2.SourceRef{OCI: oci("oci://h/x", "1", BytesDigest(nil))}, ErrInvalid, "exactly one of tag and digest"},
		"OCIBadTag":       {Chart, v1beta2.SourceRef{OCI: oci("oci://h/x", "../x", "")}, ErrInvalid, "tag \"../x\" is malformed"},
		"OCIBadDigest":    {Chart, v1beta2.SourceRef{OCI: oci("oci://h/x", "", "sha256:1")}, ErrInvalid, "is not sha256:"},
		"OCIUpperCase":    {Chart, v1beta2.SourceRef{OCI: oci("oci://h.invalid/X", "1", "")}, ErrInvalid, "in lower case"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := New(Options{}).Fetch(t.Context(), Ref{Kind: tc.kind, SourceRef: tc.ref})
			wantError(t, err, tc.err, tc.says)
			if strings.Contains(err.Error(), "s3cret") {
				t.Errorf("message shows a credential: %v", err)
			}
		})
	}
}
