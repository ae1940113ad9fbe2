package render

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// What a rendering gets that runs into the bounds time after time: after maxStrikes in a row, what is rendered the same way waits for
// leastBan, and each further one doubles that up to mostBan. After maxStrikes different ones in a row, the source does.
const (
	maxStrikes = 3
	leastBan   = time.Minute
	mostBan    = 10 * time.Minute
	// maxSources bounds how many sources are remembered without anything under way, maxInputs how many renderings of each.
	maxSources = 1_000
	maxInputs  = 100
)

// turns lets a bounded number of renderings go on at once. When one ends, the source with the fewest under way goes next, of
// those the one whose last began longest ago: max-min fairness over sources, whose renderings take as long as they take. What
// ran into the bounds several times in a row is refused for a while.
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
	last             uint64 // when its last rendering began, as the number of those before
	whole            record // of different renderings
	inputs           map[string]*record
}

// record is how often something ran into the bounds in a row.
type record struct {
	strikes int
	last    uint64    // how many renderings had begun at the last
	until   time.Time // it is refused
	kind    error     // of the last: a sentinel
}

// turn is one that waits.
type turn struct {
	source string
	come   chan uint64 // gets the number of the rendering
}

func newTurns(n int) *turns { return &turns{free: n, sources: map[string]*standing{}} }

// begin waits for a turn for a source, as long as ctx lives; it returns the error of ctx otherwise, or *refusal if such renderings are
// refused; input tells them apart. If there is none, end is to be called with the number of the rendering.
func (t *turns) begin(ctx context.Context, source, input string) (number uint64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	t.mu.Lock()
	s := t.standing(source)
	if no := s.refusal(input); no != nil {
		t.mu.Unlock()
		return 0, no
	}
	if t.free > 0 {
		t.free--
		number = t.run(s)
		t.mu.Unlock()
		return number, nil
	}
	w := &turn{source: source, come: make(chan uint64, 1)}
	t.waiting, s.waiting = append(t.waiting, w), s.waiting+1
	t.mu.Unlock()
	select {
	case number = <-w.come:
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if at := slices.Index(t.waiting, w); at >= 0 {
		t.waiting, s.waiting = slices.Delete(t.waiting, at, at+1), s.waiting-1
		t.tidy()
		return 0, ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		t.pass(source)
		return 0, err
	}
	if no := s.refusal(input); no != nil { // since it began to wait
		t.pass(source)
		return 0, no
	}
	return number, nil
}

// end gives the turn of a source to the next. err is what the rendering ended with; the refusal is what follows from that, nil if nothing does.
func (t *turns) end(source, input string, number uint64, err error) *refusal {
	t.mu.Lock()
	defer t.mu.Unlock()
	no := t.sources[source].judge(input, number, t.begun, err)
	t.pass(source)
	return no
}

// pass gives the turn of a source to the next. The lock is held.
func (t *turns) pass(source string) {
	t.sources[source].running--
	defer t.tidy()
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
	w.come <- t.run(s)
}

// run counts a rendering that begins, and returns its number. The lock is held.
func (t *turns) run(s *standing) uint64 {
	t.begun++
	s.running, s.last = s.running+1, t.begun
	return t.begun
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
		s = &standing{inputs: map[string]*record{}}
		t.sources[source] = s
	}
	return s
}

// tidy drops sources of which nothing is known but when they had their last turn, once nobody waits for whom that decides. The lock is held.
func (t *turns) tidy() {
	if len(t.waiting) > 0 {
		return
	}
	many := len(t.sources) > maxSources
	for name, s := range t.sources {
		if s.running == 0 && (len(s.inputs) == 0 && s.whole.strikes == 0 || many && !s.whole.refused()) {
			delete(t.sources, name)
		}
	}
}

// refusal says why a rendering is refused at the moment; nil if it is not.
func (s *standing) refusal(input string) *refusal {
	if r := s.inputs[input]; r.refused() {
		return &refusal{kind: r.kind}
	}
	if s.whole.refused() {
		return &refusal{kind: s.whole.kind, source: true}
	}
	return nil
}

// judge counts a rendering, of which it is known when it began, that ran into the bounds. Any other answer lets bygones be bygones; what says
// nothing about the source counts for nothing.
func (s *standing) judge(input string, number, begun uint64, err error) *refusal {
	kind := boundOf(err)
	if kind == nil {
		if !errors.Is(err, errClosed) && !errors.Is(err, errStart) && !errors.Is(err, errLeft) {
			s.whole = record{}
			delete(s.inputs, input)
		}
		return nil
	}
	r := s.inputs[input]
	if r == nil {
		s.whole.strike(number, begun, kind)
		if r = new(record); len(s.inputs) < maxInputs {
			s.inputs[input] = r
		}
	}
	r.strike(number, begun, kind)
	return s.refusal(input)
}

// strike counts one, unless it began before the last was over: what fails at the same time may have one reason.
func (r *record) strike(number, begun uint64, kind error) {
	if number <= r.last {
		return
	}
	r.strikes, r.last, r.kind = r.strikes+1, begun, kind
	if r.strikes >= maxStrikes {
		r.until = time.Now().Add(min(mostBan, leastBan<<min(r.strikes-maxStrikes, 10)))
	}
}

func (r *record) refused() bool { return r != nil && time.Now().Before(r.until) }

// refusal says that something ran into a bound too often.
type refusal struct {
	kind   error
	source bool // different renderings of the source did
}

func (r *refusal) Error() string { return r.kind.Error() }

// follows is added to the message of what is refused.
func (r *refusal) follows() string {
	if r.source {
		return fmt.Sprintf(" %d renderings of this source with different values did so in a row: it is tried again within %s.", maxStrikes, mostBan)
	}
	return fmt.Sprintf(" It did so %d times in a row or more: it is tried again within %s.", maxStrikes, mostBan)
}

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
