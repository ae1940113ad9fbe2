package cli

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/catalog/artifact"
)

// entry is an object for the catalogue, and the file that it is from.
type entry struct {
	file   string
	object client.Object
}

// readCatalog reads files, folders and artifacts of templates and releases; templates come first, so that no channel names what is not there.
func (a *app) readCatalog(ctx context.Context, s *serverFlags, args []string, namespace string) ([]entry, error) {
	var all []entry
	for _, arg := range args {
		found, err := a.readArgument(ctx, s, arg, namespace)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	slices.SortStableFunc(all, func(a, b entry) int { return cmp.Compare(rankOf(a.object), rankOf(b.object)) })
	return all, nil
}

func rankOf(obj client.Object) int {
	if _, ok := obj.(*v1beta2.ModuleTemplate); ok {
		return 0
	}
	return 1
}

// readArgument reads a file, a folder or an artifact.
func (a *app) readArgument(ctx context.Context, s *serverFlags, arg, namespace string) (all []entry, err error) {
	if strings.HasPrefix(arg, artifact.Scheme) {
		files, _, err := a.pull(ctx, s, arg)
		if err != nil {
			return nil, err
		}
		objects, err := pulledCatalog(arg, namespace, files)
		for _, obj := range objects {
			all = append(all, entry{arg, obj})
		}
		return all, err
	}
	files, err := filesOf(arg)
	if err != nil {
		return nil, fmt.Errorf("reading the catalogue: %w", err)
	}
	for _, file := range files {
		objects, err := readCatalogFile(file, namespace)
		if err != nil {
			return nil, err
		}
		for _, obj := range objects {
			all = append(all, entry{file, obj})
		}
	}
	return all, nil
}

func readCatalogFile(file, namespace string) ([]client.Object, error) {
	data, err := readFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	dir, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	entries, problems := artifact.DecodeFile(artifact.File{Path: file, Data: data})
	if len(problems) > 0 {
		return nil, fmt.Errorf("reading %w", problems[0])
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("reading %s: it has no ModuleTemplate and no ModuleReleaseMeta", file)
	}
	out := make([]client.Object, 0, len(entries))
	for i := range entries {
		obj, err := placed(&entries[i], namespace)
		if err == nil && entries[i].Template != nil {
			err = absolute(&entries[i].Template.Spec.Source, dir)
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %s %s: %w", entries[i].Place(), entries[i].Kind(), entries[i].Object().GetName(), err)
		}
		out = append(out, obj)
	}
	return out, nil
}

// placed is an entry as an object of a namespace.
func placed(e *artifact.Entry, namespace string) (client.Object, error) {
	if of := cmp.Or(e.Object().GetNamespace(), namespace); of != namespace {
		return nil, fmt.Errorf("it is of namespace %s, and the command of %s: give -n %s", of, namespace, of)
	}
	e.Object().SetNamespace(namespace)
	if e.Template != nil {
		return e.Template, nil
	}
	return e.Release, nil
}

// pulledCatalog are the objects of a catalogue in a registry, for a control plane.
func pulledCatalog(address, namespace string, files artifact.Files) ([]client.Object, error) {
	entries, problems := files.Decode()
	if len(problems) > 0 {
		return nil, fmt.Errorf("reading %s: %w", address, problems[0])
	}
	out := make([]client.Object, 0, len(entries))
	for i := range entries {
		e := &entries[i]
		if e.Template != nil {
			if ref := refOf(&e.Template.Spec.Source); ref != nil && artifact.IsLocal(ref) {
				return nil, &hintedError{
					err:  fmt.Errorf("reading %s: %s: the source of %s is a path inside of the artifact, which a control plane does not see", address, e.Place(), e.Template.Name),
					hint: "mirror the catalogue into a registry (mothership catalog mirror), or pull it into a folder that the control plane may read",
				}
			}
		}
		obj, err := placed(e, namespace)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %s: %w", address, e.Place(), err)
		}
		out = append(out, obj)
	}
	return out, nil
}
