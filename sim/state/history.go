package state

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kyma-project/mothership/sim/content"
	"github.com/kyma-project/mothership/sim/schema"
)

// change is what happened to one object.
type change struct {
	table *table
	now   record
	// before is what it said before; nil if it was made.
	before *content.Content
	gone   bool
}

// history has the last changes of a cluster, in order of resource versions. It needs the cluster's lock.
type history struct {
	changes []change
	// floor is the resource version before the first change that is remembered.
	floor uint32
	// news is closed at the next change; nil while nobody waits.
	news chan struct{}
	done bool
}

func (h *history) add(limit int, ch change) {
	if len(h.changes) >= 2*limit {
		drop := len(h.changes) - limit
		h.floor = h.changes[drop-1].now.version
		h.changes = append(make([]change, 0, 2*limit), h.changes[drop:]...)
	}
	h.changes = append(h.changes, ch)
	if h.news != nil {
		close(h.news)
		h.news = nil
	}
}

func (h *history) close() {
	h.done = true
	if h.news != nil {
		close(h.news)
		h.news = nil
	}
}

// Event is one event of a watch.
type Event struct {
	Type   watch.EventType
	Object Object
}

// Filter says what of a resource is meant.
type Filter struct {
	Namespace string
	Labels    labels.Selector
	// Fields says whether an object's fields are as wanted; nil for all.
	Fields func(*content.Content) bool
}

func (f *Filter) matches(c *content.Content) bool {
	if c == nil || f.Namespace != "" && c.Namespace != f.Namespace {
		return false
	}
	if f.Labels != nil && !f.Labels.Matches(labels.Set(c.Labels)) {
		return false
	}
	return f.Fields == nil || f.Fields(c)
}

// Watcher follows one resource. It is for one goroutine.
type Watcher struct {
	c      *Cluster
	kind   *schema.Kind
	filter Filter
	at     uint32
}

// Watch follows a resource after a resource version.
func (c *Cluster) Watch(v *schema.Version, f Filter, after uint64) *Watcher {
	return &Watcher{c: c, kind: v.Kind, filter: f, at: uint32(after)}
}

// Version is the resource version up to which events were given.
func (w *Watcher) Version() uint64 { return uint64(w.at) }

// Next gives the events since the last call, and a channel that is closed when there may be more; a nil channel says that the
// watch is over. A watch that fell behind what the cluster remembers is expired (apierrors.IsResourceExpired).
func (w *Watcher) Next() ([]Event, <-chan struct{}, error) {
	c := w.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.at < c.log.floor {
		return nil, nil, apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", w.at, c.log.floor+1))
	}
	if c.log.done {
		return nil, nil, nil
	}
	t := c.table(w.kind)
	var out []Event
	for _, ch := range c.log.after(w.at) {
		if ch.table == t {
			if e, ok := w.event(&ch); ok {
				out = append(out, e)
			}
		}
		w.at = ch.now.version
	}
	if c.log.news == nil {
		c.log.news = make(chan struct{})
	}
	return out, c.log.news, nil
}

// after are the changes since a resource version.
func (h *history) after(version uint32) []change {
	for i := len(h.changes); i > 0; i-- {
		if h.changes[i-1].now.version <= version {
			return h.changes[i:]
		}
	}
	return h.changes
}

// event is what a change looks like through the filter.
func (w *Watcher) event(ch *change) (Event, bool) {
	was, is := w.filter.matches(ch.before), !ch.gone && w.filter.matches(ch.now.content)
	e := Event{Object: w.c.object(ch.now)}
	switch {
	case is && was:
		e.Type = watch.Modified
	case is:
		e.Type = watch.Added
	case was:
		e.Type = watch.Deleted
	default:
		return e, false
	}
	if e.Type == watch.Deleted {
		e.Object.Content = ch.before
	}
	return e, true
}
