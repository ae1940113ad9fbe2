package render

import (
	"context"
	"slices"
	"sync"
)

// turns lets a bounded number of renderings go on at once. When one ends, the source with the fewest under way goes next, of
// those the one that has waited longest: max-min fairness over sources, whose renderings take as long as they take.
type turns struct {
	mu      sync.Mutex
	free    int
	running map[string]int
	waiting []*turn // the longest first
}

// turn is one that waits.
type turn struct {
	source string
	come   chan struct{} // closed when it has come
}

func newTurns(n int) *turns { return &turns{free: n, running: map[string]int{}} }

// begin waits for a turn for a source, as long as ctx lives; it returns the error of ctx otherwise. If there is none, end is to be
// called.
func (t *turns) begin(ctx context.Context, source string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t.mu.Lock()
	if t.free > 0 {
		t.free--
		t.running[source]++
		t.mu.Unlock()
		return nil
	}
	w := &turn{source: source, come: make(chan struct{})}
	t.waiting = append(t.waiting, w)
	t.mu.Unlock()
	select {
	case <-w.come:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if at := slices.Index(t.waiting, w); at >= 0 {
		t.waiting = slices.Delete(t.waiting, at, at+1)
		return ctx.Err()
	}
	return nil // it came at the same time
}

// end gives the turn of a source to the next.
func (t *turns) end(source string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running[source]--; t.running[source] == 0 {
		delete(t.running, source)
	}
	if len(t.waiting) == 0 {
		t.free++
		return
	}
	next := 0
	for at, w := range t.waiting {
		if t.running[w.source] < t.running[t.waiting[next].source] {
			next = at
		}
	}
	w := t.waiting[next]
	t.waiting = slices.Delete(t.waiting, next, next+1)
	t.running[w.source]++
	close(w.come)
}
