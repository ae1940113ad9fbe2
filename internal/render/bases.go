package render

import (
	"context"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/kyma-project/mothership/internal/bundle"
	"github.com/kyma-project/mothership/internal/source"
)

// Bounds of what the bases of one kustomization bring, those of bases included.
const (
	maxBases     = 32
	maxBaseBytes = 64 << 20
)

// baseFolder begins the names of the folders that bases are put into, next to the kustomization that names them.
const baseFolder = "mothership-base-"

// WithBases returns a renderer that fetches the remote resources, bases and components of kustomizations, as all sources are
// fetched, before next renders; kustomize itself fetches nothing. Each must be pinned by a commit or a digest, so that the tree's
// digest names what is rendered. A tree that is the caller's own may refer to any host; one that was downloaded, and every base, to
// the host that it came from alone (Request.SourceHost): else whoever can have a kustomization rendered could have addresses
// visited for him. Bases are fetched without credentials, and a tree with bases is not Trusted.
func WithBases(sources source.Fetcher, next Renderer) Renderer {
	return Func(func(ctx context.Context, r Request) (*bundle.Bundle, error) {
		if r.Kind != Kustomize || r.Tree == nil || !mayHaveBases(r.Tree) {
			return next.Render(ctx, r)
		}
		x := &expansion{sources: sources, files: map[string][]byte{}, known: map[string]string{}}
		for _, f := range r.Tree.Files {
			x.files[f.Path] = f.Data
		}
		if err := x.all(ctx, visitor{host: r.SourceHost, anywhere: r.Tree.Trusted}); err != nil {
			return nil, inModuleOrSource(err, r.Module)
		}
		if x.count > 0 {
			r.Tree = x.tree(r.Tree)
		}
		return next.Render(ctx, r)
	})
}

// inModuleOrSource names the module in errors of ours; those of sources say more as they are.
func inModuleOrSource(err error, module string) error {
	if _, ok := err.(*Error); ok { //nolint:errorlint // wrapped ones are of a fetch
		return inModule(err, module)
	}
	return err
}

// mayHaveBases says whether any kustomization has something in it that looks like an address.
func mayHaveBases(tree *source.Tree) bool {
	return slices.ContainsFunc(tree.Files, func(f source.File) bool {
		return kustomizationNames[path.Base(f.Path)] && addressForm.Match(f.Data)
	})
}

// addressForm is what every remote reference that parseBase accepts has in it, unless it is written in escapes: those stay, and are
// refused.
var addressForm = regexp.MustCompile(`(?i)://|github\.com/`)

// visitor says where a kustomization may refer to.
type visitor struct {
	host     string
	anywhere bool
}

// expansion puts bases into a tree.
type expansion struct {
	sources source.Fetcher
	files   map[string][]byte
	known   map[string]string // folder and reference → what stands in its place
	count   int
	bytes   int
}

// all expands every kustomization of the tree, and those of the bases. It ends: each fetch counts.
func (x *expansion) all(ctx context.Context, v visitor) error {
	type work struct {
		file string
		visitor
	}
	var queue []work
	enqueue := func(files []string, v visitor) {
		for _, f := range files {
			if kustomizationNames[path.Base(f)] {
				queue = append(queue, work{f, v})
			}
		}
	}
	enqueue(slices.Sorted(maps.Keys(x.files)), v)
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		err := x.expand(ctx, next.file, next.visitor, func(added []string, host string) { enqueue(added, visitor{host: host}) })
		if err != nil {
			return err
		}
	}
	return nil
}

// baseFields are the fields of a kustomization whose remote references are fetched.
var baseFields = []string{"resources", "bases", "components"}

// isBaseField says so without regard to case, as kustomize reads keys.
func isBaseField(key string) bool {
	return slices.ContainsFunc(baseFields, func(f string) bool { return strings.EqualFold(f, key) })
}

// expand puts the bases of one kustomization beside it, and local references in place of the remote ones.
func (x *expansion) expand(ctx context.Context, file string, v visitor, added func(files []string, host string)) error {
	var doc yamlv3.Node
	if !readNode(x.files[file], &doc) {
		return nil // kustomize says what is wrong with it
	}
	changed := false
	for _, item := range baseItems(doc.Content[0]) {
		if !isRemote(item.Value) {
			continue
		}
		b, err := parseBase(item.Value)
		if err == nil && !v.anywhere && b.host != v.host {
			err = fmt.Errorf("the source itself is not from there, so that its host is not visited for it: copy it into the source")
		}
		if err != nil {
			e := remoteError(file, "it", item.Value)
			shown, _, _ := strings.Cut(withoutUser(item.Value), "?")
			e.Line, e.Problem = item.Line, fmt.Sprintf("refers to something remote (%s): %v", shown, err)
			return e
		}
		local, files, err := x.fetch(ctx, path.Dir(file), item.Value, b)
		if err != nil {
			return err
		}
		added(files, b.host)
		item.Value, item.Style, changed = local, 0, true
	}
	if !changed {
		return nil
	}
	data, err := yamlv3.Marshal(&doc)
	if err != nil {
		return &Error{Origin: file, Problem: "it cannot be written with its bases in it", Err: ErrMalformed}
	}
	x.files[file] = data
	return nil
}

// readNode reads one document, and says whether it is one.
func readNode(data []byte, doc *yamlv3.Node) bool {
	return yamlv3.Unmarshal(data, doc) == nil && len(doc.Content) == 1
}

// baseItems are the items of the fields that may have remote references.
func baseItems(m *yamlv3.Node) []*yamlv3.Node {
	var out []*yamlv3.Node
	for i := 0; m.Kind == yamlv3.MappingNode && i+1 < len(m.Content); i += 2 {
		if isBaseField(m.Content[i].Value) && m.Content[i+1].Kind == yamlv3.SequenceNode {
			for _, item := range m.Content[i+1].Content {
				if item.Kind == yamlv3.ScalarNode {
					out = append(out, item)
				}
			}
		}
	}
	return out
}

// fetch puts a base into a folder of its own below dir, and returns what to refer to, relative to dir, and the files that came.
func (x *expansion) fetch(ctx context.Context, dir, ref string, b *base) (local string, files []string, err error) {
	if local, ok := x.known[dir+"\x00"+ref]; ok {
		return local, nil, nil
	}
	if x.count++; x.count > maxBases {
		return "", nil, &Error{Origin: dir, Problem: fmt.Sprintf("more than %d remote bases are not accepted", maxBases), Err: ErrMalformed}
	}
	tree, err := x.sources.Fetch(ctx, b.Ref)
	if err != nil {
		return "", nil, err
	}
	folder := fmt.Sprintf("%s%d", baseFolder, x.count)
	for _, f := range tree.Files {
		name := path.Join(dir, folder, f.Path)
		if x.bytes += len(f.Data); x.bytes > maxBaseBytes || x.files[name] != nil {
			return "", nil, &Error{Origin: name, Problem: fmt.Sprintf("the remote bases have more than %d MiB, or are in the way of the source's own files", maxBaseBytes>>20), Err: ErrMalformed}
		}
		x.files[name] = f.Data
		files = append(files, name)
	}
	local = path.Join(folder, tree.Root)
	if b.Kind == source.Manifests && len(tree.Files) == 1 {
		local = path.Join(folder, tree.Files[0].Path)
	}
	x.known[dir+"\x00"+ref] = local
	return local, files, nil
}

// tree is what is rendered in place of the source. The digest stays: what was added is pinned by what it names.
func (x *expansion) tree(of *source.Tree) *source.Tree {
	out := &source.Tree{Digest: of.Digest, Root: of.Root, Revision: of.Revision}
	for _, name := range slices.Sorted(maps.Keys(x.files)) {
		out.Files = append(out.Files, source.File{Path: name, Data: x.files[name]})
	}
	return out
}
