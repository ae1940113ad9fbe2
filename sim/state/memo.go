package state

import (
	"crypto/sha256"
	"sync"
	"sync/atomic"

	"github.com/kyma-project/mothership/sim/content"
	"github.com/kyma-project/mothership/sim/schema"
)

// step is a transformation of one content into another. Steps that are equal have equal results in every cluster.
type step struct {
	live      *content.Content // nil at creation
	version   *schema.Version
	sub       schema.Subresource
	verb      string
	namespace string
	name      string
	manager   string
	force     bool
	body      [sha256.Size]byte
}

// memo remembers the results of steps, the most recent ones: when the young generation is full, the old one is forgotten.
type memo struct {
	hits, calls atomic.Uint64

	mu         sync.Mutex
	limit      int
	young, old map[step]outcome
}

func newMemo(limit int) *memo {
	return &memo{limit: max(limit/2, 1), young: map[step]outcome{}, old: map[step]outcome{}}
}

// do returns the result of a step, computed by compute unless it is remembered. Errors are not remembered.
func (m *memo) do(s step, compute func() (outcome, error)) (outcome, error) {
	m.calls.Add(1)
	if out, ok := m.get(s); ok {
		m.hits.Add(1)
		return out, nil
	}
	out, err := compute()
	if err == nil {
		m.put(s, out)
	}
	return out, err
}

func (m *memo) get(s step) (outcome, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if out, ok := m.young[s]; ok {
		return out, true
	}
	out, ok := m.old[s]
	if ok {
		m.keep(s, out)
	}
	return out, ok
}

func (m *memo) put(s step, out outcome) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keep(s, out)
}

// keep needs the lock.
func (m *memo) keep(s step, out outcome) {
	if len(m.young) >= m.limit {
		m.young, m.old = make(map[step]outcome, m.limit/8), m.young
	}
	m.young[s] = out
}
