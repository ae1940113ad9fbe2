package source

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
)

// unpack reads all files of a tar archive, gzipped or not, or of a zip archive, sorted by path. Nothing is trusted: see
// Limits, cleanName and entry for what is refused.
func unpack(ctx context.Context, data []byte, limits Limits) ([]File, error) {
	u := &unpacker{budget: budget{limits: limits}, files: map[string][]byte{}, folder: map[string]bool{}}
	read := u.tar
	if isZip(data) {
		read = u.zip
	}
	if err := read(ctx, data); err != nil {
		return nil, err
	}
	files := make([]File, 0, len(u.files))
	for _, name := range slices.Sorted(maps.Keys(u.files)) {
		files = append(files, File{Path: name, Data: u.files[name]})
	}
	if len(files) == 0 {
		return nil, refuse(ErrInvalid, "", "archive holds no files")
	}
	return files, nil
}

// tar reads a tar archive.
func (u *unpacker) tar(ctx context.Context, data []byte) error {
	stream, err := inflate(data)
	if err != nil {
		return err
	}
	limit := u.budget.limits.Bytes
	u.stream = &bounded{r: stream, left: limit, limit: limit}
	return u.all(ctx)
}

// inflate returns the tar stream within an archive.
func inflate(data []byte) (io.Reader, error) {
	if !isGzip(data) {
		return bytes.NewReader(data), nil
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, malformed(err)
	}
	return z, nil
}

// unpacker reads one archive.
type unpacker struct {
	stream *bounded
	budget budget
	files  map[string][]byte
	folder map[string]bool
}

// all reads entries until the archive's end. The loop ends because the stream and the entries are bounded.
func (u *unpacker) all(ctx context.Context) error {
	t := tar.NewReader(u.stream)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return u.end()
		}
		if err != nil {
			return malformed(err)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := u.budget.entry(); err != nil {
			return err
		}
		if err := u.entry(h, t); err != nil {
			return err
		}
	}
}

// entry takes a file or folder and refuses everything else.
func (u *unpacker) entry(h *tar.Header, content io.Reader) error {
	switch h.Typeflag {
	case tar.TypeXGlobalHeader:
		return nil // comments, such as the commit of a `git archive`
	case tar.TypeReg, tar.TypeDir:
	case tar.TypeSymlink, tar.TypeLink:
		return refuse(ErrUnsafe, h.Name, "is a link: refused, pack the file itself")
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
		return refuse(ErrUnsafe, h.Name, "is a device or pipe: refused")
	default:
		return refuse(ErrUnsupported, h.Name, "is of the unknown type %q: refused", h.Typeflag)
	}
	name, err := u.budget.limits.cleanName(h.Name)
	if err != nil {
		return err
	}
	if h.Typeflag == tar.TypeDir {
		return u.addFolder(name)
	}
	return u.addFile(name, packed{h.Name, h.Size, content})
}

// packed is a file in an archive: its name and size as somebody else wrote them.
type packed struct {
	raw     string
	size    int64
	content io.Reader
}

// addFolder notes a folder and all folders above it. Folders may come twice, they carry nothing.
func (u *unpacker) addFolder(name string) error {
	if _, ok := u.files[name]; ok {
		return refuse(ErrUnsafe, name, "is both a file and a folder: refused")
	}
	for name != "." && !u.folder[name] {
		if _, ok := u.files[name]; ok {
			return refuse(ErrUnsafe, name, "is both a file and a folder: refused")
		}
		u.folder[name] = true
		name = parent(name)
	}
	return nil
}

// addFile keeps a file's content.
func (u *unpacker) addFile(name string, p packed) error {
	if _, ok := u.files[name]; ok {
		return refuse(ErrUnsafe, p.raw, "is in the archive twice: refused")
	}
	if name == "." || u.folder[name] {
		return refuse(ErrUnsafe, p.raw, "is both a file and a folder: refused")
	}
	if err := u.addFolder(parent(name)); err != nil {
		return err
	}
	if err := u.budget.content(p.raw, p.size); err != nil {
		return err
	}
	data := make([]byte, p.size)
	if _, err := io.ReadFull(p.content, data); err != nil {
		return &Error{Entry: p.raw, Problem: "cannot be read", Reason: ErrInvalid, Err: malformed(err)}
	}
	u.files[name] = data
	return nil
}

// end checks what comes after the last entry: the end marker must have been there, or the archive was cut off, and
// nothing but padding may follow.
func (u *unpacker) end() error {
	if u.stream.ended {
		return refuse(ErrInvalid, "", "archive is cut off: its end marker is missing")
	}
	block := make([]byte, 32<<10)
	for {
		n, err := u.stream.Read(block)
		if len(bytes.Trim(block[:n], "\x00")) > 0 {
			return refuse(ErrInvalid, "", "archive has other data after its end: refused")
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return malformed(err)
		}
	}
}

// malformed explains an error of the gzip or tar reader; one of ours stays what it is.
func malformed(err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return &Error{Problem: "archive is cut off", Reason: ErrInvalid, Err: io.ErrUnexpectedEOF}
	}
	return &Error{Problem: "archive is malformed", Reason: ErrInvalid, Err: err}
}

// bounded is a reader that fails beyond its limit, and remembers whether its end was seen.
type bounded struct {
	r           io.Reader
	left, limit int64
	ended       bool
}

// Read never returns bytes together with io.EOF, so that ended means that somebody asked for more than there is.
func (b *bounded) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.r.Read(p)
	if int64(n) > b.left {
		return 0, tooManyBytes(b.limit)
	}
	b.left -= int64(n)
	if n > 0 && errors.Is(err, io.EOF) {
		return n, nil
	}
	b.ended = b.ended || errors.Is(err, io.EOF)
	return n, err
}

// parent is the folder that holds an entry.
func parent(name string) string {
	i := strings.LastIndexByte(name, '/')
	if i < 0 {
		return "."
	}
	return name[:i]
}
