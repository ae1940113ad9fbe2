package source

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// local fetches a path of the caller's own: a directory, a file or standard input.
func (m *Mux) local(ctx context.Context, ref Ref) (*Tree, error) {
	if ref.Path == Stdin {
		data, err := readAll(ctx, ref.Stdin, m.limits.Download)
		if err != nil {
			return nil, at("reading", ref.String(), err)
		}
		return Unpack(ctx, ref, data, m.limits)
	}
	info, err := os.Stat(ref.Path)
	if err != nil {
		return nil, at("reading", ref.String(), unreadable("", err))
	}
	if info.IsDir() {
		t, err := readDirectory(ctx, ref, m.limits)
		return t, at("reading directory", ref.String(), err)
	}
	data, err := m.file(ctx, ref.Path)
	if err != nil {
		return nil, at("reading", ref.String(), err)
	}
	return Unpack(ctx, ref, data, m.limits)
}

// file reads a single file.
func (m *Mux) file(ctx context.Context, name string) ([]byte, error) {
	f, err := os.OpenFile(filepath.Clean(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, unreadable("", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, unreadable("", err)
	}
	if !info.Mode().IsRegular() {
		return nil, refuse(ErrUnsupported, "", "this is %s, not a file or directory", describe(info.Mode()))
	}
	return readAll(ctx, f, m.limits.Download)
}

// readAll reads at most limit bytes, and looks at the context between reads.
func readAll(ctx context.Context, r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(&interruptible{ctx, r}, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, refuse(ErrTooLarge, "", "is larger than the limit of %d bytes", limit)
	}
	return data, nil
}

// interruptible ends between two reads when its context does. It lives for one call.
type interruptible struct {
	ctx context.Context
	r   io.Reader
}

func (i *interruptible) Read(p []byte) (int, error) {
	if i.ctx.Err() != nil {
		return 0, context.Cause(i.ctx)
	}
	return i.r.Read(p)
}

// unreadable explains an error of the file system without repeating the path, which the message has already.
func unreadable(entry string, err error) error {
	cause := err
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		cause = p.Err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return refuse(ErrNotFound, entry, "does not exist")
	case errors.Is(err, fs.ErrPermission):
		return refuse(ErrDenied, entry, "cannot be read: permission denied")
	}
	return &Error{Entry: entry, Problem: "cannot be read", Err: cause}
}

// describe names what is not a regular file.
func describe(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "no regular file"
}
