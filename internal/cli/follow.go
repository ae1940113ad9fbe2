package cli

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// watchTimeout is how long one watch lasts, after which everything is read anew.
	watchTimeout = 10 * time.Minute
	// firstRewatch and lastRewatch are the shortest and longest pause before a watch that failed is begun again.
	firstRewatch = 500 * time.Millisecond
	lastRewatch  = 10 * time.Second
	// settle is how long changes are gathered before they are shown.
	settle = 50 * time.Millisecond
)

// follower keeps what a control plane has of some kinds. Its lock guards the objects.
type follower struct {
	fleet   *fleet
	lists   []client.ObjectList
	changed chan struct{} // holds one word
	failed  chan error

	mu      sync.Mutex
	objects []map[string]client.Object // by list and name
	listed  []bool
	watched []bool // at least once
}

// follow calls look with all objects of the lists' kinds, first when all are read, and again after changes, until look says that it
// has seen enough or fails, or the context ends. A failure to read or watch at the start is an error; later ones are tried again.
func (f *fleet) follow(ctx context.Context, lists []client.ObjectList, look func([]client.Object) (enough bool, err error)) error {
	w := &follower{
		fleet: f, lists: lists, changed: make(chan struct{}, 1), failed: make(chan error, len(lists)),
		objects: make([]map[string]client.Object, len(lists)), listed: make([]bool, len(lists)), watched: make([]bool, len(lists)),
	}
	watching, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	for i := range lists {
		running.Go(func() { w.keep(watching, i) })
	}
	defer running.Wait()
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-w.failed:
			return err
		case <-w.changed:
		}
		objects, complete := w.all()
		if !complete {
			continue
		}
		if enough, err := look(objects); enough || err != nil {
			return err
		}
		if !pause(ctx, settle) {
			return context.Cause(ctx)
		}
	}
}

// pause waits; false when the context ends first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// all are the objects, sorted by list and name, once every list was read.
func (w *follower) all() ([]client.Object, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []client.Object
	for i, objects := range w.objects {
		if !w.listed[i] {
			return nil, false
		}
		start := len(out)
		for _, obj := range objects {
			out = append(out, obj)
		}
		slices.SortFunc(out[start:], func(a, b client.Object) int { return cmp.Compare(a.GetName(), b.GetName()) })
	}
	return out, true
}

// keep reads one kind and watches it, again and again until the context ends.
func (w *follower) keep(ctx context.Context, i int) {
	for wait := firstRewatch; ; {
		began := time.Now()
		err := w.once(ctx, i)
		w.mu.Lock()
		worked := w.watched[i]
		w.mu.Unlock()
		if err != nil && !worked {
			w.failed <- err
			return
		}
		if time.Since(began) > lastRewatch {
			wait = firstRewatch
		}
		if !pause(ctx, wait) {
			return
		}
		wait = min(2*wait, lastRewatch)
	}
}

// once reads all and watches until the watch ends.
func (w *follower) once(ctx context.Context, i int) error {
	list, ok := w.lists[i].DeepCopyObject().(client.ObjectList)
	if !ok {
		return nil // every list is one
	}
	if err := w.fleet.list(ctx, list); err != nil {
		return err
	}
	objects, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	all := map[string]client.Object{}
	for _, obj := range objects {
		if o, ok := obj.(client.Object); ok {
			all[o.GetName()] = o
		}
	}
	w.mu.Lock()
	w.objects[i], w.listed[i] = all, true
	w.mu.Unlock()
	w.tell()
	return w.watch(ctx, i, list)
}

func (w *follower) watch(ctx context.Context, i int, list client.ObjectList) error {
	ctx, cancel := context.WithTimeout(ctx, watchTimeout)
	defer cancel()
	seconds := int64(watchTimeout.Seconds())
	events, err := w.fleet.client.Watch(ctx, list, &client.ListOptions{
		Namespace: w.fleet.namespace, Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion(), TimeoutSeconds: &seconds},
	})
	if err != nil {
		return problemOfAPI("watching "+kindOf(list), err)
	}
	defer events.Stop()
	w.mu.Lock()
	w.watched[i] = true
	w.mu.Unlock()
	for e := range events.ResultChan() { // ends with the context
		obj, ok := e.Object.(client.Object)
		if !ok || e.Type == watch.Error {
			return nil // too old: everything is read anew
		}
		w.mu.Lock()
		if e.Type == watch.Deleted {
			delete(w.objects[i], obj.GetName())
		} else {
			w.objects[i][obj.GetName()] = obj
		}
		w.mu.Unlock()
		w.tell()
	}
	return nil
}

// tell says that something changed, unless that was said and not heard yet.
func (w *follower) tell() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}
