package source

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
)

const exampleURL = "https://user:secret@charts.example.com/demo.tgz?token=secret"

// small are limits that tests can reach.
var small = Limits{Bytes: 1 << 20, FileBytes: 64 << 10, Files: 100, Download: 1 << 20, PathLength: 200, Depth: 8}

func TestUnpackRefuses(t *testing.T) {
	t.Parallel()
	ok := entry{name: "a.yaml", data: "a: 1"}
	deep := strings.Repeat("d/", 9) + "f.yaml"
	var many []entry
	for i := range 101 {
		many = append(many, entry{name: fmt.Sprintf("%d.yaml", i), data: "a: 1"})
	}
	var big []entry
	for i := range 20 {
		big = append(big, entry{name: fmt.Sprintf("%d.yaml", i), data: strings.Repeat(" ", 60<<10)})
	}
	negative := [12]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xf0}
	huge := [12]byte{0x80, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	pax := "16 path=a\x00b.yaml\n"
	plain := pack(t, ok)
	marker := len(plain) - 1024
	tests := map[string]struct {
		data   []byte
		reason error
		says   string
	}{
		"ParentPath":            {pack(t, ok, entry{name: "../../etc/passwd"}), ErrUnsafe, `entry "../../etc/passwd" leaves the archive: refused`},
		"ParentPathInside":      {pack(t, ok, entry{name: "x/../y.yaml"}), ErrUnsafe, `leaves the archive`},
		"AbsolutePath":          {pack(t, entry{name: "/etc/passwd"}), ErrUnsafe, `"/etc/passwd" is absolute`},
		"Backslash":             {pack(t, entry{name: `..\evil.yaml`}), ErrUnsafe, `backslash`},
		"Drive":                 {pack(t, entry{name: `c:evil.yaml`}), ErrUnsafe, `drive`},
		"ControlCharacter":      {pack(t, entry{name: "a\nb.yaml"}), ErrUnsafe, `control character`},
		"NotUTF8":               {pack(t, entry{name: "\xff\xfe.yaml"}), ErrUnsafe, `not UTF-8`},
		"NULInName":             {append(append(rawHeader("x", 'x', octal(len(pax))), block(pax)...), plain...), ErrInvalid, `malformed`},
		"NoName":                {append(rawHeader("", '0', octal(0)), plain...), ErrUnsafe, `no name`},
		"Symlink":               {pack(t, entry{name: "l.yaml", flag: tar.TypeSymlink, link: "/etc/passwd"}), ErrUnsafe, `"l.yaml" is a link`},
		"Hardlink":              {pack(t, ok, entry{name: "l.yaml", flag: tar.TypeLink, link: "a.yaml"}), ErrUnsafe, `"l.yaml" is a link`},
		"Device":                {pack(t, entry{name: "null", flag: tar.TypeChar}), ErrUnsafe, `device`},
		"BlockDevice":           {pack(t, entry{name: "sda", flag: tar.TypeBlock}), ErrUnsafe, `device`},
		"Pipe":                  {pack(t, entry{name: "p.yaml", flag: tar.TypeFifo}), ErrUnsafe, `pipe`},
		"UnknownType":           {pack(t, entry{name: "a.yaml", flag: tar.TypeCont}), ErrUnsupported, `unknown type '7'`},
		"Twice":                 {pack(t, ok, ok), ErrUnsafe, `twice`},
		"TwiceAfterCleaning":    {pack(t, ok, entry{name: "./a.yaml"}), ErrUnsafe, `twice`},
		"FileIsFolder":          {pack(t, ok, entry{name: "a.yaml/b.yaml"}), ErrUnsafe, `both a file and a folder`},
		"FolderIsFile":          {pack(t, entry{name: "a.yaml/b.yaml"}, ok), ErrUnsafe, `both a file and a folder`},
		"LongName":              {pack(t, entry{name: strings.Repeat("n", 201)}), ErrTooLarge, `the limit is 200`},
		"TooDeep":               {pack(t, entry{name: deep}), ErrTooLarge, `more than 8 folders deep`},
		"TooManyEntries":        {pack(t, many...), ErrTooLarge, `more than 100 entries`},
		"LargeFile":             {pack(t, entry{name: "a.yaml", data: strings.Repeat(" ", 65<<10)}), ErrTooLarge, `limit of 65536 bytes`},
		"InflatesTooFar":        {gz(t, pack(t, big...)), ErrTooLarge, `unpacks to more than the limit of 1048576 bytes`},
		"InflatesAfterItsEnd":   {gz(t, append(pack(t, ok), make([]byte, 2<<20)...)), ErrTooLarge, `unpacks to more`},
		"NegativeSize":          {rawHeader("a.yaml", '0', negative), ErrInvalid, `malformed`},
		"OverflowingSize":       {rawHeader("a.yaml", '0', huge), ErrTooLarge, `larger than the limit`},
		"ShorterThanItSays":     {append(rawHeader("a.yaml", '0', octal(5000)), block("a: 1")...), ErrInvalid, `cut off`},
		"CutInHeader":           {plain[:100+marker], ErrInvalid, `cut off`},
		"CutBeforeMarker":       {plain[:marker], ErrInvalid, `end marker is missing`},
		"CutInMarker":           {plain[:marker+512], ErrInvalid, `end marker is missing`},
		"CutInGzip":             {gz(t, plain)[:60], ErrInvalid, `cut off`},
		"BadGzipChecksum":       {flip(gz(t, plain), -6), ErrInvalid, `malformed`},
		"BadHeaderChecksum":     {flip(bytes.Clone(plain), 150), ErrInvalid, `malformed`},
		"DataAfterArchive":      {append(bytes.Clone(plain), "trailing"...), ErrInvalid, `other data after its end`},
		"DataAfterGzip":         {append(gz(t, plain), "trailing garbage"...), ErrInvalid, `malformed`},
		"SecondArchiveInStream": {append(gz(t, plain), gz(t, plain)...), ErrInvalid, `other data after its end`},
		"NoFiles":               {pack(t, entry{name: "d/", flag: tar.TypeDir}), ErrInvalid, `no files`},
		"GzipOfText":            {gz(t, []byte("a: 1")), ErrInvalid, `cut off`},
		"Zip":                   {[]byte("PK\x03\x04rest"), ErrInvalid, `malformed: zip: not a valid zip file`},
		"WebPage":               {[]byte("\n<!DOCTYPE html>"), ErrUnsupported, `web page`},
		"Binary":                {[]byte{0x7f, 'E', 'L', 'F', 0, 1}, ErrUnsupported, `neither a tar archive nor a text file`},
		"Empty":                 {nil, ErrInvalid, `empty`},
		"Blank":                 {[]byte(" \n"), ErrInvalid, `empty`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Unpack(t.Context(), urlRef(Manifests, exampleURL), tc.data, small)
			wantError(t, err, tc.reason, "reading archive https://charts.example.com/demo.tgz: ", tc.says)
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("message shows a credential: %v", err)
			}
		})
	}
}

// flip damages one byte, counted from the end if negative.
func flip(data []byte, at int) []byte {
	if at < 0 {
		at += len(data)
	}
	data[at] ^= 0x55
	return data
}

func TestUnpackTolerates(t *testing.T) {
	t.Parallel()
	a, b := entry{name: "x/a.yaml", data: "a: 1"}, entry{name: "x/b.yaml", data: "b: 1"}
	folder := entry{name: "x/", flag: tar.TypeDir}
	plain := pack(t, a, b)
	tests := map[string][]byte{
		"PlainTar":      plain,
		"Gzip":          gz(t, plain),
		"GzipInMembers": append(gz(t, plain[:700]), gz(t, plain[700:])...),
		"Unsorted":      pack(t, b, a),
		"DotPrefix":     pack(t, entry{name: "./", flag: tar.TypeDir}, entry{name: "./x/a.yaml", data: "a: 1"}, b),
		"FoldersTwice":  pack(t, folder, folder, a, b),
		"GlobalHeader":  pack(t, entry{flag: tar.TypeXGlobalHeader, data: "commit"}, a, b),
		"Padding":       append(bytes.Clone(plain), make([]byte, 9000)...),
	}
	for name, data := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree, err := Unpack(t.Context(), urlRef(Manifests, exampleURL), data, small)
			if err != nil {
				t.Fatal(err)
			}
			wantPaths(t, tree, "x/a.yaml", "x/b.yaml")
			if tree.Root != "x" || tree.Trusted || tree.Digest != BytesDigest(data) {
				t.Errorf("tree is %+v", tree)
			}
		})
	}
}

func TestUnpackFindsFolder(t *testing.T) {
	t.Parallel()
	chart := []string{"demo/Chart.yaml", "name: demo", "demo/templates/a.yaml", "a: 1"}
	two := []string{"a/kustomization.yaml", "resources: [../b]", "a/x.txt", "", "b/kustomization.yaml", "", "c/other.yaml", "c: 1"}
	tests := map[string]struct {
		kind  Kind
		path  string
		files []string
		root  string
		want  []string
		err   error
		says  string
	}{
		"Chart":                 {kind: Chart, files: chart, root: "demo", want: []string{"demo/Chart.yaml", "demo/templates/a.yaml"}},
		"ChartByPath":           {kind: Chart, path: "r/demo", files: []string{"r/demo/Chart.yaml", "", "r/z", ""}, root: "r/demo", want: []string{"r/demo/Chart.yaml"}},
		"ChartWithoutFolder":    {kind: Chart, files: []string{"Chart.yaml", "", "values.yaml", ""}, err: ErrInvalid, says: "one folder at its top"},
		"ChartOfTwoFolders":     {kind: Chart, files: append(chart, "other/x", ""), err: ErrInvalid, says: `"demo/", "other/"`},
		"NoChart":               {kind: Chart, files: []string{"demo/values.yaml", ""}, err: ErrNotFound, says: `"demo/Chart.yaml" is missing`},
		"Kustomization":         {kind: Kustomize, path: "a", files: two, root: "a", want: []string{"a/kustomization.yaml", "a/x.txt", "b/kustomization.yaml"}},
		"KustomizationMissing":  {kind: Kustomize, files: two, err: ErrNotFound, says: "holds no kustomization.yaml"},
		"KustomizationOutside":  {kind: Kustomize, files: []string{"a/kustomization.yaml", "bases: [../../b]"}, err: ErrUnsafe, says: `"../b" leaves the archive`},
		"KustomizationRemote":   {kind: Kustomize, files: []string{"a/kustomization.yaml", "resources:\n- https://u:secret@example.com/x?secret\n"}, err: ErrUnsupported, says: `refers to "example.com/x" in "resources": copy (vendor) it`},
		"Manifests":             {kind: Manifests, path: "./c/", files: two, root: "c", want: []string{"c/other.yaml"}},
		"ManifestsAtTop":        {kind: Manifests, files: []string{"a.yaml", "", "b/c.json", "", "README.md", ""}, root: ".", want: []string{"a.yaml", "b/c.json"}},
		"NoManifests":           {kind: Manifests, files: []string{"a/README.md", ""}, err: ErrNotFound, says: `folder "a" holds no *.yaml`},
		"PathMissing":           {kind: Manifests, path: "nope", files: two, err: ErrNotFound, says: `the archive, which has "a/", "b/", "c/"`},
		"PathLeaves":            {kind: Manifests, path: "../c", files: two, err: ErrUnsafe, says: "leaves the archive"},
		"PathOfFile":            {kind: Manifests, path: "c/other.yaml", files: two, err: ErrNotFound, says: "is not a folder"},
		"PathWithSharedPrefix":  {kind: Manifests, path: "c/oth", files: two, err: ErrNotFound, says: "is not a folder"},
		"ClosureSharesNoPrefix": {kind: Kustomize, path: "a", files: []string{"a/kustomization.yaml", "", "ab/x.yaml", ""}, root: "a", want: []string{"a/kustomization.yaml"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ref := urlRef(tc.kind, exampleURL)
			ref.Path = tc.path
			tree, err := Unpack(t.Context(), ref, packFiles(t, tc.files...), small)
			if tc.err != nil {
				wantError(t, err, tc.err, tc.says)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if tree.Root != tc.root {
				t.Errorf("root is %q, want %q", tree.Root, tc.root)
			}
			wantPaths(t, tree, tc.want...)
		})
	}
}

func TestUnpackVerifiesFirst(t *testing.T) {
	t.Parallel()
	ref := urlRef(Manifests, exampleURL)
	ref.Digest = BytesDigest([]byte("expected"))
	_, err := Unpack(t.Context(), ref, []byte("PK\x03\x04 would be refused for what it is"), small)
	wantError(t, err, ErrDigest, ref.Digest, "verifying https://charts.example.com/demo.tgz: ")
	if d, ok := errors.AsType[*DigestError](err); !ok || d.Want != ref.Digest {
		t.Errorf("error is %#v", err)
	}
}

func TestUnpackSingleFile(t *testing.T) {
	t.Parallel()
	names := map[string]string{
		"https://example.com/a/crds.yaml":          "crds.yaml",
		"https://example.com/list.JSON?x=y.yaml":   "list.JSON",
		"https://example.com/download":             "manifests.yaml",
		"https://example.com/":                     "manifests.yaml",
		"https://example.com/..%2f..%2fevil.yaml":  "evil.yaml",
		"https://example.com/x%5c..%5cevil.yaml":   "x%5C..%5Cevil.yaml",
		"https://example.com/evil%0aname%00x.yaml": "evil%0Aname%00x.yaml",
	}
	for url, want := range names {
		tree, err := Unpack(t.Context(), urlRef(Manifests, url), []byte("a: 1\n"), small)
		if err != nil {
			t.Fatal(err)
		}
		wantPaths(t, tree, want)
	}
	_, err := Unpack(t.Context(), urlRef(Chart, exampleURL), []byte("a: 1\n"), small)
	wantError(t, err, ErrUnsupported, "of kind chart is a folder or an archive")
	inside := urlRef(Manifests, exampleURL)
	inside.Path = "x"
	_, err = Unpack(t.Context(), inside, []byte("a: 1\n"), small)
	wantError(t, err, ErrNotFound, "leave the path out")
}

func TestUnpackEndsWithContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Unpack(ctx, urlRef(Manifests, exampleURL), packFiles(t, "x/a.yaml", "a: 1"), small)
	wantError(t, err, context.Canceled)
}

// FuzzArchive: whatever comes, unpacking ends with an error of this package or with a tree that keeps all promises.
func FuzzArchive(f *testing.F) {
	f.Add([]byte("a: 1\n"))
	f.Add(packFiles(f, "demo/Chart.yaml", "name: demo"))
	f.Add(packFiles(f, "a/kustomization.yaml", "resources: [../b]", "b/kustomization.yaml", ""))
	f.Add(pack(f, entry{name: "../x"}, entry{name: "l", flag: tar.TypeSymlink, link: "/"}))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, kind := range []Kind{Chart, Kustomize, Manifests} {
			tree, err := Unpack(t.Context(), urlRef(kind, exampleURL), data, small)
			if err == nil {
				err = small.Check(tree)
				if err != nil {
					t.Fatalf("accepted a bad tree: %v", err)
				}
				continue
			}
			if _, ok := errors.AsType[*Error](err); !ok {
				t.Fatalf("error %v is not of this package", err)
			}
		}
	})
}

// BenchmarkUnpack unpacks an archive of the shape of a large chart: go test -bench Unpack -benchmem ./internal/source.
func BenchmarkUnpack(b *testing.B) {
	for _, files := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("Files%d", files), func(b *testing.B) {
			data := packFiles(b, chartFiles(files)...)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Unpack(b.Context(), urlRef(Chart, exampleURL), data, Limits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// chartFiles are a chart whose files have 8 KiB each, half of it random.
func chartFiles(n int) []string {
	noise := rand.NewChaCha8([32]byte{})
	pairs := []string{"demo/Chart.yaml", "name: demo"}
	for i := range n {
		content, _ := io.ReadAll(io.LimitReader(noise, 4<<10))
		pairs = append(pairs, fmt.Sprintf("demo/templates/%d.yaml", i), string(content)+strings.Repeat(" ", 4<<10))
	}
	return pairs
}
