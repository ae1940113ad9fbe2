package artifact

import (
	"fmt"
	"path"
	"path/filepath"
)

// CheckPortable says which templates refer to what a copy of the folder does not have: local paths that are absolute or lead out of
// it. One error per template.
func (f Files) CheckPortable() []error {
	entries, problems := f.Decode()
	for _, e := range entries {
		if e.Template == nil {
			continue
		}
		ref := RefOf(&e.Template.Spec.Source)
		if ref == nil || !IsLocal(ref) {
			continue
		}
		if filepath.IsAbs(ref.Path) || !within(ref.Path) {
			problems = append(problems, &ProblemError{e.File, e.Document, fmt.Errorf(
				"source path %s of %s leads out of the folder: move the source into it, or mirror the catalogue", ref.Path, e.Template.Name)})
			continue
		}
		if !f.has(path.Clean(ref.Path)) {
			problems = append(problems, &ProblemError{e.File, e.Document, fmt.Errorf("source path %s of %s does not exist", ref.Path, e.Template.Name)})
		}
	}
	return problems
}

// has says whether there is a file of that name, or a folder with one.
func (f Files) has(name string) bool {
	for _, file := range f {
		if name == "." || file.Path == name || len(file.Path) > len(name) && file.Path[:len(name)+1] == name+"/" {
			return true
		}
	}
	return false
}
