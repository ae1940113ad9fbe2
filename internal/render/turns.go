package render

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// What a source gets whose renderings fail time after time: after maxStrikes of them in a row it waits for leastBan, and each further one
// doubles that up to mostBan.
const (
	maxStrikes = 3
	leastBan   = time.Minute
	mostBan    = 10 * time.Minute
	// maxSources bounds how many are remembered.
	maxSources = 1_000
)

// turns lets a bounded number of renderings go on at once. When one ends, the source with the fewest under way goes next, of
// those the one whose last began longest ago: max-min fairness over sources, whose renderings take as long as they take. A source that ran
// into the bounds several times in a row is refused for a while.
type turns struct {
	mu      sync.Mutex
	free    int
	begun   uint64
	sources map[string]*standing
	waiting []*turn // the longest first
}

// standing is what is known of a source.
type standing struct {
	running, waiting int
	last             uint64    // when its last rendering began, by the number of those before
	strikes          int       // renderings that ran into the bounds, in a row
	until            time.Time // it is refused
	kind             error     // of the last strike: a sentinel
}

// turn is one that waits.
type turn struct {
	source string
	come   chan struct{} // closed when it has come
}

func newTurns(n int) *turns { return &turns{free: n, sources: map[string]*standing{}} }

// begin waits for a turn for a source, as long as ctx lives; it returns the error of ctx otherwise, or *refusal. If there is
// none, end is to be called.
func (t *turns) begin(ctx context.Context, source string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t.mu.Lock()
	s := t.standing(source)
	if err := s.refused(); err != nil {
		t.mu.Unlock()
		return err
	}
	if t.free > 0 {
		t.free--
		t.run(s)
		t.mu.Unlock()
		return nil
	}
	w := &turn{source: source, come: make(chan struct{})}
	t.waiting, s.waiting = append(t.waiting, w), s.waiting+1
	t.mu.Unlock()
	select {
	case <-w.come:
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if at := slices.Index(t.waiting, w); at >= 0 {
		t.waiting, s.waiting = slices.Delete(t.waiting, at, at+1), s.waiting-1
		t.forget(source)
		return ctx.Err()
	}
	err := ctx.Err()
	if err == nil {
		err = s.refused() // since it began to wait
	}
	if err != nil {
		t.pass(source)
	}
	return err
}

// end gives the turn of a source to the next. err is what the rendering ended with; it says whether the source is refused from now on.
func (t *turns) end(source string, err error) (refused bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sources[source]
	s.judge(err)
	refused = s.refused() != nil
	t.pass(source)
	return refused
}

// pass gives the turn of a source to the next. The lock is held.
func (t *turns) pass(source string) {
	t.sources[source].running--
	t.forget(source)
	if len(t.waiting) == 0 {
		t.free++
		return
	}
	next := 0
	for at, w := range t.waiting {
		if t.sources[w.source].before(t.sources[t.waiting[next].source]) {
			next = at
		}
	}
	w := t.waiting[next]
	t.waiting = slices.Delete(t.waiting, next, next+1)
	s := t.sources[w.source]
	s.waiting--
	t.run(s)
	close(w.come)
}

// run counts a rendering that begins. The lock is held.
func (t *turns) run(s *standing) {
	t.begun++
	s.running, s.last = s.running+1, t.begun
}

// before says whether a source goes before another.
func (s *standing) before(o *standing) bool {
	if s.running != o.running {
		return s.running < o.running
	}
	return s.last < o.last
}

// standing is that of a source, which may be new. The lock is held.
func (t *turns) standing(source string) *standing {
	s := t.sources[source]
	if s == nil {
		if len(t.sources) >= maxSources {
			for name := range t.sources {
				t.sources[name].pardon()
				t.forget(name)
			}
		}
		s = &standing{}
		t.sources[source] = s
	}
	return s
}

// forget drops what is known of a source if that is nothing. The lock is held.
func (t *turns) forget(source string) {
	if s := t.sources[source]; s.running == 0 && s.waiting == 0 && s.strikes == 0 {
		delete(t.sources, source)
	}
}

// pardon forgets the strikes of a source that is not refused.
func (s *standing) pardon() {
	if !time.Now().Before(s.until) {
		s.strikes = 0
	}
}

// refused is *refusal if a source is refused for now, nil otherwise.
func (s *standing) refused() error {
	if time.Now().Before(s.until) {
		return &refusal{s.kind}
	}
	return nil
}

// judge counts a rendering that ran into the bounds. Any other answer lets bygones be bygones; what says nothing about the source counts
// for nothing.
func (s *standing) judge(err error) {
	switch kind := boundOf(err); {
	case kind != nil:
		s.strikes, s.kind = s.strikes+1, kind
		if s.strikes >= maxStrikes {
			s.until = time.Now().Add(min(mostBan, leastBan<<min(s.strikes-maxStrikes, 10)))
		}
	case !errors.Is(err, errClosed) && !errors.Is(err, errStart) && !errors.Is(err, errLeft):
		s.strikes = 0
	}
}

// refusal says that a source ran into a bound too often.
type refusal struct{ kind error }

func (r *refusal) Error() string { return r.kind.Error() }

// whatFollows is added to the message of a source that is refused.
var whatFollows = fmt.Sprintf(" It did so %d times in a row or more, and is tried again within %s.", maxStrikes, mostBan)

// errLeft says that nobody waits for a rendering any more.
var errLeft = errors.New("nobody waits for the rendering any more")

// boundOf is the sentinel of the bound that a rendering ran into, nil if it ran into none.
func boundOf(err error) error {
	if errors.Is(err, errStart) {
		return nil
	}
	for _, kind := range []error{ErrDeadline, ErrMemory, ErrCrash} {
		if errors.Is(err, kind) {
			return kind
		}
	}
	return nil
}
