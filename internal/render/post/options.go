package post

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// Merge lays the options of a template over those for all modules: of two mirrors of the same place, two labels or two
// annotations of the same name, the template's counts; all else is added up. Neither is changed.
func Merge(all v1beta2.PostRender, template *v1beta2.PostRender) v1beta2.PostRender {
	if template == nil {
		return all
	}
	out := v1beta2.PostRender{
		ImageMirrors:     slices.Clone(template.ImageMirrors),
		ImageFields:      slices.Concat(all.ImageFields, template.ImageFields),
		ImagePullSecrets: slices.Concat(all.ImagePullSecrets, template.ImagePullSecrets),
		Labels:           over(all.Labels, template.Labels),
		Annotations:      over(all.Annotations, template.Annotations),
		Pods:             all.Pods || template.Pods,
	}
	for _, m := range all.ImageMirrors {
		if !slices.ContainsFunc(out.ImageMirrors, func(t v1beta2.ImageMirror) bool { return t.From == m.From }) {
			out.ImageMirrors = append(out.ImageMirrors, m)
		}
	}
	return out
}

func over(base, more map[string]string) map[string]string {
	if len(base)+len(more) == 0 {
		return nil
	}
	out := maps.Clone(base)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, more)
	return out
}

// IsZero says whether the options do nothing.
func IsZero(o v1beta2.PostRender) bool {
	return len(o.ImageMirrors)+len(o.ImagePullSecrets)+len(o.Labels)+len(o.Annotations) == 0
}

// Check says what is wrong with options, each problem by its field. Several are joined.
func Check(o v1beta2.PostRender) error {
	var errs []error
	problem := func(format string, args ...any) { errs = append(errs, fmt.Errorf("postRender."+format, args...)) }
	for i, m := range o.ImageMirrors {
		for field, value := range map[string]string{"from": m.From, "to": m.To} {
			if !isPlace(value) {
				problem("imageMirrors[%d].%s %q: it begins with a registry and has neither tag nor digest, such as quay.io/org", i, field, value)
			}
		}
	}
	for i, f := range o.ImageFields {
		if f.Kind == "" || !strings.HasPrefix(f.Path, "/") {
			problem("imageFields[%d]: it needs a kind, and a path that is a JSON pointer, such as /spec/image", i)
		}
	}
	for i, name := range o.ImagePullSecrets {
		if p := validation.IsDNS1123Subdomain(name); len(p) > 0 {
			problem("imagePullSecrets[%d] %q: %s", i, name, strings.Join(p, "; "))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(o.Labels)) {
		if p := append(keyProblems(k), validation.IsValidLabelValue(o.Labels[k])...); len(p) > 0 {
			problem("labels[%q]: %s", k, strings.Join(p, "; "))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(o.Annotations)) {
		if p := keyProblems(k); len(p) > 0 {
			problem("annotations[%q]: %s", k, strings.Join(p, "; "))
		}
	}
	return errors.Join(errs...)
}

// reserved are the owners of labels and annotations by which objects are found, kept or left out.
var reserved = []string{v1beta2.Group, "applyset.kubernetes.io", "helm.sh"}

func keyProblems(key string) []string {
	owner, _, ok := strings.Cut(key, "/")
	if ok && slices.Contains(reserved, owner) {
		return []string{owner + " is reserved: it decides how objects are treated"}
	}
	return validation.IsQualifiedName(strings.ToLower(key))
}

// placeForm is a registry, and parts of a repository's name.
var placeForm = regexp.MustCompile(`^[a-zA-Z0-9]([-.a-zA-Z0-9]*[a-zA-Z0-9])?(:[0-9]{1,5})?(/[a-z0-9]+([-._]+[a-z0-9]+)*)*/?$`)

func isPlace(s string) bool {
	host, _, _ := strings.Cut(s, "/")
	return placeForm.MatchString(s) && isRegistry(host)
}
