package artifact

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// pack makes a tar.gz of files, the same for the same files. Their paths are below prefix, if there is one.
func (f Files) pack(prefix string) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(z)
	for _, file := range f {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: prefix + file.Path, Mode: 0o644, Size: int64(len(file.Data)), Format: tar.FormatPAX}
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("packing %s: %w", file.Path, err)
		}
		if _, err := w.Write(file.Data); err != nil {
			return nil, fmt.Errorf("packing %s: %w", file.Path, err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		return nil, fmt.Errorf("packing: %w", err)
	}
	if b.Len() > maxPacked {
		return nil, fmt.Errorf("%w: packed it has more than %d MiB", ErrTooLarge, maxPacked>>20)
	}
	return b.Bytes(), nil
}

// unpack reads what pack made, or what somebody else says that it is.
func unpack(data []byte) (Files, error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("unpacking the catalogue: %w", err)
	}
	left := int64(maxBytes)
	t := tar.NewReader(io.LimitReader(z, maxBytes+maxFiles*1024)) // headers and padding take at most two blocks each
	seen := map[string]bool{}
	var out Files
	for { // ends with the stream, which is bounded
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			out.sort()
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("unpacking the catalogue: %w", err)
		}
		if err := checkEntry(h, seen, left); err != nil {
			return nil, err
		}
		if h.Typeflag == tar.TypeDir {
			continue
		}
		content, err := io.ReadAll(t)
		if err != nil {
			return nil, fmt.Errorf("unpacking the catalogue: %w", err)
		}
		left -= int64(len(content))
		out = append(out, File{h.Name, content})
	}
}

// checkEntry refuses entries that are no plain files within the folder, each once, and no larger than what is left.
func checkEntry(h *tar.Header, seen map[string]bool, left int64) error {
	name := strings.TrimSuffix(h.Name, "/")
	switch {
	case h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeDir:
		return fmt.Errorf("%w: entry %q is a link or no regular file", ErrUnsafe, h.Name)
	case !fs.ValidPath(name) || name == "." || strings.ContainsAny(name, "\\\x00"):
		return fmt.Errorf("%w: entry %q leads out of the folder", ErrUnsafe, h.Name)
	case seen[name]:
		return fmt.Errorf("%w: entry %q is there twice", ErrUnsafe, h.Name)
	case h.Size > left || len(seen) == maxFiles:
		return fmt.Errorf("%w: at most %d files and %d MiB", ErrTooLarge, maxFiles, maxBytes>>20)
	}
	seen[name] = true
	return nil
}
