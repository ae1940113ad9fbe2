package source

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"runtime"
	"testing"
	"time"
)

// Bombs are refused at the limits that hold in production, within stated bounds of time and memory. It runs alone, to count what
// it allocates.
//
//nolint:paralleltest // see above
func TestBombsAreBounded(t *testing.T) {
	const (
		mostTime   = 20 * time.Second // on a machine that is busy with other tests, and with the race detector
		mostMemory = 256 << 20        // what is allocated in all; what is in use at one time is less
	)
	for name, tc := range map[string]struct {
		data []byte
		says string
	}{
		"GzipBomb":             {gzipBomb(t), "unpacks to more than the limit of 67108864 bytes"},
		"ZipBomb":              {zipBomb(t), "larger than the limit of 16777216 bytes"},
		"MillionInTar":         {millionInTar(t), "holds more than 10000 entries"},
		"HundredThousandInZip": {manyInZip(t, 100_000), "holds more than 10000 entries"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		begun := time.Now()
		_, err := Unpack(t.Context(), urlRef(Manifests, exampleURL), tc.data, Limits{})
		took := time.Since(begun)
		runtime.ReadMemStats(&after)
		wantError(t, err, ErrTooLarge, tc.says)
		if allocated := after.TotalAlloc - before.TotalAlloc; took > mostTime || allocated > mostMemory {
			t.Errorf("%s: it took %s and %d MiB for %d bytes", name, took, allocated>>20, len(tc.data))
		}
	}
}

// gzipBomb is a tar archive of small files whose padding inflates.
func gzipBomb(t *testing.T) []byte {
	t.Helper()
	return gzipped(t, func(w *tar.Writer) error {
		for i := range 20 {
			if err := w.WriteHeader(&tar.Header{Name: fmt.Sprintf("d/%d.yaml", i), Mode: 0o644, Size: 8 << 20}); err != nil {
				return err
			}
			if _, err := w.Write(make([]byte, 8<<20)); err != nil {
				return err
			}
		}
		return nil
	})
}

func millionInTar(t *testing.T) []byte {
	t.Helper()
	return gzipped(t, func(w *tar.Writer) error {
		for i := range 1_000_000 {
			if err := w.WriteHeader(&tar.Header{Name: fmt.Sprintf("d/%d.yaml", i), Mode: 0o644}); err != nil {
				return err
			}
		}
		return nil
	})
}

func gzipped(t *testing.T, fill func(*tar.Writer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(z)
	for _, step := range []func() error{func() error { return fill(w) }, w.Close, z.Close} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func zipBomb(t *testing.T) []byte {
	t.Helper()
	return inZip(t, func(w *zip.Writer) error {
		f, err := w.Create("d/a.yaml")
		if err != nil {
			return err
		}
		_, err = io.Copy(f, bytes.NewReader(make([]byte, 256<<20)))
		return err
	})
}

func manyInZip(t *testing.T, n int) []byte {
	t.Helper()
	return inZip(t, func(w *zip.Writer) error {
		for i := range n {
			if _, err := w.CreateHeader(&zip.FileHeader{Name: fmt.Sprintf("d/%d.yaml", i)}); err != nil {
				return err
			}
		}
		return nil
	})
}

func inZip(t *testing.T, fill func(*zip.Writer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, step := range []func() error{func() error { return fill(w) }, w.Close} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}
