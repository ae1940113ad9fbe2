package catalog

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// Store is the catalogues of all namespaces, in memory. Objects given to it must not be changed afterwards. It is safe for
// concurrent use; the zero value is not usable: see NewStore.
type Store struct {
	mu     sync.RWMutex
	spaces map[string]*space
}

// space is one namespace's catalogue.
type space struct {
	releases  map[string][]*v1beta2.ModuleReleaseMeta // by module, sorted by name
	templates map[string]map[string]*v1beta2.ModuleTemplate
}

// NewStore is an empty one.
func NewStore() *Store { return &Store{spaces: map[string]*space{}} }

// PutTemplate adds or replaces a template.
func (s *Store) PutTemplate(t *v1beta2.ModuleTemplate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	versions := s.space(t.Namespace).templates
	if versions[t.Spec.ModuleName] == nil {
		versions[t.Spec.ModuleName] = map[string]*v1beta2.ModuleTemplate{}
	}
	versions[t.Spec.ModuleName][t.Spec.Version] = t
}

// DropTemplate removes a template.
func (s *Store) DropTemplate(t *v1beta2.ModuleTemplate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	versions := s.space(t.Namespace).templates
	delete(versions[t.Spec.ModuleName], t.Spec.Version)
	if len(versions[t.Spec.ModuleName]) == 0 {
		delete(versions, t.Spec.ModuleName)
	}
}

// PutRelease adds or replaces a release. Of two for one module, the one whose name comes first counts, whatever the order in
// which they come and go.
func (s *Store) PutRelease(r *v1beta2.ModuleReleaseMeta) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sp := s.space(r.Namespace)
	sp.drop(r.Name) // it may have been of another module before
	list := append(slices.Clone(sp.releases[r.Spec.ModuleName]), r)
	slices.SortFunc(list, func(a, b *v1beta2.ModuleReleaseMeta) int { return cmp.Compare(a.Name, b.Name) })
	sp.releases[r.Spec.ModuleName] = list
}

// DropRelease removes a release.
func (s *Store) DropRelease(r *v1beta2.ModuleReleaseMeta) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.space(r.Namespace).drop(r.Name)
}

// drop removes a release by name; the lock is held.
func (sp *space) drop(name string) {
	for module, list := range sp.releases {
		kept := slices.DeleteFunc(slices.Clone(list), func(r *v1beta2.ModuleReleaseMeta) bool { return r.Name == name })
		sp.releases[module] = kept
		if len(kept) == 0 {
			delete(sp.releases, module)
		}
	}
}

// space is a namespace's; the lock is held.
func (s *Store) space(namespace string) *space {
	if s.spaces[namespace] == nil {
		s.spaces[namespace] = &space{releases: map[string][]*v1beta2.ModuleReleaseMeta{}, templates: map[string]map[string]*v1beta2.ModuleTemplate{}}
	}
	return s.spaces[namespace]
}

// In is the catalogue of a namespace. It shows what the store has at each call.
func (s *Store) In(namespace string) Catalog { return view{s, namespace} }

type view struct {
	store     *Store
	namespace string
}

// read calls with the namespace's catalogue, which is empty where there is none.
func (v view) read(f func(*space)) {
	v.store.mu.RLock()
	defer v.store.mu.RUnlock()
	if s := v.store.spaces[v.namespace]; s != nil {
		f(s)
	}
}

// Release implements Catalog.
func (v view) Release(module string) (out *v1beta2.ModuleReleaseMeta) {
	v.read(func(s *space) {
		if list := s.releases[module]; len(list) > 0 {
			out = list[0]
		}
	})
	return out
}

// Template implements Catalog.
func (v view) Template(module, version string) (out *v1beta2.ModuleTemplate) {
	v.read(func(s *space) { out = s.templates[module][version] })
	return out
}

// Versions implements Catalog.
func (v view) Versions(module string) (out []string) {
	v.read(func(s *space) { out = slices.Collect(maps.Keys(s.templates[module])) })
	slices.SortFunc(out, func(a, b string) int { return cmp.Or(compareVersions(b, a), cmp.Compare(a, b)) })
	return out
}

// Modules implements Catalog.
func (v view) Modules() (out []string) {
	v.read(func(s *space) {
		out = slices.AppendSeq(slices.Collect(maps.Keys(s.templates)), maps.Keys(s.releases))
	})
	slices.Sort(out)
	return slices.Compact(out)
}

// Mandatory implements Catalog.
func (v view) Mandatory() (out []*v1beta2.ModuleReleaseMeta) {
	v.read(func(s *space) {
		for _, list := range s.releases {
			if list[0].Spec.Mandatory != nil {
				out = append(out, list[0])
			}
		}
	})
	slices.SortFunc(out, func(a, b *v1beta2.ModuleReleaseMeta) int { return cmp.Compare(a.Spec.ModuleName, b.Spec.ModuleName) })
	return out
}
