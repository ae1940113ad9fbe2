package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// entry is an object for the catalogue, and the file that it is from.
type entry struct {
	file   string
	object client.Object
}

// readCatalog reads files and folders of templates and releases; templates come first, so that no channel names what is not there.
func readCatalog(args []string, namespace string) ([]entry, error) {
	var templates, releases []entry
	for _, arg := range args {
		files, err := filesOf(arg)
		if err != nil {
			return nil, fmt.Errorf("reading the catalogue: %w", err)
		}
		for _, file := range files {
			objects, err := readCatalogFile(file, namespace)
			if err != nil {
				return nil, fmt.Errorf("reading %s: %w", file, err)
			}
			for _, obj := range objects {
				if _, ok := obj.(*v1beta2.ModuleTemplate); ok {
					templates = append(templates, entry{file, obj})
				} else {
					releases = append(releases, entry{file, obj})
				}
			}
		}
	}
	return append(templates, releases...), nil
}

func readCatalogFile(file, namespace string) ([]client.Object, error) {
	data, err := readFile(file)
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return nil, err
	}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	var out []client.Object
	for n := 1; ; n++ { // ends with the file, whose size is bounded
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		obj, err := decodeEntry(document, dir, namespace)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		if obj != nil {
			out = append(out, obj)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("it has no ModuleTemplate and no ModuleReleaseMeta")
	}
	return out, nil
}

// decodeEntry reads one document strictly; nil if it has nothing but comments.
func decodeEntry(document []byte, dir, namespace string) (client.Object, error) {
	var meta metav1.TypeMeta
	if err := yaml.Unmarshal(document, &meta); err != nil {
		return nil, err
	}
	if meta.Kind == "" && meta.APIVersion == "" && isBlank(document) {
		return nil, nil //nolint:nilnil // nothing, and no error
	}
	if meta.APIVersion != v1beta2.GroupVersion.String() {
		return nil, fmt.Errorf("apiVersion %q: the catalogue has ModuleTemplates and ModuleReleaseMetas of %s", meta.APIVersion, v1beta2.GroupVersion)
	}
	var obj client.Object
	template := &v1beta2.ModuleTemplate{}
	switch meta.Kind {
	case "ModuleTemplate":
		obj = template
	case "ModuleReleaseMeta":
		obj = &v1beta2.ModuleReleaseMeta{}
	default:
		return nil, fmt.Errorf("kind %q: the catalogue has ModuleTemplates and ModuleReleaseMetas only", meta.Kind)
	}
	if err := yaml.UnmarshalStrict(document, obj); err != nil {
		return nil, err
	}
	if obj.GetName() == "" {
		return nil, fmt.Errorf("%s: metadata.name is missing", meta.Kind)
	}
	if of := cmp.Or(obj.GetNamespace(), namespace); of != namespace {
		return nil, fmt.Errorf("%s %s is of namespace %s, and the command of %s: give -n %s", meta.Kind, obj.GetName(), of, namespace, of)
	}
	obj.SetNamespace(namespace)
	if err := absolute(&template.Spec.Source, dir); err != nil {
		return nil, fmt.Errorf("%s %s: %w", meta.Kind, obj.GetName(), err)
	}
	return obj, nil
}

func isBlank(document []byte) bool {
	var v any
	return yaml.Unmarshal(document, &v) == nil && v == nil
}
