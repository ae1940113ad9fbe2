package sim

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kyma-project/mothership/sim/dial"
	"github.com/kyma-project/mothership/sim/state"
)

// Errors that callers of Server tell apart.
var (
	// ErrNotFound: there is no cluster of that name.
	ErrNotFound = errors.New("there is no such cluster")
	// ErrExists: there is one already.
	ErrExists = errors.New("the cluster exists already")
)

// runtime is one cluster and what is wrong with it.
type runtime struct {
	cluster  *state.Cluster
	dials    atomic.Pointer[dial.Dials]
	counters dial.Counters
}

var healthy dial.Dials

func newRuntime(c *state.Cluster) *runtime {
	r := &runtime{cluster: c}
	r.dials.Store(&healthy)
	return r
}

// fleet has the clusters by name.
type fleet struct {
	world *state.World

	mu       sync.RWMutex
	runtimes map[string]*runtime
}

func (f *fleet) get(name string) *runtime {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.runtimes[name]
}

// names are those of all clusters, sorted.
func (f *fleet) names() []string {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return slices.Sorted(maps.Keys(f.runtimes))
}

// add makes a cluster: a clone of another, or a new one if from is empty.
func (f *fleet) add(name, from string) error {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return fmt.Errorf("cluster name %q: %s", name, problems[0])
	}
	build := f.world.NewCluster
	if from != "" {
		template := f.get(from)
		if template == nil {
			return fmt.Errorf("cloning %s: %w", from, ErrNotFound)
		}
		build = template.cluster.Clone
	}
	c, err := build(name)
	if err != nil {
		return fmt.Errorf("making cluster %s: %w", name, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.runtimes[name] != nil {
		c.Close()
		return fmt.Errorf("making cluster %s: %w", name, ErrExists)
	}
	f.runtimes[name] = newRuntime(c)
	return nil
}

func (f *fleet) remove(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.runtimes[name]
	if r == nil {
		return fmt.Errorf("removing cluster %s: %w", name, ErrNotFound)
	}
	r.cluster.Close()
	delete(f.runtimes, name)
	return nil
}
