package source

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"helm.sh/helm/v4/pkg/ignore"
)

// readDirectory reads a directory as the reference's kind needs it. Everything goes through an os.Root: no link, and no
// race with one, leads out of it.
func readDirectory(ctx context.Context, ref Ref, limits Limits) (*Tree, error) {
	dir, err := filepath.Abs(ref.Path)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return nil, unreadable("", err)
	}
	t := &Tree{Root: ".", Trusted: true}
	if ref.Kind == Kustomize {
		t.Root, t.Files, err = readKustomization(ctx, dir, limits)
	} else {
		t.Files, err = readFolder(ctx, dir, ref.Kind, limits)
	}
	if err != nil {
		return nil, err
	}
	slices.SortFunc(t.Files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	t.Digest = TreeDigest(t.Files)
	return t, verify(ref, t.Digest)
}

// readFolder reads a chart or a folder of manifests.
func readFolder(ctx context.Context, dir string, kind Kind, limits Limits) ([]File, error) {
	w, err := openWalker(dir, limits)
	if err != nil {
		return nil, err
	}
	defer w.root.Close()
	if kind == Manifests {
		w.keep = func(name string, info fs.FileInfo) bool { return info.IsDir() || isLink(info) || isManifest(name) }
	} else if err := w.helmIgnore(); err != nil {
		return nil, err
	}
	if err := w.folder(ctx, ".", nil); err != nil {
		return nil, err
	}
	return w.files, complete(kind, ".", w.files)
}

// readKustomization reads a kustomization and all that it refers to. It begins in the named directory and goes up, a
// finite number of times, as long as a reference leads out of where it is.
func readKustomization(ctx context.Context, dir string, limits Limits) (string, []File, error) {
	for top := dir; ; {
		start, err := filepath.Rel(top, dir)
		if err != nil {
			return "", nil, unreadable("", err)
		}
		start = filepath.ToSlash(start)
		files, err := readClosure(ctx, top, start, limits)
		outside, ok := errors.AsType[*outsideError](err)
		if !ok {
			return start, files, err
		}
		above := top
		for range leadingUps(outside.name) {
			above = filepath.Dir(above)
		}
		if above == top {
			return "", nil, refuse(ErrNotFound, outside.name, "is above the top of the file system")
		}
		top = above
	}
}

// leadingUps counts the ".." that a clean path begins with.
func leadingUps(name string) int {
	n := 0
	for _, part := range strings.Split(name, "/") {
		if part != ".." {
			break
		}
		n++
	}
	return n
}

// readClosure reads what the kustomization in start, a folder of top, consists of.
func readClosure(ctx context.Context, top, start string, limits Limits) ([]File, error) {
	w, err := openWalker(top, limits)
	if err != nil {
		return nil, err
	}
	defer w.root.Close()
	found, err := closure(ctx, w, start, limits)
	if err != nil {
		return nil, err
	}
	for i, dir := range found.folders {
		if slices.ContainsFunc(found.folders[:i], func(f string) bool { return under(f, dir) }) {
			continue // read with the folder that it is in; sorted order has that first
		}
		if err := w.folder(ctx, dir, nil); err != nil {
			return nil, err
		}
	}
	outside := slices.DeleteFunc(slices.Clone(found.files), func(file string) bool {
		return slices.ContainsFunc(found.folders, func(f string) bool { return under(f, file) })
	})
	for _, file := range outside {
		if err := w.entry(ctx, file, nil); err != nil {
			return nil, err
		}
	}
	return w.files, nil
}

// walker collects the files of an open directory. It is not safe for concurrent use.
type walker struct {
	root   *os.Root
	budget budget
	files  []File
	// keep decides by path and, for links first by the link and then by what it leads to, what is left out.
	keep func(name string, info fs.FileInfo) bool
}

var _ folder = (*walker)(nil)

func openWalker(dir string, limits Limits) (*walker, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, unreadable("", err)
	}
	all := func(string, fs.FileInfo) bool { return true }
	return &walker{root: root, budget: budget{limits: limits}, keep: all}, nil
}

// helmIgnore leaves out what Helm does: what .helmignore says, and hidden files among the templates.
func (w *walker) helmIgnore() error {
	rules := ignore.Empty()
	if kind, err := w.look(ignore.HelmIgnore); err != nil {
		return err
	} else if kind == aFile {
		data, err := w.read(ignore.HelmIgnore, maxKustomization)
		if err != nil {
			return err
		}
		if rules, err = ignore.Parse(bytes.NewReader(data)); err != nil {
			return &Error{Entry: ignore.HelmIgnore, Problem: "is malformed", Reason: ErrInvalid, Err: err}
		}
	}
	rules.AddDefaults()
	w.keep = func(name string, info fs.FileInfo) bool { return !rules.Ignore(name, info) }
	return nil
}

// folder reads a folder; above are the folders that it is in, by which a link that leads in a circle is seen.
func (w *walker) folder(ctx context.Context, dir string, above []fs.FileInfo) error {
	if len(above) >= w.budget.limits.Depth {
		return refuse(ErrTooLarge, dir, "is more than %d folders deep", w.budget.limits.Depth)
	}
	info, err := w.root.Stat(dir)
	if err != nil {
		return unreadable(dir, err)
	}
	if slices.ContainsFunc(above, func(a fs.FileInfo) bool { return os.SameFile(a, info) }) {
		return refuse(ErrUnsafe, dir, "is a link that leads in a circle: refused")
	}
	names, err := w.names(dir)
	if err != nil {
		return err
	}
	above = append(slices.Clip(above), info)
	for _, name := range names {
		if name == ".git" {
			continue
		}
		if err := w.entry(ctx, path.Join(dir, name), above); err != nil {
			return err
		}
	}
	return nil
}

// names lists a folder, sorted, and reads no more of it than there may be entries.
func (w *walker) names(dir string) ([]string, error) {
	f, err := w.root.Open(dir)
	if err != nil {
		return nil, unreadable(dir, err)
	}
	defer f.Close()
	names := []string{}
	for len(names) <= w.budget.limits.Files+1 {
		some, err := f.Readdirnames(1024)
		names = append(names, some...)
		if len(some) == 0 {
			slices.Sort(names)
			return names, ignoreEnd(err)
		}
	}
	return nil, refuse(ErrTooLarge, dir, "holds more than %d entries", w.budget.limits.Files)
}

// entry takes a file, a folder or what a link leads to.
func (w *walker) entry(ctx context.Context, name string, above []fs.FileInfo) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := w.budget.entry(); err != nil {
		return err
	}
	info, err := w.root.Lstat(name)
	if err != nil {
		return unreadable(name, err)
	}
	if !w.keep(name, info) {
		return nil
	}
	if isLink(info) {
		if info, err = w.root.Stat(name); err != nil {
			return w.badLink(name, err)
		}
		if !w.keep(name, info) {
			return nil
		}
	}
	if info.IsDir() {
		return w.folder(ctx, name, above)
	}
	return w.file(ctx, name, info)
}

// file reads one regular file.
func (w *walker) file(ctx context.Context, name string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return refuse(ErrUnsupported, name, "is %s, not a file: refused", describe(info.Mode()))
	}
	if _, err := w.budget.limits.cleanName(name); err != nil {
		return err
	}
	if err := w.budget.content(name, info.Size()); err != nil {
		return err
	}
	data, err := w.read(name, info.Size())
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	w.files = append(w.files, File{Path: name, Data: data})
	return nil
}

// read opens without blocking, for a file may have become a pipe, and looks again at what was opened.
func (w *walker) read(name string, limit int64) ([]byte, error) {
	f, err := w.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, unreadable(name, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, unreadable(name, err)
	}
	if !info.Mode().IsRegular() {
		return nil, refuse(ErrUnsupported, name, "is %s, not a file: refused", describe(info.Mode()))
	}
	data, err := readAll(context.Background(), f, limit)
	if errors.Is(err, ErrTooLarge) {
		return nil, refuse(ErrTooLarge, name, "is larger than %d bytes, or grew while it was read", limit)
	}
	if err != nil {
		return nil, unreadable(name, err)
	}
	return data, nil
}

// look implements folder.
func (w *walker) look(name string) (entryKind, error) {
	info, err := w.root.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return aFolder, nil
	case err == nil:
		return aFile, nil
	case errors.Is(err, syscall.ENOTDIR):
		return missing, nil
	}
	if link, lerr := w.root.Lstat(name); lerr == nil && isLink(link) {
		return missing, w.badLink(name, err)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return missing, nil
	case errors.Is(err, fs.ErrPermission):
		return missing, unreadable(name, err)
	}
	return missing, refuse(ErrUnsafe, name, "is reached by a link that leaves the directory: refused")
}

// badLink explains why a link was not followed.
func (w *walker) badLink(name string, err error) error {
	target, _ := w.root.Readlink(name)
	switch {
	case filepath.IsAbs(target):
		return refuse(ErrUnsafe, name, "is a link to the absolute path %s: refused, make it relative", quote(target))
	case errors.Is(err, fs.ErrNotExist):
		return refuse(ErrNotFound, name, "is a link to %s, which does not exist", quote(target))
	case errors.Is(err, syscall.ELOOP):
		return refuse(ErrUnsafe, name, "is a link that leads in a circle: refused")
	case errors.Is(err, fs.ErrPermission):
		return unreadable(name, err)
	}
	return refuse(ErrUnsafe, name, "is a link to %s, which leaves the directory: refused", quote(target))
}

func isLink(info fs.FileInfo) bool { return info.Mode()&fs.ModeSymlink != 0 }

// ignoreEnd drops io.EOF, by which Readdirnames says that it is done.
func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
