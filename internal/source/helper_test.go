package source

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// entry is one entry of an archive that a test packs; the zero type is a file.
type entry struct {
	name, data string
	flag       byte
	link       string
}

// pack makes a tar archive.
func pack(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Typeflag: e.flag, Linkname: e.link, Mode: 0o644, Size: int64(len(e.data)), Format: tar.FormatGNU}
		if e.flag == 0 {
			h.Typeflag = tar.TypeReg
		}
		if e.flag == tar.TypeXGlobalHeader {
			h = &tar.Header{Typeflag: e.flag, PAXRecords: map[string]string{"comment": e.data}}
			e.data = ""
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(e.data)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// rawHeader is a ustar header as no honest program writes it: fields are taken as they are.
func rawHeader(name string, flag byte, size [12]byte) []byte {
	h := make([]byte, 512)
	copy(h, name)
	copy(h[100:], "0000644\x00")
	copy(h[124:], size[:])
	copy(h[136:], "00000000000\x00")
	copy(h[148:], "        ")
	h[156] = flag
	copy(h[257:], "ustar\x0000")
	sum := 0
	for _, c := range h {
		sum += int(c)
	}
	copy(h[148:], fmt.Sprintf("%06o\x00 ", sum))
	return h
}

// octal is a size as tar writes it.
func octal(n int) (size [12]byte) {
	copy(size[:], fmt.Sprintf("%011o\x00", n))
	return size
}

// block pads data to the blocks of tar.
func block(data string) []byte {
	return append([]byte(data), make([]byte, (512-len(data)%512)%512)...)
}

func gz(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// packFiles makes a tar.gz of files, in the order of "path", "content" pairs.
func packFiles(t testing.TB, pairs ...string) []byte {
	t.Helper()
	var entries []entry
	for i := 0; i < len(pairs); i += 2 {
		entries = append(entries, entry{name: pairs[i], data: pairs[i+1]})
	}
	return gz(t, pack(t, entries...))
}

// write makes a directory of "path", "content" pairs and returns it.
func write(t testing.TB, pairs ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(pairs); i += 2 {
		name := filepath.Join(dir, pairs[i])
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(pairs[i+1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func symlink(t testing.TB, dir, target, name string) {
	t.Helper()
	if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

func pathRef(kind Kind, path string) Ref {
	return Ref{SourceRef: v1beta2.SourceRef{Path: path}, Kind: kind}
}

func urlRef(kind Kind, url string) Ref {
	return Ref{SourceRef: v1beta2.SourceRef{URL: url}, Kind: kind}
}

// paths are the paths of a tree.
func paths(tree *Tree) []string {
	var names []string
	for _, f := range tree.Files {
		names = append(names, f.Path)
	}
	return names
}

// wantPaths compares the files of a tree.
func wantPaths(t testing.TB, tree *Tree, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, paths(tree)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// wantError checks the reason of an error and that its message says what is asked for.
func wantError(t testing.TB, err, reason error, says ...string) {
	t.Helper()
	if !errors.Is(err, reason) {
		t.Fatalf("error is %v, want %v", err, reason)
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("message %q does not say %q", err, s)
		}
	}
}
