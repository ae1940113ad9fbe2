package render

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/kyma-project/mothership/internal/source"
)

// remoteForm is what kustomize may fetch: URLs of any scheme, Git's own forms, and hosts that it knows without one.
var remoteForm = regexp.MustCompile(`(?i)://|^git::|^(git::)?[a-z][a-z0-9-]*@|^(git::)?github\.com[/:]|^gh:|\?(ref|version|submodules|timeout)=`)

func isRemote(s string) bool {
	return !strings.ContainsAny(s, "\n{") && remoteForm.MatchString(strings.TrimSpace(s))
}

// refuseRemote refuses everything in the kustomizations of a tree that kustomize would fetch or run, before it is
// started.
func refuseRemote(tree *source.Tree) error {
	files := map[string][]byte{}
	for _, f := range tree.Files {
		files[f.Path] = f.Data
	}
	var errs []error
	for _, f := range tree.Files {
		if kustomizationNames[path.Base(f.Path)] {
			errs = append(errs, checkKustomization(f, files))
		}
	}
	return join(errs)
}

func checkKustomization(f source.File, files map[string][]byte) error {
	objects, err := decode([]text{{origin: f.Path, data: f.Data, values: true}}, Limits{}.withDefaults())
	if err != nil {
		return err
	}
	var errs []error
	for _, o := range objects {
		for _, field := range []string{"helmCharts", "helmChartInflationGenerator", "helmGlobals"} {
			if len(fieldsNamed(o.fields, field)) > 0 {
				errs = append(errs, o.at(0, "%s is not accepted: make the chart a module of its own", field))
			}
		}
		visitReferences(o.fields, func(field, ref string) {
			if isRemote(ref) {
				errs = append(errs, remoteError(f.Path, field, ref))
			}
		})
		visitConfigs(o.fields, path.Dir(f.Path), files, func(origin, ref string) {
			errs = append(errs, remoteError(origin, "a generator or transformer", ref))
		})
	}
	return join(errs)
}

// withoutUser is a reference without what may be a credential.
func withoutUser(ref string) string { return ref[strings.LastIndex(ref, "@")+1:] }

func remoteError(origin, field, ref string) *Error {
	ref, _, _ = strings.Cut(ref, "?")
	ref = withoutUser(ref)
	return &Error{Origin: origin, Problem: fmt.Sprintf("%s refers to something remote (%s), which is not fetched: put it into the source", field, ref), Err: ErrRemote}
}

// referenceFields are the fields of a kustomization whose strings kustomize loads. In lists of maps, those are under
// path, files, envs or env; what a generator's literals say is left alone.
var referenceFields = []string{
	"resources", "bases", "components", "crds", "configurations", "generators", "transformers", "validators", "patches",
	"patchesStrategicMerge", "patchesJson6902", "replacements", "openapi", "configMapGenerator", "secretGenerator",
}

var pathKeys = []string{"path", "files", "envs", "env"}

func isPathKey(key string) bool {
	return slices.ContainsFunc(pathKeys, func(k string) bool { return strings.EqualFold(k, key) })
}

func visitReferences(fields map[string]any, f func(field, ref string)) {
	for _, field := range referenceFields {
		visitPaths(fieldsNamed(fields, field), func(ref string) {
			if field == "configMapGenerator" || field == "secretGenerator" {
				if _, file, ok := strings.Cut(ref, "="); ok && !strings.Contains(ref, "?") {
					ref = file // key=file
				}
			}
			f(field, ref)
		})
	}
}

// fieldsNamed are the values of all keys of a map that kustomize takes for a field: it reads keys without regard to case.
func fieldsNamed(fields map[string]any, name string) []any {
	var out []any
	for _, k := range sortedKeysOf(fields) {
		if strings.EqualFold(k, name) {
			out = append(out, fields[k])
		}
	}
	return out
}

func visitPaths(v any, f func(string)) {
	switch v := v.(type) {
	case string:
		f(v)
	case []any:
		for _, item := range v {
			visitPaths(item, f)
		}
	case map[string]any:
		for k, item := range v {
			if isPathKey(k) {
				visitPaths(item, f)
			}
		}
	}
}

// visitConfigs calls f for each remote reference anywhere in the configurations of generators, transformers and
// validators, in line or in files: they may have kustomize load files, too.
func visitConfigs(fields map[string]any, dir string, files map[string][]byte, f func(origin, ref string)) {
	for _, field := range []string{"generators", "transformers", "validators"} {
		visitPaths(fieldsNamed(fields, field), func(ref string) {
			if strings.Contains(ref, "\n") {
				visitConfig(text{origin: path.Join(dir, field), data: []byte(ref)}, f)
				return
			}
			at := path.Join(dir, ref)
			for name, data := range files {
				if name == at || strings.HasPrefix(name, at+"/") {
					visitConfig(text{origin: name, data: data}, f)
				}
			}
		})
	}
}

func visitConfig(t text, f func(origin, ref string)) {
	objects, err := decode([]text{t}, Limits{}.withDefaults())
	if err != nil {
		var e *Error
		if errors.As(err, &e) && isRemote(string(t.data)) {
			f(t.origin, e.Problem)
		}
		return // kustomize says what is wrong with it
	}
	for _, o := range objects {
		visitStrings(o.fields, "", func(_, ref string) {
			if _, file, ok := strings.Cut(ref, "="); ok && isRemote(file) || isRemote(ref) {
				f(t.origin, ref)
			}
		})
	}
}
