// Package fleet holds the small things that the controllers share: how a module on a runtime is named in the engine, which
// of them must be looked at because something may have changed behind our back, and which Kyma has which cluster.
//
// It may import the engine and apimachinery. It talks to nobody, and forgets everything at a restart: what it knows can be
// found again.
package fleet

import (
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kyma-project/mothership/internal/engine"
)

// RuntimeKey names a runtime in the engine, and by that its verification. A Kyma has the name of its Runtime.
func RuntimeKey(runtime types.NamespacedName) engine.Key {
	return engine.Key{Runtime: runtime.String()}
}

// ModuleKey names a module of a runtime in the engine.
func ModuleKey(runtime types.NamespacedName, module string) engine.Key {
	return engine.Key{Runtime: runtime.String(), Component: module}
}

// RuntimeOf is the runtime that a key is of.
func RuntimeOf(k engine.Key) types.NamespacedName {
	namespace, name, _ := strings.Cut(k.Runtime, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// Suspects are modules that may not be in the runtime what their digests say: somebody changed something there, or a person
// asked for a look. The zero value has none. It is safe for concurrent use.
type Suspects struct {
	mu    sync.Mutex
	keys  map[engine.Key]struct{}
	asked map[types.NamespacedName]string
}

// Add makes a module a suspect.
func (s *Suspects) Add(k engine.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys == nil {
		s.keys = map[engine.Key]struct{}{}
	}
	s.keys[k] = struct{}{}
}

// Has says whether a module is a suspect.
func (s *Suspects) Has(k engine.Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, is := s.keys[k]
	return is
}

// Take says whether a module is a suspect; it is none afterwards. Whoever takes it adds it again if it could not look.
func (s *Suspects) Take(k engine.Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, is := s.keys[k]
	delete(s.keys, k)
	return is
}

// Asked says whether a Kyma's request to look at everything is another than the last time. The first one that is seen after a start
// is taken for old.
func (s *Suspects) Asked(kyma types.NamespacedName, request string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked == nil {
		s.asked = map[types.NamespacedName]string{}
	}
	last, seen := s.asked[kyma]
	s.asked[kyma] = request
	return seen && last != request
}

// Forget drops what is kept of a Kyma.
func (s *Suspects) Forget(kyma types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.asked, kyma)
	for k := range s.keys {
		if RuntimeOf(k) == kyma {
			delete(s.keys, k)
		}
	}
}

// Claims say which Kyma has which cluster. The zero value has none. It is safe for concurrent use.
type Claims struct {
	mu     sync.Mutex
	owners map[string]types.NamespacedName
	has    map[types.NamespacedName]string
}

// Claim takes a cluster for a Kyma, which gives up any other that it had, and returns who has it: the first to claim it has it until
// it is released.
func (c *Claims) Claim(uid string, kyma types.NamespacedName) (owner types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.owners == nil {
		c.owners, c.has = map[string]types.NamespacedName{}, map[types.NamespacedName]string{}
	}
	if owner, taken := c.owners[uid]; taken {
		return owner
	}
	if before, ok := c.has[kyma]; ok {
		delete(c.owners, before)
	}
	c.owners[uid], c.has[kyma] = kyma, uid
	return kyma
}

// Release gives up what a Kyma has.
func (c *Claims) Release(kyma types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if uid, ok := c.has[kyma]; ok {
		delete(c.owners, uid)
		delete(c.has, kyma)
	}
}
