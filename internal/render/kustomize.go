package render

import (
	"fmt"
	"path"
	"strings"
	"sync"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/openapi"

	"github.com/kyma-project/mothership/internal/source"
)

// renderKustomization builds the kustomization at the tree's root, in memory: no plugins, no Helm, nothing remote, and
// no file from outside of the kustomization that names it.
func renderKustomization(r *Request, limits Limits) (*output, error) {
	if err := refuseRemote(r.Tree); err != nil {
		return nil, err
	}
	root := path.Join("/", r.Tree.Root)
	origin, err := kustomizationFile(r.Tree)
	if err != nil {
		return nil, err
	}
	fs, err := memoryFS(r.Tree)
	if err != nil {
		return nil, err
	}
	resources, err := runKustomize(fs, root)
	if err != nil {
		return nil, &Error{Origin: origin, Problem: "kustomize: " + oneLine(err.Error()), Err: ErrMalformed}
	}
	texts, err := resourceTexts(resources, origin)
	if err != nil {
		return nil, err
	}
	objects, err := decode(texts, limits)
	return &output{objects: objects}, err
}

// kustomizing is held while kustomize runs: it keeps the schemas of the field `openapi` in globals of the process.
var kustomizing sync.Mutex

// builtinSchema is what those globals are when nobody has changed them.
var builtinSchema = openapi.GetSchemaVersion()

// runKustomize runs kustomize alone, and has it forget the schemas of this kustomization: they would decide how patches of the next are merged.
func runKustomize(fs filesys.FileSystem, root string) (resmap.ResMap, error) {
	kustomizing.Lock()
	defer kustomizing.Unlock()
	defer func() {
		if openapi.GetSchemaVersion() != builtinSchema {
			openapi.ResetOpenAPI()
		}
	}()
	options := &krusty.Options{LoadRestrictions: types.LoadRestrictionsRootOnly, PluginConfig: types.DisabledPluginConfig()}
	return krusty.MakeKustomizer(options).Run(fs, root)
}

// memoryFS holds the whole tree, so that overlays find their bases.
func memoryFS(tree *source.Tree) (filesys.FileSystem, error) {
	fs := filesys.MakeFsInMemory()
	for _, f := range tree.Files {
		if err := fs.WriteFile("/"+f.Path, f.Data); err != nil {
			return nil, &Error{Origin: f.Path, Problem: "cannot be read by kustomize: " + err.Error(), Err: ErrMalformed}
		}
	}
	return fs, nil
}

// resourceTexts are the resources as JSON documents, so that limits and checks are the same for every kind of source.
func resourceTexts(resources resmap.ResMap, origin string) ([]text, error) {
	var texts []text
	for _, res := range resources.Resources() {
		data, err := res.MarshalJSON()
		if err != nil {
			return nil, &Error{Origin: origin, Problem: fmt.Sprintf("kustomize: %s: %s", res.CurId(), oneLine(err.Error())), Err: ErrMalformed}
		}
		texts = append(texts, text{origin: origin, data: data, rendered: true})
	}
	return texts, nil
}

// kustomizationNames are the names that kustomize accepts for its file.
var kustomizationNames = map[string]bool{"kustomization.yaml": true, "kustomization.yml": true, "Kustomization": true}

// kustomizationFile is the path of the kustomization at the tree's root.
func kustomizationFile(tree *source.Tree) (string, error) {
	root := path.Clean(tree.Root)
	for _, f := range tree.Files {
		if kustomizationNames[path.Base(f.Path)] && path.Dir(f.Path) == root {
			return f.Path, nil
		}
	}
	return "", &Error{Origin: root, Problem: "no kustomization here: kustomization.yaml is missing", Err: ErrMalformed}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
