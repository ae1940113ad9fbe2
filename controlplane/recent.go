package controlplane

import (
	"context"
	"sync"
	"time"

	"github.com/kyma-project/mothership/internal/source"
)

// localRecent is how old what was read of a local folder may be: thousands of runtimes that want it at the same time read it once.
const localRecent = 250 * time.Millisecond

// maxRecent bounds how many folders are remembered: beyond it, all are forgotten.
const maxRecent = 256

// recent remembers local paths for a moment. Others go to next, which has better ways to remember them.
func recent(next source.Fetcher, age time.Duration) source.Fetcher {
	r := &recently{next: next, age: age, reads: map[place]*read{}}
	return source.FetcherFunc(func(ctx context.Context, ref source.Ref) (*source.Tree, error) {
		if !ref.IsLocal() || ref.Path == source.Stdin {
			return next.Fetch(ctx, ref)
		}
		return r.fetch(ctx, ref)
	})
}

// place is what a read depends on.
type place struct {
	path, digest string
	kind         source.Kind
}

type recently struct {
	next source.Fetcher
	age  time.Duration

	mu    sync.Mutex
	reads map[place]*read
}

// read is one of a folder. Its lock is held while it is made, so that others wait for it.
type read struct {
	mu   sync.Mutex
	at   time.Time
	tree *source.Tree
}

func (r *recently) fetch(ctx context.Context, ref source.Ref) (*source.Tree, error) {
	one := r.of(place{ref.Path, ref.Digest, ref.Kind})
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.tree != nil && time.Since(one.at) < r.age {
		return one.tree, nil
	}
	at := time.Now() // what changes from now on may not be in it
	tree, err := r.next.Fetch(ctx, ref)
	if err != nil {
		one.tree = nil
		return nil, err
	}
	one.at, one.tree = at, tree
	return tree, nil
}

func (r *recently) of(p place) *read {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.reads) >= maxRecent && r.reads[p] == nil {
		clear(r.reads)
	}
	if r.reads[p] == nil {
		r.reads[p] = &read{}
	}
	return r.reads[p]
}
