package source

import (
	"archive/zip"
	"bytes"
	"fmt"
	"hash/crc32"
	"io/fs"
	"strings"
	"testing"
)

// zipped is one entry of a zip archive that a test packs.
type zipped struct {
	name, data string
	mode       fs.FileMode
	method     uint16
	// change changes the header after it was made.
	change func(*zip.FileHeader)
}

// packZip makes a zip archive.
func packZip(t testing.TB, entries ...zipped) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: e.method}
		h.SetMode(e.mode | 0o644)
		h.CRC32, h.UncompressedSize64, h.CompressedSize64 = crc32.ChecksumIEEE([]byte(e.data)), uint64(len(e.data)), uint64(len(e.data))
		create := w.CreateHeader
		if e.change != nil {
			e.change(h)
			create = w.CreateRaw
		}
		f, err := create(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(e.data)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestUnpackZip(t *testing.T) {
	t.Parallel()
	for name, method := range map[string]uint16{"Stored": zip.Store, "Deflated": zip.Deflate} {
		data := packZip(t, zipped{name: "demo/", mode: fs.ModeDir}, zipped{name: "demo/templates/a.yaml", data: "a: 1\n", method: method},
			zipped{name: "demo/Chart.yaml", data: "name: demo\n", method: method})
		tree, err := Unpack(t.Context(), urlRef(Chart, exampleURL), data, small)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		wantPaths(t, tree, "demo/Chart.yaml", "demo/templates/a.yaml")
		if tree.Root != "demo" || tree.Trusted || tree.Digest != BytesDigest(data) || string(tree.Files[1].Data) != "a: 1\n" {
			t.Errorf("%s: tree is %+v", name, tree)
		}
	}
}

func TestUnpackZipRefuses(t *testing.T) {
	t.Parallel()
	ok := zipped{name: "a.yaml", data: "a: 1\n"}
	var many []zipped
	for i := range 101 {
		many = append(many, zipped{name: fmt.Sprintf("%d.yaml", i)})
	}
	var big []zipped
	for i := range 20 {
		big = append(big, zipped{name: fmt.Sprintf("%d.yaml", i), data: strings.Repeat(" ", 60<<10), method: zip.Deflate})
	}
	declare := func(size uint64) func(*zip.FileHeader) {
		return func(h *zip.FileHeader) { h.UncompressedSize64 = size }
	}
	good := packZip(t, ok)
	tests := map[string]struct {
		data   []byte
		reason error
		says   string
	}{
		"ParentPath":   {packZip(t, ok, zipped{name: "../../etc/passwd"}), ErrUnsafe, `"../../etc/passwd" leaves the archive`},
		"AbsolutePath": {packZip(t, zipped{name: "/etc/passwd"}), ErrUnsafe, "is absolute"},
		"Backslash":    {packZip(t, zipped{name: `..\evil.yaml`}), ErrUnsafe, "backslash"},
		"Drive":        {packZip(t, zipped{name: "c:evil.yaml"}), ErrUnsafe, "drive"},
		"NotUTF8":      {packZip(t, zipped{name: "\xff.yaml"}), ErrUnsafe, "not UTF-8"},
		"Symlink":      {packZip(t, zipped{name: "l.yaml", data: "/etc/passwd", mode: fs.ModeSymlink}), ErrUnsafe, "is a link"},
		"Device":       {packZip(t, zipped{name: "null", mode: fs.ModeDevice}), ErrUnsafe, "device"},
		"Pipe":         {packZip(t, zipped{name: "p", mode: fs.ModeNamedPipe}), ErrUnsafe, "pipe"},
		"Twice":        {packZip(t, ok, ok), ErrUnsafe, "twice"},
		"FileIsFolder": {packZip(t, ok, zipped{name: "a.yaml/b.yaml"}), ErrUnsafe, "both a file and a folder"},
		"LongName":     {packZip(t, zipped{name: strings.Repeat("n", 201)}), ErrTooLarge, "the limit is 200"},
		"TooMany":      {packZip(t, many...), ErrTooLarge, "more than 100 entries"},
		"LargeFile":    {packZip(t, zipped{name: "a.yaml", data: strings.Repeat(" ", 65<<10), method: zip.Deflate}), ErrTooLarge, "limit of 65536 bytes"},
		"Bomb":         {packZip(t, big...), ErrTooLarge, "unpacks to more than the limit of 1048576 bytes"},
		"Encrypted":    {packZip(t, zipped{name: "a.yaml", data: "x", change: func(h *zip.FileHeader) { h.Flags |= 1 }}), ErrUnsupported, "is encrypted"},
		"Method":       {packZip(t, zipped{name: "a.yaml", data: "x", change: func(h *zip.FileHeader) { h.Method = 99 }}), ErrUnsupported, "packed by method 99"},
		"SaysLess":     {packZip(t, zipped{name: "a.yaml", data: "a: 12\n", change: declare(3)}), ErrInvalid, "a.yaml"},
		"SaysMore":     {packZip(t, zipped{name: "a.yaml", data: "a: 12\n", change: declare(300)}), ErrInvalid, "a.yaml"},
		"SaysHuge":     {packZip(t, zipped{name: "a.yaml", data: "a", change: declare(1 << 40)}), ErrTooLarge, "limit of 65536 bytes"},
		"Checksum":     {packZip(t, zipped{name: "a.yaml", data: "a: 12\n", change: func(h *zip.FileHeader) { h.CRC32++ }}), ErrInvalid, "checksum"},
		"Cut":          {good[:len(good)-10], ErrInvalid, "malformed"},
		"NoEntries":    {append([]byte("PK\x03\x04"), packZip(t)...), ErrInvalid, "no files"},
		"OnlyFolders":  {packZip(t, zipped{name: "d/", mode: fs.ModeDir}), ErrInvalid, "no files"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Unpack(t.Context(), urlRef(Manifests, exampleURL), tc.data, small)
			wantError(t, err, tc.reason, "reading archive https://charts.example.com/demo.tgz: ", tc.says)
		})
	}
}

func FuzzZip(f *testing.F) {
	f.Add(packZip(f, zipped{name: "demo/Chart.yaml", data: "name: demo\n"}))
	f.Add(packZip(f, zipped{name: "demo/Chart.yaml", data: strings.Repeat("name: demo\n", 100), method: zip.Deflate}, zipped{name: "demo/x/", mode: fs.ModeDir}))
	f.Add(packZip(f, zipped{name: "../x.yaml", data: "a: 1\n"}))
	f.Add(packZip(f, zipped{name: "l.yaml", data: "/etc/passwd", mode: fs.ModeSymlink}))
	f.Add(packZip(f, zipped{name: "a.yaml", data: "a: 1\n", change: func(h *zip.FileHeader) { h.UncompressedSize64 = 1 << 60 }}))
	f.Add(packZip(f)[:10])
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, kind := range []Kind{Chart, Kustomize, Manifests} {
			tree, err := Unpack(t.Context(), urlRef(kind, exampleURL), append([]byte("PK\x03\x04"), data[min(4, len(data)):]...), small)
			if err == nil {
				if err := small.Check(tree); err != nil {
					t.Errorf("tree breaks the contract: %v", err)
				}
			}
		}
	})
}
