package lint

import (
	"cmp"
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/kyma-project/mothership/internal/bundle"
	"github.com/kyma-project/mothership/internal/catalog/artifact"
)

// templates fetches and renders each template with its own values.
func (l *linter) templates(ctx context.Context) {
	for i := range l.entries {
		e := &l.entries[i]
		if e.Template == nil || l.refused[e] || artifact.RefOf(&e.Template.Spec.Source) == nil {
			continue
		}
		if ctx.Err() != nil {
			l.addf(e, Error, "it was not looked at: %v", context.Cause(ctx))
			return
		}
		l.pinned(e)
		if e.Template.Spec.Reconciler != "" {
			continue // what becomes of the source is its reconciler's business
		}
		r, err := l.o.Render(ctx, e.Template)
		if err != nil {
			l.addf(e, Error, "%v", err)
			continue
		}
		l.rendered[e.Template.Name] = r
		for _, w := range r.Warnings {
			l.addf(e, Warning, "%s", w)
		}
	}
}

var commit = regexp.MustCompile(`^[0-9a-f]{40}$`)

// pinned warns of a source that may be another tomorrow.
func (l *linter) pinned(e *artifact.Entry) {
	ref := artifact.RefOf(&e.Template.Spec.Source)
	switch {
	case artifact.IsLocal(ref), ref.Digest != "",
		ref.Git != nil && commit.MatchString(ref.Git.Ref),
		ref.OCI != nil && ref.OCI.Digest != "":
		return
	}
	l.addf(e, Warning, "its source is not pinned, so that it may be another tomorrow: set source.….digest, or for Git a commit")
}

// maxShared bounds how many objects of two modules are named.
const maxShared = 5

// shared reports objects that two modules ship, whatever their versions: the second to come would be refused.
func (l *linter) shared() {
	owners := map[bundle.Ref]map[string]*artifact.Entry{} // by object, then by module
	for i := range l.entries {
		t := l.entries[i].Template
		if t == nil || l.rendered[t.Name] == nil {
			continue
		}
		for _, ref := range l.rendered[t.Name].Objects {
			if owners[ref] == nil {
				owners[ref] = map[string]*artifact.Entry{}
			}
			if owners[ref][t.Spec.ModuleName] == nil {
				owners[ref][t.Spec.ModuleName] = &l.entries[i]
			}
		}
	}
	pairs := map[[2]string][]string{}
	at := map[[2]string]*artifact.Entry{}
	for ref, modules := range owners {
		names := slices.Sorted(maps.Keys(modules))
		for _, later := range names[1:] {
			pair := [2]string{names[0], later}
			pairs[pair], at[pair] = append(pairs[pair], ref.String()), modules[later]
		}
	}
	for _, pair := range slices.SortedFunc(maps.Keys(pairs), func(a, b [2]string) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) }) {
		l.conflict(at[pair], pair[0], pairs[pair])
	}
}

func (l *linter) conflict(e *artifact.Entry, with string, objects []string) {
	slices.Sort(objects)
	more := ""
	if len(objects) > maxShared {
		objects, more = objects[:maxShared], " …"
	}
	l.addf(e, Error, "module %q ships the same: %s%s: two modules cannot have one object", with, strings.Join(objects, ", "), more)
}

// ObjectsOf are the objects of a bundle that modules may not share.
func ObjectsOf(refs []bundle.Ref) []bundle.Ref {
	return slices.DeleteFunc(refs, func(r bundle.Ref) bool { return r.Kind == "Namespace" && r.Group == "" })
}
