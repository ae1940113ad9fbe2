package lint

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/catalog"
	"github.com/kyma-project/mothership/internal/catalog/artifact"
)

// releases checks what a Kyma with all modules would be told, for each channel there is.
func (l *linter) releases() {
	store := catalog.NewStore()
	channels := map[string][]string{}
	for i := range l.entries {
		e := &l.entries[i]
		if e.Template != nil {
			t := *e.Template
			t.Namespace = ""
			store.PutTemplate(&t)
			continue
		}
		r := *e.Release
		r.Namespace, r.Spec.KymaSelector = "", nil
		store.PutRelease(&r)
		for _, c := range r.Spec.Channels {
			channels[c.Channel] = append(channels[c.Channel], r.Spec.ModuleName)
		}
	}
	all := store.In("")
	l.reported = map[string]bool{}
	channels[""] = nil // what is mandatory is there without any channel
	for _, channel := range slices.Sorted(maps.Keys(channels)) {
		l.channel(all, channel, channels[channel])
	}
	l.unreleased(all)
	l.needs(all)
}

// channel resolves a Kyma of all modules of a channel.
func (l *linter) channel(all catalog.Catalog, channel string, modules []string) {
	k := &v1beta2.Kyma{ObjectMeta: metav1.ObjectMeta{Name: "lint"}, Spec: v1beta2.KymaSpec{Channel: channel}}
	for _, name := range modules {
		k.Spec.Modules = append(k.Spec.Modules, v1beta2.Module{Name: name})
	}
	for _, m := range catalog.Resolve(k, all) {
		if m.Problem != nil && !l.reported[m.Name+m.Problem.Message] {
			l.reported[m.Name+m.Problem.Message] = true
			l.addf(l.releaseOf(m.Name), Error, "%s", m.Problem.Message)
		}
	}
}

func (l *linter) releaseOf(module string) *artifact.Entry {
	for i := range l.entries {
		if r := l.entries[i].Release; r != nil && r.Spec.ModuleName == module {
			return &l.entries[i]
		}
	}
	return nil
}

// unreleased warns of modules that no channel has.
func (l *linter) unreleased(all catalog.Catalog) {
	said := map[string]bool{}
	for i := range l.entries {
		t := l.entries[i].Template
		if t == nil || said[t.Spec.ModuleName] || all.Release(t.Spec.ModuleName) != nil {
			continue
		}
		said[t.Spec.ModuleName] = true
		l.addf(&l.entries[i], Warning, "module %q has no ModuleReleaseMeta, so no channel has it: Kymas must name its version", t.Spec.ModuleName)
	}
}

// needs reports needs for modules that there are not: who needs them waits for ever.
func (l *linter) needs(all catalog.Catalog) {
	for i := range l.entries {
		t := l.entries[i].Template
		if t == nil {
			continue
		}
		for _, need := range t.Spec.Needs {
			name, ok := strings.CutPrefix(need, v1beta2.FactModulePrefix)
			if ok && len(all.Versions(name)) == 0 {
				l.addf(&l.entries[i], Error, "it needs %s, but the catalogue has no module %q: it would wait for ever", need, name)
			}
		}
	}
}
