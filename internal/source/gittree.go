package source

import (
	"bytes"
	"cmp"
	"context"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"helm.sh/helm/v4/pkg/ignore"
)

// gitWalker collects the files of a folder of a commit, as walker does on disk. It is not safe for concurrent use.
type gitWalker struct {
	objects *gitObjects
	root    plumbing.Hash
	budget  budget
	files   []File
	// keep decides by path and kind what is left out.
	keep func(name string, isFolder bool) bool
	// looked counts what was looked up, of which links can make much.
	looked int
}

var _ folder = (*gitWalker)(nil)

// checkout takes what a reference needs out of a commit, as readDirectory does from a directory: the same files in the
// same places, so that both have the same digest.
func checkout(ctx context.Context, w *gitWalker, ref Ref) (*Tree, error) {
	start, err := w.start(ref.Git.Path)
	if err != nil {
		return nil, err
	}
	t := &Tree{Root: "."}
	if ref.Kind == Kustomize {
		t.Root, err = w.kustomization(ctx, start)
	} else {
		err = w.plain(ctx, start, ref.Kind)
	}
	if err != nil {
		return nil, err
	}
	slices.SortFunc(w.files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	t.Files = w.files
	t.Digest = TreeDigest(t.Files)
	return t, nil
}

// start is the folder that a reference names.
func (w *gitWalker) start(folder string) (string, error) {
	if strings.Trim(folder, "/") == "" {
		return ".", nil
	}
	start, err := w.budget.limits.cleanName(folder)
	if err != nil {
		return "", err
	}
	switch kind, err := w.look(start); {
	case err != nil:
		return "", err
	case kind == missing:
		return "", refuse(ErrNotFound, start, "is not in the repository")
	}
	return start, nil
}

// plain takes a chart, or a folder or file of manifests. Paths are relative to it.
func (w *gitWalker) plain(ctx context.Context, start string, kind Kind) error {
	w.keep = func(name string, isFolder bool) bool { return isFolder || isManifest(name) }
	if kind == Chart {
		if err := w.helmIgnore(start); err != nil {
			return err
		}
	}
	e, err := w.find(start)
	if err != nil {
		return err
	}
	prefix := "."
	if e.mode != modeFolder {
		prefix = path.Base(start)
	}
	if err := w.take(ctx, start, prefix, e); err != nil {
		return err
	}
	return complete(kind, ".", w.files)
}

// kustomization takes a kustomization and all that it refers to. Paths are relative to what has all of it.
func (w *gitWalker) kustomization(ctx context.Context, start string) (string, error) {
	w.keep = func(string, bool) bool { return true }
	found, err := closure(ctx, w, start, w.budget.limits)
	if err != nil {
		return "", leaving(err)
	}
	top := start
	for _, f := range found.folders {
		top = common(top, f)
	}
	for _, f := range found.files {
		top = common(top, parent(f))
	}
	for i, name := range slices.Concat(found.folders, found.files) {
		if slices.ContainsFunc(found.folders[:min(i, len(found.folders))], func(f string) bool { return under(f, name) }) {
			continue // taken with the folder that it is in; sorted order has that first
		}
		e, err := w.find(name)
		if err != nil {
			return "", err
		}
		if err := w.take(ctx, name, relative(top, name), e); err != nil {
			return "", err
		}
	}
	return relative(top, start), nil
}

// common is the closest folder that holds both.
func common(a, b string) string {
	for a != "." && a != b && !under(a, b) {
		a = parent(a)
	}
	return a
}

// relative is a path from a folder that holds it.
func relative(top, name string) string {
	switch {
	case name == top:
		return "."
	case top == ".":
		return name
	}
	return strings.TrimPrefix(name, top+"/")
}

// take collects an entry at a place in the repository, under a name in the tree.
func (w *gitWalker) take(ctx context.Context, place, name string, e gitEntry) error {
	if err := done(ctx); err != nil {
		return err
	}
	if err := w.budget.entry(); err != nil {
		return err
	}
	switch e.mode {
	case modeSubmodule:
		return refuse(ErrUnsupported, place, "is a submodule: copy (vendor) it into the repository, submodules are refused")
	case modeLink:
		target, err := w.find(place)
		if err != nil {
			return err
		}
		return w.take(ctx, place, name, target)
	case modeFolder:
		return w.takeFolder(ctx, place, name, e)
	}
	return w.takeFile(name, e)
}

// takeFolder collects what is in a folder. A link that leads in a circle ends at the limit of depth.
func (w *gitWalker) takeFolder(ctx context.Context, place, name string, e gitEntry) error {
	if name != "." && strings.Count(name, "/") >= w.budget.limits.Depth {
		return refuse(ErrTooLarge, place, "is more than %d folders deep", w.budget.limits.Depth)
	}
	entries, err := w.objects.entries(e.hash)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, child := range entries {
		at, as := path.Join(place, child.name), path.Join(name, child.name)
		if child.name == "." || child.name == ".." || seen[child.name] {
			return refuse(ErrUnsafe, place, "has the entry %s, or has it twice: refused", quote(child.name))
		}
		seen[child.name] = true
		if child.name == ".git" || child.mode != modeLink && !w.keep(as, child.mode == modeFolder) {
			continue
		}
		if child.mode == modeLink {
			target, err := w.find(at)
			if err != nil {
				return err
			}
			if !w.keep(as, target.mode == modeFolder) {
				continue
			}
		}
		if err := w.take(ctx, at, as, child); err != nil {
			return err
		}
	}
	return nil
}

// takeFile keeps a file's content.
func (w *gitWalker) takeFile(name string, e gitEntry) error {
	if _, err := w.budget.limits.cleanName(name); err != nil {
		return err
	}
	size, err := w.objects.storage.EncodedObjectSize(e.hash)
	if err != nil {
		return refuse(ErrInvalid, name, "was left out by the server")
	}
	if err := w.budget.content(name, size); err != nil {
		return err
	}
	data, err := w.objects.get(plumbing.BlobObject, e.hash)
	if err != nil {
		return err
	}
	w.files = append(w.files, File{Path: name, Data: data})
	return nil
}

// maxLookups bounds how many entries are looked up for one, through links.
const maxLookups = 100

// find is the entry at a path, links followed. One that leads out of the repository, or nowhere, is an error.
func (w *gitWalker) find(name string) (gitEntry, error) {
	e, ok, err := w.follow(name)
	if err == nil && !ok {
		err = refuse(ErrNotFound, name, "does not exist, or is a link to what does not exist")
	}
	return e, err
}

// follow walks along a path. Each link puts its target in place of what was walked.
func (w *gitWalker) follow(name string) (gitEntry, bool, error) {
	todo := strings.Split(path.Clean(name), "/")
	at := "."
	for range maxLookups {
		for len(todo) > 0 && todo[0] == "." {
			todo = todo[1:]
		}
		e, ok, err := w.entryAt(at)
		if err != nil || !ok || len(todo) == 0 {
			return e, ok, err
		}
		at, todo = path.Join(at, todo[0]), todo[1:]
		if e, ok, err = w.entryAt(at); err != nil || !ok {
			return e, ok, err
		}
		if e.mode != modeLink {
			continue
		}
		target, err := w.target(name, at, e)
		if err != nil {
			return e, false, err
		}
		todo = append(strings.Split(target, "/"), todo...)
		at = "."
	}
	return gitEntry{}, false, refuse(ErrUnsafe, name, "is a link that leads in a circle: refused")
}

// target of a link, from the top of the repository.
func (w *gitWalker) target(name, at string, e gitEntry) (string, error) {
	data, err := w.objects.get(plumbing.BlobObject, e.hash)
	if err != nil {
		return "", err
	}
	link := string(data)
	if path.IsAbs(link) {
		return "", refuse(ErrUnsafe, name, "is a link to the absolute path %s: refused, make it relative", quote(link))
	}
	target := path.Join(parent(at), link)
	if link == "" || target == ".." || strings.HasPrefix(target, "../") {
		return "", refuse(ErrUnsafe, name, "is a link to %s, which leaves the repository: refused", quote(link))
	}
	return target, nil
}

// entryAt is the entry at a path without links.
func (w *gitWalker) entryAt(name string) (gitEntry, bool, error) {
	e := gitEntry{mode: modeFolder, hash: w.root}
	if name == "." {
		return e, true, nil
	}
	for _, part := range strings.Split(name, "/") {
		if w.looked++; w.looked > w.budget.limits.Files*maxLookups {
			return e, false, refuse(ErrTooLarge, name, "takes too many links to reach")
		}
		if e.mode != modeFolder {
			return e, false, nil
		}
		entries, err := w.objects.entries(e.hash)
		if err != nil {
			return e, false, err
		}
		i := slices.IndexFunc(entries, func(c gitEntry) bool { return c.name == part })
		if i < 0 {
			return e, false, nil
		}
		e = entries[i]
	}
	return e, true, nil
}

// look implements folder.
func (w *gitWalker) look(name string) (entryKind, error) {
	e, ok, err := w.follow(name)
	switch {
	case err != nil || !ok:
		return missing, err
	case e.mode == modeFolder:
		return aFolder, nil
	case e.mode == modeSubmodule:
		return missing, refuse(ErrUnsupported, name, "is a submodule: copy (vendor) it into the repository, submodules are refused")
	}
	return aFile, nil
}

// read implements folder.
func (w *gitWalker) read(name string, limit int64) ([]byte, error) {
	e, err := w.find(name)
	if err != nil {
		return nil, err
	}
	data, err := w.objects.get(plumbing.BlobObject, e.hash)
	if err == nil && int64(len(data)) > limit {
		return nil, refuse(ErrTooLarge, name, "is larger than the limit of %d bytes", limit)
	}
	return data, err
}

// helmIgnore leaves out what Helm does.
func (w *gitWalker) helmIgnore(start string) error {
	rules := ignore.Empty()
	file := path.Join(start, ignore.HelmIgnore)
	if kind, err := w.look(file); err != nil {
		return err
	} else if kind == aFile {
		data, err := w.read(file, maxKustomization)
		if err != nil {
			return err
		}
		if rules, err = ignore.Parse(bytes.NewReader(data)); err != nil {
			return &Error{Entry: ignore.HelmIgnore, Problem: "is malformed", Reason: ErrInvalid, Err: err}
		}
	}
	rules.AddDefaults()
	w.keep = func(name string, isFolder bool) bool { return !rules.Ignore(name, entryInfo{name, isFolder}) }
	return nil
}

// entryInfo is what helm's rules ask of a file.
type entryInfo struct {
	name     string
	isFolder bool
}

func (i entryInfo) Name() string       { return path.Base(i.name) }
func (i entryInfo) Size() int64        { return 0 }
func (i entryInfo) ModTime() time.Time { return time.Time{} }
func (i entryInfo) IsDir() bool        { return i.isFolder }
func (i entryInfo) Sys() any           { return nil }
func (i entryInfo) Mode() fs.FileMode {
	if i.isFolder {
		return fs.ModeDir
	}
	return 0
}
