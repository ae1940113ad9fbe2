// Package journal remembers, in the control plane's API, which modules are being changed in which runtimes, so that a process that
// ends in the middle of a change, however it ends, leaves word of it.
//
// # Overview
//
// The status of a Kyma vouches by a digest for what is in a runtime. Before the first write of other input there, Begin puts the module
// into the journal; once a status that is true again has been written, the entry is ended. Whoever starts, or takes runtimes over from
// another process, finds the entries that were left by Load and looks into those runtimes.
//
// Many changes begin at the same time, so they are committed in groups: what comes while one write is under way goes into the next.
// Each write makes a segment: a small ConfigMap with a line for each module, which is deleted when all of them have ended. So a write
// costs what is new in it, however much the journal has, and processes do not disturb each other. Where an old change does not come to its end,
// few lines hold up a segment; segments of which little is left are merged.
//
// After runtimes have gone to another process, or come from one, segments are shared: each process takes out the lines of its own, with
// a guarded write, and what it begins anew goes into a segment of its own.
//
// # Invariants
//
//   - When Begin returns without an error, the entry is in the API.
//   - An entry leaves the API only after it was ended, by whoever began it last, or forgotten. A line that arrives later than all of
//     that stays until the next Load, and costs a look.
//   - What is in the journal without need costs one look, and nothing else: when in doubt, an entry stays.
//
// # Imports
//
// The package may import the api module, apimachinery, controller-runtime's client and golang.org/x/time/rate.
package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// Segments are named with a prefix and a random number, and have Label with the value "segment".
const (
	prefix  = "mothership-journal-"
	Label   = v1beta2.Group + "/journal"
	labelIs = "segment"
	// dataKey of a segment's lines.
	dataKey = "modules"
)

// Slot is a part of the fleet that one process has at a time.
type Slot = uint16

// Entry names a module of a runtime.
type Entry struct {
	Runtime types.NamespacedName
	Module  string
}

// Options of New.
type Options struct {
	// Reader reads the segments past all caches, Writer writes them. Needed.
	Reader client.Reader
	Writer client.Writer
	// Namespace of the segments. Needed.
	Namespace string
	// SlotOf is the slot of a runtime. Needed.
	SlotOf func(runtime types.NamespacedName) Slot
	// Owns says whether this process works on a runtime: not before what is left in the journal of it was loaded. What others work on is
	// not touched. Default: it works on all.
	Owns func(runtime types.NamespacedName) bool
}

// Journal is the journal of this process's part of the fleet. It is safe for concurrent use.
type Journal struct {
	o    Options
	kick chan struct{} // tells Run that something is to be written

	mu       sync.Mutex
	entries  map[Entry]*entry
	segments map[string]*segment // by name
	queue    []*entry            // to be written
	begun    uint64
	ended    bool
}

// entry is one that was begun and not ended. Journal.mu guards it.
type entry struct {
	Entry
	// last numbers the last Begin: only that can end it.
	last uint64
	// in is the segment that has it in the API; nil while none has.
	in *segment
	// queued says that it is in Journal.queue, or in a write under way; removed that it is no longer in Journal.entries.
	queued, removed bool
	// settled says that the change has come to its end, which the status does not say yet.
	settled bool
	// waiting are told when it is in the API, or cannot be written.
	waiting []chan error
}

// segment is a ConfigMap of the API, as far as its lines are of this process. Journal.mu guards it.
type segment struct {
	name string
	// live are the entries that it has for us, over the lines that can go.
	live, over int
	// seen is what over was when it was looked at last.
	seen int
	// shared says that other processes may have entries in it, too.
	shared bool
}

// New makes an empty Journal. Nothing is written before Run.
func New(o Options) *Journal {
	if o.Owns == nil {
		o.Owns = func(types.NamespacedName) bool { return true }
	}
	return &Journal{o: o, kick: make(chan struct{}, 1), entries: map[Entry]*entry{}, segments: map[string]*segment{}}
}

// Why nothing is written.
var (
	errClosed   = errors.New("the journal is closed")
	errNotOwned = errors.New("another replica has the runtime")
	errGone     = errors.New("the runtime is gone")
	errOver     = errors.New("the change has come to its end")
)

// Begin notes that a module is about to be changed, and returns when the API has it; at once where it had. end says that the status
// tells the truth again: it has no effect once Begin was called again for the same entry, and may be called more than once. An error
// means that it may not be known, and the change must not begin.
func (j *Journal) Begin(ctx context.Context, e Entry) (end func(), err error) {
	if !j.o.Owns(e.Runtime) {
		return nil, fmt.Errorf("writing the journal: %w", errNotOwned)
	}
	end, wait := j.enter(e)
	if wait == nil {
		return end, nil
	}
	j.wake()
	select {
	case err = <-wait:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err == nil && !j.o.Owns(e.Runtime) {
		err = errNotOwned // meanwhile: whoever has it has not seen the entry
	}
	if err != nil {
		return nil, fmt.Errorf("writing the journal: %w", err)
	}
	return end, nil
}

// wake tells Run that something is to be written.
func (j *Journal) wake() {
	select {
	case j.kick <- struct{}{}:
	default: // it is known already
	}
}

// enter adds an entry. wait is nil if the API has it.
func (j *Journal) enter(e Entry) (end func(), wait chan error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	known := j.entries[e]
	if known == nil {
		known = &entry{Entry: e}
		j.entries[e] = known
	}
	j.begun++
	known.last, known.settled = j.begun, false
	end = j.ending(e, known.last)
	if known.in != nil && !known.in.shared { // a shared one may be written to by somebody who does not know
		return end, nil
	}
	wait = make(chan error, 1)
	if j.ended {
		wait <- errClosed
		return end, wait
	}
	known.waiting = append(known.waiting, wait)
	j.enqueue(known)
	return end, wait
}

// enqueue has an entry written with the next write. The lock is held.
func (j *Journal) enqueue(e *entry) {
	if !e.queued {
		e.queued = true
		j.queue = append(j.queue, e)
	}
}

// Ending is how to end an entry that is there, as if it had been begun now; nil if there is none, or whoever began it knows how it ends.
func (j *Journal) Ending(e Entry) (end func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	known := j.entries[e]
	if known == nil || known.settled {
		return nil
	}
	j.begun++
	known.last = j.begun
	return j.ending(e, known.last)
}

// Settle says that a change has come to its end, and that whoever made it knows what to. The entry stays for others, who do not, until
// it is ended; to this process the module is in the journal no more, unless something is begun again.
func (j *Journal) Settle(e Entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if known := j.entries[e]; known != nil {
		known.settled = true
	}
}

func (j *Journal) ending(e Entry, begun uint64) func() {
	return func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		if known := j.entries[e]; known != nil && known.last == begun {
			j.finish(known, errOver)
		}
	}
}

// finish takes an entry out, of which the API needs no line any more. The lock is held.
func (j *Journal) finish(e *entry, why error) {
	j.remove(e, why)
	if e.in != nil {
		e.in.over++
	}
}

// remove takes an entry out, and tells those who wait for it why. The lock is held.
func (j *Journal) remove(e *entry, why error) {
	e.removed = true
	delete(j.entries, e.Entry)
	e.tell(why)
	if e.in != nil {
		e.in.live--
	}
}

// tell ends the waiting for an entry. The lock is held.
func (e *entry) tell(err error) {
	for _, wait := range e.waiting {
		wait <- err // it has room
	}
	e.waiting = nil
}

// Has says whether a module is in the journal, and what became of it is not known here.
func (j *Journal) Has(e Entry) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	known := j.entries[e]
	return known != nil && !known.settled
}

// Len is the number of entries.
func (j *Journal) Len() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.entries)
}

// Forget drops all entries of a runtime that is gone.
func (j *Journal) Forget(runtime types.NamespacedName) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.entries {
		if e.Runtime == runtime {
			j.finish(e, errGone)
		}
	}
}

// Leave drops all entries of slots that another process has now, in whose hands they are. It may have found lines of any segment that is
// there, also such as have ended here.
func (j *Journal) Leave(has func(Slot) bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, s := range j.segments {
		s.shared = true
	}
	for _, e := range j.entries {
		if has(j.o.SlotOf(e.Runtime)) {
			j.remove(e, errNotOwned)
		}
	}
}

// page is how many segments are read at a time.
const page = 500

// Load reads what was left of some slots, before anything of them is worked on, and returns it. What was known of them before is forgotten.
func (j *Journal) Load(ctx context.Context, has func(Slot) bool) ([]Entry, error) {
	j.Leave(has)
	var out []Entry
	list := &corev1.ConfigMapList{}
	for more := true; more; more = list.Continue != "" {
		options := []client.ListOption{client.InNamespace(j.o.Namespace), client.MatchingLabels{Label: labelIs}, client.Limit(page), client.Continue(list.Continue)}
		list = &corev1.ConfigMapList{}
		if err := j.o.Reader.List(ctx, list, options...); err != nil {
			return out, fmt.Errorf("reading the journal: %w", err)
		}
		for i := range list.Items {
			out = append(out, j.load(&list.Items[i], has)...)
		}
	}
	return out, nil
}

// load takes the entries of some slots from a segment.
func (j *Journal) load(m *corev1.ConfigMap, has func(Slot) bool) (out []Entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range parse(m.Data[dataKey]) {
		if !has(j.o.SlotOf(e.Runtime)) {
			continue
		}
		out = append(out, e)
		s := j.segments[m.Name]
		if s == nil {
			s = &segment{name: m.Name}
			j.segments[m.Name] = s
		}
		s.shared = true
		switch known := j.entries[e]; {
		case known == nil:
			j.entries[e] = &entry{Entry: e, in: s}
			s.live++
		case known.in != s: // another has it too, or will have
			s.over++
		}
	}
	return out
}

// format is some entries, a line each, sorted.
func format(list []Entry) string {
	lines := make([]string, len(list))
	for i, e := range list {
		lines[i] = e.Runtime.Namespace + "/" + e.Runtime.Name + "/" + e.Module
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// parse reads what format wrote. Lines that are something else are left out: nobody else writes here.
func parse(text string) []Entry {
	var out []Entry
	for line := range strings.Lines(text) {
		parts := strings.Split(strings.TrimSpace(line), "/")
		if len(parts) == 3 {
			out = append(out, Entry{types.NamespacedName{Namespace: parts[0], Name: parts[1]}, parts[2]})
		}
	}
	return out
}

// Bounds of writing.
const (
	// callTimeout is the deadline of one write.
	callTimeout = 15 * time.Second
	// perSecond is how many segments are written a second where many changes begin, and atOnce how many without a pause: in a wave, a segment
	// has more lines, and the API has the less to do.
	perSecond = 25
	atOnce    = 10
	// lazily is how often what was ended is taken out of the API.
	lazily = 2 * time.Second
	// farewell bounds the last writes.
	farewell = 5 * time.Second
	// mostLines is how many entries a segment has at most.
	mostLines = 500
	// fewLines is how many entries are few for a segment, and mostSparse how many segments with few there may be.
	fewLines   = 8
	mostSparse = 64
	// mostOver is how many lines more than entries a segment may have while entries in it still end.
	mostOver = 64
)
