package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// folder is where a kustomization's files are looked up: a directory or an unpacked archive. Paths are clean and
// relative to its top.
type folder interface {
	// look says what is at a path.
	look(name string) (entryKind, error)
	// read returns a file's content, at most limit bytes of it.
	read(name string, limit int64) ([]byte, error)
}

// entryKind is what is at a path.
type entryKind int

const (
	missing entryKind = iota
	aFile
	aFolder
)

// kustomizationNames are the names that kustomize knows; a folder has at most one of them.
var kustomizationNames = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// maxKustomization bounds one kustomization file.
const maxKustomization = 1 << 20

// needed is what a kustomization consists of.
type needed struct {
	// folders of kustomizations: everything in them belongs to it, for patches, generators and plugins may name it.
	folders []string
	// files elsewhere that a kustomization names.
	files []string
}

// holds says whether a file belongs to the kustomization.
func (n *needed) holds(file string) bool {
	return slices.Contains(n.files, file) ||
		slices.ContainsFunc(n.folders, func(f string) bool { return under(f, file) })
}

// outsideError is a reference that leads out of the folder, to be looked up from further up.
type outsideError struct{ name string }

// Error is seen only by those who cannot look further up.
func (e *outsideError) Error() string { return fmt.Sprintf("%q is outside", e.name) }

// closure follows the references of the kustomization in a folder. References to other hosts are refused; one that
// leads out of the top is an *outsideError.
func closure(ctx context.Context, in folder, start string, limits Limits) (*needed, error) {
	c := &follower{in: in, limits: limits, seen: map[string]bool{}}
	c.enter(start)
	for len(c.queue) > 0 {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		next := c.queue[0]
		c.queue = c.queue[1:]
		if err := c.follow(next); err != nil {
			return nil, err
		}
	}
	slices.Sort(c.found.files)
	c.found.files = slices.Compact(c.found.files)
	slices.Sort(c.found.folders)
	return &c.found, nil
}

// follower walks from kustomization to kustomization; each folder is entered once, and the references of all together
// are bounded by Limits.Files.
type follower struct {
	in     folder
	limits Limits
	seen   map[string]bool
	queue  []string
	found  needed
	refs   int
}

// enter queues a folder once.
func (c *follower) enter(dir string) {
	if !c.seen[dir] {
		c.seen[dir] = true
		c.queue = append(c.queue, dir)
		c.found.folders = append(c.found.folders, dir)
	}
}

// follow reads the kustomization of a folder and takes its references.
func (c *follower) follow(dir string) error {
	file, err := c.kustomizationOf(dir)
	if err != nil {
		return err
	}
	data, err := c.in.read(file, maxKustomization)
	if err != nil {
		return err
	}
	refs, err := references(data)
	if err != nil {
		return &Error{Entry: file, Problem: "is malformed", Reason: ErrInvalid, Err: err}
	}
	for _, r := range refs {
		if c.refs++; c.refs > c.limits.Files {
			return refuse(ErrTooLarge, file, "has, with all before it, more than %d references", c.limits.Files)
		}
		if err := c.take(file, r); err != nil {
			return err
		}
	}
	return nil
}

// kustomizationOf is the path of a folder's kustomization file.
func (c *follower) kustomizationOf(dir string) (string, error) {
	var found []string
	for _, name := range kustomizationNames {
		kind, err := c.in.look(path.Join(dir, name))
		if err != nil {
			return "", err
		}
		if kind == aFile {
			found = append(found, path.Join(dir, name))
		}
	}
	switch len(found) {
	case 0:
		return "", refuse(ErrNotFound, dir, "holds no kustomization.yaml, kustomization.yml or Kustomization")
	case 1:
		return found[0], nil
	}
	return "", refuse(ErrInvalid, found[1], "is a second kustomization in one folder: keep one")
}

// take looks up one reference of a kustomization file.
func (c *follower) take(file string, r reference) error {
	dir := parent(file)
	switch {
	case isPinned(r):
		return nil // whoever renders it fetches it, or refuses
	case isRemote(r.path):
		return refuse(ErrUnsupported, file, "refers to %s in %q: copy (vendor) it into the source, remote bases are refused",
			quote(withoutCredentials(r.path)), r.field)
	case r.inline && strings.ContainsAny(r.path, "\n{:"):
		return nil // YAML in place of a path
	case path.IsAbs(r.path) || hasDrive(r.path):
		return refuse(ErrUnsafe, file, "refers to the absolute path %s in %q: refused", quote(r.path), r.field)
	}
	target := path.Join(dir, r.path)
	if target == ".." || strings.HasPrefix(target, "../") {
		return &outsideError{name: target}
	}
	kind, err := c.in.look(target)
	if err != nil {
		return err
	}
	switch {
	case kind == missing && r.inline:
		return nil
	case kind == missing:
		return refuse(ErrNotFound, file, "refers to %s in %q, which does not exist", quote(r.path), r.field)
	case kind == aFile:
		c.found.files = append(c.found.files, target)
	case target == dir || under(target, dir):
		return refuse(ErrInvalid, file, "refers to %s in %q, a folder that it is in itself", quote(r.path), r.field)
	default:
		c.enter(target)
	}
	return nil
}

// remotePattern is how addresses begin that kustomize downloads or clones, and everything else with a scheme.
var remotePattern = regexp.MustCompile(`(?i)^(git::|github\.com[:/]|[a-z][a-z0-9-]*@|https?:|[a-z][a-z0-9+.-]*://)`)

// pinnedPattern is how a reference ends that leads to the same content for ever: a commit, or a digest.
var pinnedPattern = regexp.MustCompile(`[?&](ref=[0-9a-f]{40}|digest=sha256:[0-9a-f]{64})(&|$)`)

// isPinned says whether a reference is that of a remote base, pinned to what it is now.
func isPinned(r reference) bool {
	return isRemote(r.path) && pinnedPattern.MatchString(r.path) && (r.field == "resources" || r.field == "bases" || r.field == "components")
}

func isRemote(ref string) bool { return remotePattern.MatchString(ref) }

// withoutCredentials shortens an address of any form to host and path: no user, no query.
func withoutCredentials(ref string) string {
	ref, _, _ = strings.Cut(ref, "?")
	return ref[strings.LastIndexByte(ref, '@')+1:]
}

// reference is a path in a kustomization.
type reference struct {
	field, path string
	// inline says that YAML may stand in place of the path.
	inline bool
}

// kustomization holds the fields that refer to files. It is decoded as kustomize does it, keys without regard to case.
type kustomization struct {
	Resources             []string          `json:"resources"`
	Bases                 []string          `json:"bases"`
	Components            []string          `json:"components"`
	Crds                  []string          `json:"crds"`
	Configurations        []string          `json:"configurations"`
	Generators            []string          `json:"generators"`
	Transformers          []string          `json:"transformers"`
	Validators            []string          `json:"validators"`
	PatchesStrategicMerge []string          `json:"patchesStrategicMerge"`
	PatchesJSON6902       []pathField       `json:"patchesJson6902"`
	Patches               []pathField       `json:"patches"`
	Replacements          []pathField       `json:"replacements"`
	ConfigMapGenerator    []generatorFields `json:"configMapGenerator"`
	SecretGenerator       []generatorFields `json:"secretGenerator"`
	OpenAPI               pathField         `json:"openapi"`
}

type pathField struct {
	Path string `json:"path"`
}

type generatorFields struct {
	Files []string `json:"files"`
	Envs  []string `json:"envs"`
	Env   string   `json:"env"`
}

// references are the paths in a kustomization file.
func references(data []byte) ([]reference, error) {
	k, err := decode(data)
	if err != nil {
		return nil, err
	}
	var refs []reference
	add := func(field string, inline bool, paths ...string) {
		for _, p := range paths {
			if p != "" {
				refs = append(refs, reference{field: field, path: p, inline: inline})
			}
		}
	}
	add("resources", false, k.Resources...)
	add("bases", false, k.Bases...)
	add("components", false, k.Components...)
	add("crds", false, k.Crds...)
	add("configurations", false, k.Configurations...)
	add("generators", true, k.Generators...)
	add("transformers", true, k.Transformers...)
	add("validators", true, k.Validators...)
	add("patchesStrategicMerge", true, k.PatchesStrategicMerge...)
	add("openapi", false, k.OpenAPI.Path)
	for _, p := range slices.Concat(k.PatchesJSON6902, k.Patches) {
		add("patches", false, p.Path)
	}
	for _, p := range k.Replacements {
		add("replacements", false, p.Path)
	}
	for _, g := range slices.Concat(k.ConfigMapGenerator, k.SecretGenerator) {
		add("generator.envs", false, append(slices.Clone(g.Envs), g.Env)...)
		for _, f := range g.Files {
			if !isRemote(f) {
				f = f[strings.IndexByte(f, '=')+1:] // key=path
			}
			add("generator.files", false, f)
		}
	}
	return refs, nil
}

// decode refuses duplicate keys, which kustomize would let through.
func decode(data []byte) (*kustomization, error) {
	asJSON, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, err
	}
	var k kustomization
	if err := json.Unmarshal(asJSON, &k); err != nil {
		return nil, err
	}
	return &k, nil
}

// memory is an unpacked archive as a folder; the files are sorted by path.
type memory []File

func (m memory) find(name string) (int, bool) {
	return slices.BinarySearchFunc(m, name, func(f File, name string) int { return strings.Compare(f.Path, name) })
}

func (m memory) look(name string) (entryKind, error) {
	if _, ok := m.find(name); ok {
		return aFile, nil
	}
	if i, _ := m.find(name + "/"); name == "." || i < len(m) && under(name, m[i].Path) {
		return aFolder, nil
	}
	return missing, nil
}

func (m memory) read(name string, limit int64) ([]byte, error) {
	i, ok := m.find(name)
	if !ok {
		return nil, refuse(ErrNotFound, name, "does not exist")
	}
	if int64(len(m[i].Data)) > limit {
		return nil, refuse(ErrTooLarge, name, "is larger than the limit of %d bytes", limit)
	}
	return m[i].Data, nil
}

// leaving is the error of a reference that leads out of an archive.
func leaving(err error) error {
	if o, ok := errors.AsType[*outsideError](err); ok {
		return refuse(ErrUnsafe, o.name, "leaves the archive: refused")
	}
	return err
}
