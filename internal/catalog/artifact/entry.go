package artifact

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// Entry is one object of a catalogue, a template or a release, and where it is written.
type Entry struct {
	// File and Document, from 1, are where it is.
	File     string
	Document int
	// Raw is the document as it is written.
	Raw []byte
	// Template or Release; the other is nil.
	Template *v1beta2.ModuleTemplate
	Release  *v1beta2.ModuleReleaseMeta
}

// Object is whichever of the two it is.
func (e *Entry) Object() metav1.Object {
	if e.Template != nil {
		return e.Template
	}
	return e.Release
}

// Kind of the object.
func (e *Entry) Kind() string {
	if e.Template != nil {
		return "ModuleTemplate"
	}
	return "ModuleReleaseMeta"
}

// Place is file and document for people.
func (e *Entry) Place() string { return place(e.File, e.Document) }

func place(file string, document int) string { return fmt.Sprintf("%s: document %d", file, document) }

// ProblemError is something that is wrong at a place in a catalogue.
type ProblemError struct {
	File     string
	Document int
	Err      error
}

// Error names the place.
func (e *ProblemError) Error() string { return place(e.File, e.Document) + ": " + e.Err.Error() }

// Unwrap gives what is wrong.
func (e *ProblemError) Unwrap() error { return e.Err }

// isCatalog says whether a file holds templates and releases, and no source.
func isCatalog(file string) bool {
	return !strings.Contains(file, "/") && slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(path.Ext(file)))
}

// Decode reads the objects of a catalogue strictly: templates first, each kind in the order of the files. What cannot be read is a
// *ProblemError, one for each document; the others are returned nevertheless.
func (f Files) Decode() (entries []Entry, problems []error) {
	for _, file := range f {
		if !isCatalog(file.Path) {
			continue
		}
		found, wrong := DecodeFile(file)
		entries, problems = append(entries, found...), append(problems, wrong...)
	}
	slices.SortStableFunc(entries, func(a, b Entry) int {
		return cmp.Compare(rank(a), rank(b))
	})
	return entries, problems
}

func rank(e Entry) int {
	if e.Template != nil {
		return 0
	}
	return 1
}

// DecodeFile is Decode for one file, whatever its name.
func DecodeFile(file File) (entries []Entry, problems []error) {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(file.Data)))
	for n := 1; ; n++ { // ends with the file
		raw, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return entries, problems
		}
		if err != nil {
			return entries, append(problems, &ProblemError{file.Path, n, err})
		}
		e, err := decode(raw)
		if err != nil {
			problems = append(problems, &ProblemError{file.Path, n, err})
			continue
		}
		if e != nil {
			e.File, e.Document, e.Raw = file.Path, n, raw
			entries = append(entries, *e)
		}
	}
}

// decode reads one document; nil if it has nothing but comments.
func decode(raw []byte) (*Entry, error) {
	var meta metav1.TypeMeta
	var content any
	if err := errors.Join(yaml.Unmarshal(raw, &content), yaml.Unmarshal(raw, &meta)); err != nil {
		return nil, err
	}
	if content == nil {
		return nil, nil //nolint:nilnil // nothing, and no error
	}
	if meta.APIVersion != v1beta2.GroupVersion.String() {
		return nil, fmt.Errorf("apiVersion %q: the catalogue has ModuleTemplates and ModuleReleaseMetas of %s", meta.APIVersion, v1beta2.GroupVersion)
	}
	e := &Entry{}
	var into any
	switch meta.Kind {
	case "ModuleTemplate":
		e.Template = &v1beta2.ModuleTemplate{}
		into = e.Template
	case "ModuleReleaseMeta":
		e.Release = &v1beta2.ModuleReleaseMeta{}
		into = e.Release
	default:
		return nil, fmt.Errorf("kind %q: the catalogue has ModuleTemplates and ModuleReleaseMetas only", meta.Kind)
	}
	if err := yaml.UnmarshalStrict(raw, into); err != nil {
		return nil, err
	}
	if e.Object().GetName() == "" {
		return nil, fmt.Errorf("%s: metadata.name is missing", meta.Kind)
	}
	return e, nil
}

// RefOf is the place in a template's source, nil if it has none.
func RefOf(s *v1beta2.Source) *v1beta2.SourceRef {
	for _, ref := range []*v1beta2.SourceRef{s.Chart, s.Kustomize, s.Manifests} {
		if ref != nil {
			return ref
		}
	}
	return nil
}

// IsLocal says whether a place is a path on a disk.
func IsLocal(ref *v1beta2.SourceRef) bool {
	return ref.Path != "" && ref.URL == "" && ref.Git == nil && ref.Helm == nil && ref.OCI == nil
}

// within says whether a relative path stays in the catalogue's folder.
func within(name string) bool {
	clean := path.Clean(strings.ReplaceAll(name, "\\", "/"))
	return !path.IsAbs(clean) && clean != ".." && !strings.HasPrefix(clean, "../")
}
