package controlplane

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/kyma-project/mothership/internal/source"
)

const (
	// maxRecent bounds how many local paths are remembered: beyond it, all are forgotten.
	maxRecent = 256
	// maxFiles bounds the folders that are remembered.
	maxFiles = 1000
	// unclear is how young a change may be for another one not to show in the time that the file system keeps.
	unclear = 100 * time.Millisecond
)

// recent remembers what was read of local paths for as long as nothing in them changes, by names, sizes and times: thousands of
// runtimes that want the same read it once. Others go to next, which has better ways to remember them.
func recent(next source.Fetcher) source.Fetcher {
	r := &recently{next: next, reads: map[place]*read{}}
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

	mu    sync.Mutex
	reads map[place]*read
}

// read is one of a path. Its lock is held while it is made, so that others wait for it.
type read struct {
	mu    sync.Mutex
	state [sha256.Size]byte
	tree  *source.Tree // nil: nothing is remembered
}

func (r *recently) fetch(ctx context.Context, ref source.Ref) (*source.Tree, error) {
	one := r.of(place{ref.Path, ref.Digest, ref.Kind})
	one.mu.Lock()
	defer one.mu.Unlock()
	before, known := stateOf(ref.Path)
	if one.tree != nil && known && one.state == before {
		return one.tree, nil
	}
	tree, err := r.next.Fetch(ctx, ref)
	one.tree = nil
	if err != nil {
		return nil, err
	}
	if after, _ := stateOf(ref.Path); known && after == before {
		one.tree, one.state = tree, before
	}
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

// stateOf names what is in a path, as far as the file system tells without reading it; false where that is not enough to notice every
// change: something was changed just now, leads elsewhere, or is a lot.
func stateOf(path string) (state [sha256.Size]byte, known bool) {
	l := look{now: time.Now()}
	info, err := os.Lstat(path)
	known = err == nil && l.at(path, info)
	return sha256.Sum256(l.seen), known
}

// look is a walk through a path.
type look struct {
	now   time.Time
	seen  []byte
	files int
}

// at notes what is at a path, and in it; false where that is unclear.
func (l *look) at(path string, info fs.FileInfo) bool {
	if l.files++; l.files > maxFiles || info.Mode()&fs.ModeSymlink != 0 || l.now.Sub(info.ModTime()) < unclear {
		return false
	}
	l.seen = append(append(l.seen, path...), 0)
	for _, n := range []uint64{uint64(info.Size()), uint64(info.ModTime().UnixNano()), uint64(info.Mode())} {
		l.seen = binary.LittleEndian.AppendUint64(l.seen, n)
	}
	if !info.IsDir() {
		return true
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return false
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !l.at(filepath.Join(path, e.Name()), info) {
			return false
		}
	}
	return true
}
