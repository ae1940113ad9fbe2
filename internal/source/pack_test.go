package source

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// packOf is the pack of a repository, as git makes it.
func packOf(t testing.TB, pairs ...string) []byte {
	t.Helper()
	repo := newRepository(t, pairs...)
	name := filepath.Join(t.TempDir(), "pack")
	hash := git(t, repo.work, "-c", "pack.threads=1", "pack-objects", "--all", "--revs", name)
	data, err := os.ReadFile(name + "-" + hash[len(hash)-40:] + ".pack")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// packHeader begins a pack of so many objects.
func packHeader(objects uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32([]byte("PACK"), 2), objects)
}

func TestReadPack(t *testing.T) {
	t.Parallel()
	lines := strings.Repeat("a line that is long enough for a delta\n", 100)
	data := packOf(t, "a.yaml", lines, "b.yaml", lines+"b: 1\n")
	objects, err := readPack(data, small)
	if err != nil || len(objects.storage.Blobs) != 2 || len(objects.storage.Commits) != 1 {
		t.Fatalf("objects are %+v, %v", objects, err)
	}
	var alike []string // deltas of each other: small here, and not there
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		alike = append(alike, name, lines+name)
	}
	tests := map[string]struct {
		data   []byte
		limits Limits
		err    error
		says   string
	}{
		"Nothing":        {nil, small, ErrInvalid, "pack is malformed"},
		"NoPack":         {[]byte("<html>  many words, no pack"), small, ErrInvalid, "pack is malformed"},
		"Cut":            {data[:len(data)/2], small, ErrInvalid, "pack is malformed"},
		"ManyObjects":    {packHeader(1 << 31), small, ErrTooLarge, "more than 2000 objects"},
		"HugeObject":     {append(packHeader(1), 0xbf, 0xff, 0xff, 0xff, 0x7f, 'x'), small, ErrInvalid, "pack is malformed"},
		"MoreThanAll":    {data, Limits{Bytes: 2000, Files: 100}.withDefaults(), ErrTooLarge, "unpacks to more than"},
		"DeltaOfTooMuch": {packOf(t, alike...), Limits{Bytes: 3950, Files: 100}.withDefaults(), ErrTooLarge, "unpacks to more than"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := readPack(tc.data, tc.limits)
			wantError(t, err, tc.err, tc.says)
		})
	}
}

func TestVarint(t *testing.T) {
	t.Parallel()
	if n, rest := varint([]byte{0x80 | 1, 1, 7}); n != 129 || len(rest) != 1 {
		t.Errorf("number is %d, %d bytes left", n, len(rest))
	}
	for _, data := range [][]byte{nil, {0x80}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}} {
		if n, _ := varint(data); n >= 0 {
			t.Errorf("%x is %d", data, n)
		}
	}
}

// FuzzPack reads packs that no Git has written.
func FuzzPack(f *testing.F) {
	lines := strings.Repeat("a line that is long enough for a delta\n", 20)
	f.Add(packOf(f, "a.yaml", lines, "b.yaml", lines+"b: 1\n", "d/kustomization.yaml", "resources: [../a.yaml]\n"))
	f.Add(packHeader(0))
	f.Add(append(packHeader(1), 0x30, 'x'))
	f.Add(append(packHeader(1<<31), 0xff, 0xff, 0xff, 0xff, 0xff))
	f.Fuzz(func(t *testing.T, data []byte) {
		objects, err := readPack(data, small)
		if err != nil {
			return
		}
		for h := range objects.storage.Trees {
			for _, kind := range []Kind{Chart, Kustomize, Manifests} {
				w := &gitWalker{objects: objects, root: h, budget: budget{limits: small}}
				tree, err := checkout(t.Context(), w, Ref{Kind: kind, SourceRef: v1beta2.SourceRef{Git: &v1beta2.GitSource{}}})
				if err == nil && small.Check(tree) != nil {
					t.Errorf("tree breaks the contract: %v", small.Check(tree))
				}
			}
		}
	})
}
