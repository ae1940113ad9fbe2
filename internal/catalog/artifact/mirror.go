package artifact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/source"
)

// OriginAnnotation of a mirrored template says where its source was copied from.
const OriginAnnotation = v1beta2.Group + "/mirrored-from"

// Target is where a mirror goes. Exactly one of Dir and Registry is set.
type Target struct {
	// Dir is a folder, which is made where it is missing.
	Dir string
	// Registry takes the sources below Reference, and the catalogue itself under it.
	Registry  *Registry
	Reference Reference
	// CABundle (PEM) and CredentialsRef are written into the templates, for those who read the sources from the registry.
	CABundle       string
	CredentialsRef string
}

// MirrorOptions of Mirror.
type MirrorOptions struct {
	// Dir is the folder that relative paths in the templates start at.
	Dir string
	// Sources fetches what the templates refer to. Needed.
	Sources source.Fetcher
	// To is where the mirror goes.
	To Target
	// Images names the container images of a template, as far as they are known without a cluster. Default: none are looked for.
	Images func(context.Context, *v1beta2.ModuleTemplate) ([]string, error)
	// Progress is told of each source that was copied. Default: nobody is.
	Progress func(Copied)
}

// Copied is one source that a mirror has.
type Copied struct {
	// Template is its name.
	Template string `json:"template"`
	// From is where the source was, and Revision what that was resolved to, if it moves.
	From     string `json:"from"`
	Revision string `json:"revision,omitempty"`
	// To is where it is now, and Digest what it is pinned to.
	To     string `json:"to"`
	Digest string `json:"digest"`
	// Unchanged says that it was there already.
	Unchanged bool `json:"unchanged,omitempty"`
}

// Report says what a mirror has, and what it does not have.
type Report struct {
	// Catalog is where the catalogue is: an artifact by its digest, or a folder.
	Catalog string   `json:"catalog"`
	Copied  []Copied `json:"copied"`
	// Images are the container images that the modules name. They are not copied.
	Images []string `json:"images"`
	// Warnings for people.
	Warnings []string `json:"warnings,omitempty"`
}

// Mirror copies a catalogue and everything that its templates refer to. The templates of the copy lead to the copies, pinned by their
// digests, and to nothing else. It is idempotent: what is there already is not sent again, and the same catalogue gives the same
// mirror. Errors name the template; nothing names what could not be copied.
func Mirror(ctx context.Context, files Files, o MirrorOptions) (*Report, error) {
	entries, problems := files.Decode()
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	if len(entries) == 0 {
		return nil, errors.New("the catalogue has no ModuleTemplate and no ModuleReleaseMeta")
	}
	m := &mirror{o: o, report: &Report{Copied: []Copied{}, Images: []string{}}}
	for i := range entries {
		if err := m.entry(ctx, &entries[i]); err != nil {
			return m.report, fmt.Errorf("mirroring %s: %w", entries[i].Object().GetName(), err)
		}
	}
	slices.Sort(m.report.Images)
	m.report.Images = slices.Compact(m.report.Images)
	return m.report, m.finish(ctx)
}

// mirror is one call of Mirror.
type mirror struct {
	o      MirrorOptions
	report *Report
	out    Files
}

// entry copies one object's source, and writes the object anew.
func (m *mirror) entry(ctx context.Context, e *Entry) error {
	if e.Template != nil {
		original := e.Template.DeepCopy()
		if err := m.template(ctx, e.Template); err != nil {
			return err
		}
		m.images(ctx, original)
	}
	data, err := encode(e)
	if err != nil {
		return err
	}
	name := e.Object().GetName() + ".yaml"
	if slices.ContainsFunc(m.out, func(f File) bool { return f.Path == name }) {
		return fmt.Errorf("%s: there are two of that name", e.Place())
	}
	m.out = append(m.out, File{name, data})
	return nil
}

// images notes the container images of a template.
func (m *mirror) images(ctx context.Context, t *v1beta2.ModuleTemplate) {
	if m.o.Images == nil {
		return
	}
	found, err := m.o.Images(ctx, t)
	if err != nil {
		m.report.Warnings = append(m.report.Warnings, fmt.Sprintf("the container images of %s are not known: %v", t.Name, err))
	}
	m.report.Images = append(m.report.Images, found...)
}

// template copies a template's source and leads the template to the copy.
func (m *mirror) template(ctx context.Context, t *v1beta2.ModuleTemplate) error {
	ref, err := source.RefOf(Rooted(t.Spec.Source, m.o.Dir))
	if err != nil {
		return err
	}
	tree, err := m.o.Sources.Fetch(ctx, ref)
	if err != nil {
		return err
	}
	from := ref.String()
	if IsLocal(&ref.SourceRef) {
		from = RefOf(&t.Spec.Source).Path
	}
	c := Copied{Template: t.Name, From: from, Revision: tree.Revision}
	place, err := m.place(ctx, t, ref.Kind, tree, &c)
	if err != nil {
		return err
	}
	*RefOf(&t.Spec.Source) = place
	if t.Annotations == nil {
		t.Annotations = map[string]string{}
	}
	if _, mirrored := t.Annotations[OriginAnnotation]; !mirrored { // a mirror of a mirror names the origin
		t.Annotations[OriginAnnotation] = strings.TrimSpace(c.From + " " + c.Revision)
	}
	m.report.Copied = append(m.report.Copied, c)
	if m.o.Progress != nil {
		m.o.Progress(c)
	}
	return nil
}

// place puts a source where the mirror is.
func (m *mirror) place(ctx context.Context, t *v1beta2.ModuleTemplate, kind source.Kind, tree *source.Tree, c *Copied) (v1beta2.SourceRef, error) {
	files, folder := filesOf(kind, tree)
	if m.o.To.Dir != "" {
		return m.placeInFolder(ctx, t, kind, files, folder, c)
	}
	data, err := files.pack(t.Spec.ModuleName + "/")
	if err != nil {
		return v1beta2.SourceRef{}, err
	}
	at := m.o.To.Reference.below(t.Spec.ModuleName, t.Spec.Version)
	done, err := m.o.To.Registry.push(ctx, at, single{SourceType, SourceLayerType, data})
	if err != nil {
		return v1beta2.SourceRef{}, err
	}
	c.To, c.Digest, c.Unchanged = at.String(), done.manifest, done.had
	out := v1beta2.SourceRef{
		OCI:    &v1beta2.OCISource{URL: at.Repository(), Digest: done.manifest},
		Digest: done.layer, CABundle: m.o.To.CABundle,
	}
	if folder != "." {
		out.OCI.Path = t.Spec.ModuleName + "/" + folder
	}
	if m.o.To.CredentialsRef != "" {
		out.CredentialsRef = &v1beta2.SecretReference{Name: m.o.To.CredentialsRef}
	}
	return out, nil
}

// filesOf are the files of a source, and the folder among them that is rendered. A kustomization may refer to its siblings, so its
// files stay where they are; of others only the folder itself counts.
func filesOf(kind source.Kind, tree *source.Tree) (files Files, folder string) {
	for _, f := range tree.Files {
		name := f.Path
		if kind != source.Kustomize && tree.Root != "." {
			name = strings.TrimPrefix(name, tree.Root+"/")
		}
		files = append(files, File{name, f.Data})
	}
	files.sort()
	if kind != source.Kustomize {
		return files, "."
	}
	return files, tree.Root
}

// sourcesDir is the folder of a mirror's sources.
const sourcesDir = "sources"

// placeInFolder writes a source below the mirror's folder: a kustomization as its files, everything else as an archive. Its digest is
// that of what is read back.
func (m *mirror) placeInFolder(ctx context.Context, t *v1beta2.ModuleTemplate, kind source.Kind, files Files, folder string, c *Copied) (v1beta2.SourceRef, error) {
	out := v1beta2.SourceRef{Path: path.Join(sourcesDir, t.Name+".tgz")}
	var write Files
	if kind == source.Kustomize {
		out.Path = path.Join(sourcesDir, t.Name, folder)
		for _, f := range files {
			write = append(write, File{path.Join(sourcesDir, t.Name, f.Path), f.Data})
		}
	} else {
		data, err := files.pack(t.Spec.ModuleName + "/")
		if err != nil {
			return out, err
		}
		write = Files{{out.Path, data}}
	}
	changed, err := m.write(write)
	if err != nil {
		return out, err
	}
	dir, err := filepath.Abs(m.o.To.Dir)
	if err != nil {
		return out, err
	}
	back := source.Ref{Kind: kind, SourceRef: v1beta2.SourceRef{Path: filepath.Join(dir, out.Path)}}
	tree, err := source.New(source.Options{}).Fetch(ctx, back)
	if err != nil {
		return out, err
	}
	out.Digest = tree.Digest
	c.To, c.Digest, c.Unchanged = out.Path, out.Digest, !changed
	return out, nil
}

// write writes files below the mirror's folder and says whether any of them was another before.
func (m *mirror) write(files Files) (changed bool, err error) {
	if err := os.MkdirAll(m.o.To.Dir, 0o750); err != nil {
		return false, err
	}
	root, err := os.OpenRoot(m.o.To.Dir)
	if err != nil {
		return false, err
	}
	defer root.Close()
	for _, f := range files {
		wrote, err := writeFile(root, f)
		if err != nil {
			return false, err
		}
		changed = changed || wrote
	}
	return changed, nil
}

// finish writes the catalogue itself, last: who reads it finds everything that it names.
func (m *mirror) finish(ctx context.Context) error {
	m.out.sort()
	if m.o.To.Dir != "" {
		m.report.Catalog = m.o.To.Dir
		_, err := m.write(m.out)
		return err
	}
	digest, err := m.o.To.Registry.Push(ctx, m.o.To.Reference, m.out)
	m.report.Catalog = m.o.To.Reference.Repository() + "@" + digest
	return err
}

// Rooted is a source whose local path, if it is relative, starts at a folder.
func Rooted(s v1beta2.Source, dir string) v1beta2.Source {
	out := *s.DeepCopy()
	if ref := RefOf(&out); ref != nil && IsLocal(ref) && !filepath.IsAbs(ref.Path) {
		ref.Path = filepath.Join(dir, ref.Path)
	}
	return out
}

// encode writes an object as YAML, without what is empty.
func encode(e *Entry) ([]byte, error) {
	var obj any = e.Template
	if e.Release != nil {
		obj = e.Release
	}
	raw, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	var content map[string]any
	if err := json.Unmarshal(raw, &content); err != nil {
		return nil, err
	}
	if meta, ok := content["metadata"].(map[string]any); ok && meta["creationTimestamp"] == nil {
		delete(meta, "creationTimestamp")
	}
	return yaml.Marshal(content)
}
