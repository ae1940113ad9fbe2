package source

import (
	"bytes"
	"context"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// Unpack turns the bytes of an archive or of a single file into the tree that a reference asks for: it compares the
// digest first, then unpacks, finds the folder and keeps what the kind needs. The content decides what it is, not its
// name: a tar archive, gzipped or not, a zip archive or, for Manifests, a YAML or JSON file. The data must not be changed afterwards.
// It is what Fetchers end with; errors are *Error or *DigestError.
func Unpack(ctx context.Context, ref Ref, data []byte, limits Limits) (*Tree, error) {
	t, err := unpackTree(ctx, ref, data, limits.withDefaults())
	if err != nil {
		return nil, at("reading archive", ref.String(), err)
	}
	return t, nil
}

func unpackTree(ctx context.Context, ref Ref, data []byte, limits Limits) (*Tree, error) {
	t := &Tree{Digest: BytesDigest(data), Root: ".", Trusted: ref.IsLocal()}
	if err := verify(ref, t.Digest); err != nil {
		return nil, err
	}
	var err error
	switch {
	case isGzip(data), isTar(data), isZip(data):
		if t.Files, err = unpack(ctx, data, limits); err != nil {
			return nil, err
		}
		if t.Root, err = rootOf(ref, t.Files); err != nil {
			return nil, err
		}
		t.Files, err = narrow(ctx, narrowing{ref.Kind, t.Root, limits}, t.Files)
	default:
		t.Files, err = single(ref, data, limits)
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

func isGzip(data []byte) bool { return bytes.HasPrefix(data, []byte{0x1f, 0x8b}) }

// isTar looks for the magic that every tar format since 1988 has in its first header.
func isTar(data []byte) bool {
	const offset = 257
	return len(data) >= 512 && bytes.HasPrefix(data[offset:], []byte("ustar"))
}

// single is the only file of a source that is no archive.
func single(ref Ref, data []byte, limits Limits) ([]File, error) {
	name := fileName(ref)
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		return nil, refuse(ErrInvalid, "", "source is empty")
	case bytes.HasPrefix(bytes.TrimSpace(data), []byte("<")):
		return nil, refuse(ErrUnsupported, "", "this is a web page, not an archive or YAML: is it the address of the file itself?")
	case !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0:
		return nil, refuse(ErrUnsupported, "", "this is neither a tar archive nor a text file")
	case ref.Kind != Manifests:
		return nil, refuse(ErrUnsupported, "", "this is one file, a source of kind %s is a folder or an archive", ref.Kind)
	case ref.folder() != "":
		return nil, refuse(ErrNotFound, ref.folder(), "cannot be in a single file: leave the path out")
	case int64(len(data)) > limits.FileBytes:
		return nil, refuse(ErrTooLarge, name, "is larger than the limit of %d bytes", limits.FileBytes)
	}
	return []File{{Path: name, Data: data}}, nil
}

// fileName is the name of a single file in its tree: its own, if that is one of manifests.
func fileName(ref Ref) string {
	name := path.Base(strings.ReplaceAll(ref.String(), `\`, "/"))
	if clean, err := (Limits{}).withDefaults().cleanName(name); err == nil && isManifest(clean) {
		return clean
	}
	return "manifests.yaml"
}

// isManifest says whether a file of that name belongs to a folder of manifests.
func isManifest(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// rootOf is the folder of an archive that a reference names: its path or, without one, the only folder at the top, or
// the top itself. A chart's archive must have exactly one folder at its top, as Helm packs them.
func rootOf(ref Ref, files []File) (string, error) {
	tops := topFolders(files)
	if folder := ref.folder(); folder != "" {
		root, err := (Limits{}).withDefaults().cleanName(folder)
		if err != nil {
			return "", err
		}
		if !slices.ContainsFunc(files, func(f File) bool { return under(root, f.Path) }) {
			return "", refuse(ErrNotFound, root, "is not a folder of the archive, which has %s", enumerate(tops))
		}
		return root, nil
	}
	switch {
	case len(tops) == 1 && strings.HasSuffix(tops[0], "/"):
		return strings.TrimSuffix(tops[0], "/"), nil
	case ref.Kind == Chart:
		return "", refuse(ErrInvalid, "", "a chart's archive has one folder at its top, this one has %s", enumerate(tops))
	}
	return ".", nil
}

// topFolders are the files and folders, these with a slash, at the top of an archive.
func topFolders(files []File) []string {
	var tops []string
	for _, f := range files {
		top, _, inside := strings.Cut(f.Path, "/")
		if inside {
			top += "/"
		}
		tops = append(tops, top)
	}
	slices.Sort(tops)
	return slices.Compact(tops)
}

// enumerate names a few of many.
func enumerate(names []string) string {
	const most = 5
	quoted := make([]string, 0, most)
	for _, n := range names[:min(most, len(names))] {
		quoted = append(quoted, quote(n))
	}
	if len(names) > most {
		quoted = append(quoted, "…")
	}
	return strings.Join(quoted, ", ")
}

// narrowing says what to keep of an archive.
type narrowing struct {
	kind   Kind
	root   string
	limits Limits
}

// narrow keeps the files that the kind of source needs, and says so if they are not there.
func narrow(ctx context.Context, n narrowing, files []File) ([]File, error) {
	keep := func(f File) bool { return under(n.root, f.Path) }
	switch n.kind {
	case Manifests:
		keep = func(f File) bool { return under(n.root, f.Path) && isManifest(f.Path) }
	case Kustomize:
		found, err := closure(ctx, memory(files), n.root, n.limits)
		if err != nil {
			return nil, leaving(err)
		}
		keep = func(f File) bool { return found.holds(f.Path) }
	}
	kept := slices.DeleteFunc(slices.Clone(files), func(f File) bool { return !keep(f) })
	return kept, complete(n.kind, n.root, kept)
}

// complete says whether a tree has what its kind needs.
func complete(kind Kind, root string, files []File) error {
	switch kind {
	case Manifests:
		if len(files) == 0 {
			return refuse(ErrNotFound, "", "folder %s holds no *.yaml, *.yml or *.json", quote(root))
		}
	case Chart:
		want := path.Join(root, "Chart.yaml")
		if !slices.ContainsFunc(files, func(f File) bool { return f.Path == want }) {
			return refuse(ErrNotFound, want, "is missing: this is not a Helm chart")
		}
	}
	return nil
}
