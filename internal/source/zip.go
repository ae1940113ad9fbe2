package source

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"strings"
)

func isZip(data []byte) bool { return bytes.HasPrefix(data, []byte("PK\x03\x04")) }

// zip reads a zip archive by its directory, which is at its end. Entries are counted before anything is kept of them,
// and each gives no more bytes than it says.
func (u *unpacker) zip(ctx context.Context, data []byte) error {
	most := u.budget.limits.Files
	if bytes.Count(data, []byte("PK\x01\x02")) > most {
		return refuse(ErrTooLarge, "", "holds more than %d entries", most)
	}
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // names are checked below
		return malformed(err)
	}
	for _, f := range z.File {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := u.budget.entry(); err != nil {
			return err
		}
		if err := u.zipEntry(f); err != nil {
			return err
		}
	}
	return nil
}

// encrypted is the flag of an entry that needs a password.
const encrypted = 0x1

// zipEntry takes a file or folder and refuses everything else.
func (u *unpacker) zipEntry(f *zip.File) error {
	mode := f.Mode()
	switch {
	case mode&fs.ModeSymlink != 0:
		return refuse(ErrUnsafe, f.Name, "is a link: refused, pack the file itself")
	case mode&(fs.ModeDevice|fs.ModeNamedPipe|fs.ModeSocket|fs.ModeCharDevice|fs.ModeIrregular) != 0:
		return refuse(ErrUnsafe, f.Name, "is a device or pipe: refused")
	case f.Flags&encrypted != 0:
		return refuse(ErrUnsupported, f.Name, "is encrypted: refused")
	case f.UncompressedSize64 > math.MaxInt64:
		return refuse(ErrInvalid, f.Name, "has a negative size")
	}
	name, err := u.budget.limits.cleanName(f.Name)
	if err != nil {
		return err
	}
	if strings.HasSuffix(f.Name, "/") || mode.IsDir() {
		return u.addFolder(name)
	}
	content, err := f.Open()
	if errors.Is(err, zip.ErrAlgorithm) {
		return refuse(ErrUnsupported, f.Name, "is packed by method %d: use deflate", f.Method)
	}
	if err != nil {
		return malformed(err)
	}
	defer content.Close()
	if err := u.addFile(name, packed{f.Name, int64(f.UncompressedSize64), content}); err != nil {
		return err
	}
	return u.zipEnd(f, content)
}

// zipEnd reads on, to where the checksum is compared, and expects nothing more.
func (u *unpacker) zipEnd(f *zip.File, content io.Reader) error {
	var one [1]byte
	n, err := io.ReadFull(content, one[:])
	if n > 0 {
		return refuse(ErrInvalid, f.Name, "is larger than it says")
	}
	if !errors.Is(err, io.EOF) {
		return &Error{Entry: f.Name, Problem: "cannot be read", Reason: ErrInvalid, Err: err}
	}
	return nil
}
