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
// The journal is one ConfigMap, with a key for each slot of runtimes that has entries. A write carries only the slots that changed,
// so that processes with different slots do not disturb each other.
//
// # Invariants
//
//   - When Begin returns without an error, the entry is in the API.
//   - An entry leaves the API only after it was ended, by whoever began it last, or forgotten.
//   - What is in the journal without need costs one look, and nothing else: when in doubt, an entry stays.
//
// # Imports
//
// The package may import apimachinery and controller-runtime's client.
package journal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Name of the ConfigMap.
const Name = "mothership-journal"

// Slot is a part of the fleet that one process has at a time.
type Slot = uint16

// Entry names a module of a runtime.
type Entry struct {
	Runtime types.NamespacedName
	Module  string
}

// Options of New.
type Options struct {
	// Reader reads the ConfigMap past all caches, Writer writes it. Needed.
	Reader client.Reader
	Writer client.Writer
	// Namespace of the ConfigMap. Needed.
	Namespace string
	// SlotOf is the slot of a runtime. Needed.
	SlotOf func(runtime types.NamespacedName) Slot
	// Owns says whether this process works on a runtime. What others work on is not written. Default: it works on all.
	Owns func(runtime types.NamespacedName) bool
}

// Journal is the journal of this process's part of the fleet. It is safe for concurrent use.
type Journal struct {
	o    Options
	kick chan struct{} // tells Run that somebody waits

	mu      sync.Mutex
	entries map[Entry]*entry
	// dirty are slots of which the API has something else than what is here, and for each a runtime that it is so for.
	dirty   map[Slot]types.NamespacedName
	waiting []chan error // for the next commit
	begun   uint64
	ended   bool
}

// entry is one that was begun and not ended. Journal.mu guards it.
type entry struct {
	// last numbers the last Begin: only that can end it.
	last uint64
	// durable says that the API has it.
	durable bool
	// settled says that the change has come to its end, which the status does not say yet.
	settled bool
}

// New makes an empty Journal. Nothing is written before Run.
func New(o Options) *Journal {
	if o.Owns == nil {
		o.Owns = func(types.NamespacedName) bool { return true }
	}
	return &Journal{o: o, kick: make(chan struct{}, 1), entries: map[Entry]*entry{}, dirty: map[Slot]types.NamespacedName{}}
}

// Why nothing is written.
var (
	errClosed   = errors.New("the journal is closed")
	errNotOwned = errors.New("another replica has the runtime")
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
	select {
	case j.kick <- struct{}{}:
	default: // it is known already
	}
	select {
	case err = <-wait:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err == nil && !j.o.Owns(e.Runtime) {
		err = errNotOwned // meanwhile, and it may not have been written
	}
	if err != nil {
		return nil, fmt.Errorf("writing the journal: %w", err)
	}
	return end, nil
}

// enter adds an entry. wait is nil if the API has it.
func (j *Journal) enter(e Entry) (end func(), wait chan error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	known := j.entries[e]
	if known == nil {
		known = &entry{}
		j.entries[e] = known
		j.dirty[j.o.SlotOf(e.Runtime)] = e.Runtime
	}
	j.begun++
	known.last, known.settled = j.begun, false
	end = j.ending(e, known.last)
	if known.durable {
		return end, nil
	}
	wait = make(chan error, 1)
	if j.ended {
		wait <- errClosed
		return end, wait
	}
	j.waiting = append(j.waiting, wait)
	return end, wait
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
			j.remove(e)
		}
	}
}

// remove takes an entry out; the API learns it by the next commit. The lock is held.
func (j *Journal) remove(e Entry) {
	delete(j.entries, e)
	j.dirty[j.o.SlotOf(e.Runtime)] = e.Runtime
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
	for e := range j.entries {
		if e.Runtime == runtime {
			j.remove(e)
		}
	}
}

// Leave drops all entries of slots that another process has now, in whose hands they are.
func (j *Journal) Leave(has func(Slot) bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for e := range j.entries {
		if has(j.o.SlotOf(e.Runtime)) {
			delete(j.entries, e)
		}
	}
	maps.DeleteFunc(j.dirty, func(s Slot, _ types.NamespacedName) bool { return has(s) })
}

// Load reads what was left of some slots, before anything of them is worked on, and returns it.
func (j *Journal) Load(ctx context.Context, has func(Slot) bool) ([]Entry, error) {
	var m corev1.ConfigMap
	err := j.o.Reader.Get(ctx, types.NamespacedName{Namespace: j.o.Namespace, Name: Name}, &m)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the journal: %w", err)
	}
	var out []Entry
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, text := range m.Data {
		for _, e := range parse(text) {
			if !has(j.o.SlotOf(e.Runtime)) {
				continue
			}
			out = append(out, e)
			if j.entries[e] == nil {
				j.entries[e] = &entry{durable: true}
			}
		}
	}
	return out, nil
}

// format is the entries of a slot, a line each, sorted.
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
	// lazily is how long the API may keep what was ended.
	lazily = 2 * time.Second
	// farewell bounds the last write.
	farewell = 5 * time.Second
)
