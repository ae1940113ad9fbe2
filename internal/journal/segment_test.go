package journal

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// closed is a journal that nothing runs, so that a test says when it writes.
func (d *desk) closed(w client.Writer, owns func(types.NamespacedName) bool) *Journal {
	return New(Options{Reader: d.api, Writer: w, Namespace: d.namespace, SlotOf: func(r types.NamespacedName) Slot { return Slot(len(r.Name)) }, Owns: owns})
}

// enterAll begins changes that go into one write.
func (d *desk) enterAll(j *Journal, list ...Entry) (ends []func()) {
	d.t.Helper()
	var waits []chan error
	for _, e := range list {
		end, wait := j.enter(e)
		ends, waits = append(ends, end), append(waits, wait)
	}
	j.commit(d.t.Context())
	for _, wait := range waits {
		if err := <-wait; err != nil {
			d.t.Fatal(err)
		}
	}
	return ends
}

func (d *desk) expect(want, why string) {
	d.t.Helper()
	if got := d.stored(); got != want {
		d.t.Errorf("%s: stored are %q, want %q", why, got, want)
	}
}

// Of a segment that two processes have lines in, each takes out its own.
func TestSegmentOfTwo(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	const eu, us = "kcp-system/eu-1/istio", "kcp-system/us/istio"
	var moved atomic.Bool
	a := d.closed(d.api, func(r types.NamespacedName) bool { return r.Name != "us" || !moved.Load() })
	b := d.closed(d.api, func(r types.NamespacedName) bool { return r.Name == "us" && moved.Load() })
	ends := d.enterAll(a, on("eu-1", "istio"), on("us", "istio"))

	moved.Store(true)
	a.Leave(func(s Slot) bool { return s == 2 })
	left, err := b.Load(t.Context(), func(s Slot) bool { return s == 2 })
	if err != nil || len(left) != 1 {
		t.Fatal(left, err)
	}
	end, wait := b.enter(on("us", "istio"))
	if wait != nil {
		t.Error("what the API has is to be written again")
	}
	ends[1]() // the old process has no say any more
	b.sweep(t.Context(), true)
	a.sweep(t.Context(), true)
	d.expect(eu+"\n"+us, "nothing has ended")
	ends[0]()
	a.sweep(t.Context(), false)
	d.expect(us, "the first has ended its change")
	if a.sweep(t.Context(), true); len(a.segments) > 0 {
		t.Errorf("a segment that has nothing of ours is remembered: %v", a.segments)
	}
	end()
	b.sweep(t.Context(), false)
	d.expect("", "both have ended")
}

// A segment that some lines stay in is written again when nothing more ends there.
func TestLastLines(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	j := d.closed(d.api, nil)
	ends := d.enterAll(j, on("eu-1", "a"), on("eu-1", "b"), on("eu-1", "c"))
	ends[0]()
	j.sweep(t.Context(), false)
	d.expect("kcp-system/eu-1/a\nkcp-system/eu-1/b\nkcp-system/eu-1/c", "more may end soon")
	ends[1]()
	j.sweep(t.Context(), false)
	j.sweep(t.Context(), false)
	d.expect("kcp-system/eu-1/c", "nothing more ends")
	ends[2]()
	j.sweep(t.Context(), false)
	d.expect("", "all have ended")
	if len(j.segments) == 1 {
		if j.over(false); len(j.segments) > 0 {
			t.Error("a segment that was deleted is remembered")
		}
	}
}

func TestSparseSegmentsAreMerged(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	j := d.closed(d.api, nil)
	const n = mostSparse + 1
	var ends []func()
	for i := range n {
		ends = append(ends, d.enterAll(j, on(fmt.Sprintf("eu-%d", i), "a"), on(fmt.Sprintf("eu-%d", i), "b"))...)
		ends[2*i]()
	}
	before := d.stored()
	j.merge()
	j.commit(t.Context())
	j.sweep(t.Context(), false)
	if segments := d.segments(); len(segments) != 1 || len(segments[0]) != n {
		t.Errorf("left of %q: %v", before, segments)
	}
	j.merge() // nothing to do
	if len(j.queue) > 0 {
		t.Error("few segments are merged")
	}
	for i := range n {
		ends[2*i+1]()
	}
	j.sweep(t.Context(), false)
	d.expect("", "all have ended")
}

// Where it is not known whether a write arrived, it is not counted on, and what came of it goes.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	lost := errors.New("the answer is lost")
	var fail atomic.Bool
	j := d.closed(interceptor.NewClient(d.api, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.CreateOption) error {
		err := c.Create(ctx, obj, o...)
		if fail.Load() {
			return lost
		}
		return err
	}}), nil)
	fail.Store(true)
	e := on("eu-1", "istio")
	_, wait := j.enter(e)
	j.commit(t.Context())
	if err := <-wait; !errors.Is(err, lost) {
		t.Errorf("got %v", err)
	}
	fail.Store(false)
	end := d.enterAll(j, e)[0]
	d.expect("kcp-system/eu-1/istio\nkcp-system/eu-1/istio", "two writes")
	j.sweep(t.Context(), false)
	d.expect("kcp-system/eu-1/istio", "what is not counted on goes")
	end()
	j.sweep(t.Context(), false)
	d.expect("", "all have ended")
}

// What is taken over while its segment is being deleted is written again.
func TestTakenOverWhileDeleted(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	e := on("eu-1", "istio")
	var j *Journal
	j = d.closed(interceptor.NewClient(d.api, interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.DeleteOption) error {
		if left, err := j.Load(ctx, func(Slot) bool { return true }); err != nil || len(left) != 1 {
			t.Errorf("loaded %v, %v", left, err)
		}
		return c.Delete(ctx, obj, o...)
	}}), nil)
	d.enterAll(j, e)[0]()
	j.sweep(t.Context(), false)
	d.expect("", "it was deleted")
	if !j.Has(e) {
		t.Error("what was found is not there")
	}
	j.commit(t.Context())
	d.expect("kcp-system/eu-1/istio", "it was written again")
}

// What waits when the process ends, or goes to another, is told.
func TestWaitersAreTold(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var owns atomic.Bool
	owns.Store(true)
	j := d.closed(d.api, func(types.NamespacedName) bool { return owns.Load() })
	_, left := j.enter(on("us", "a"))
	j.Leave(func(s Slot) bool { return s == 2 })
	_, gone := j.enter(on("us", "b"))
	j.Forget(on("us", "b").Runtime)
	_, foreign := j.enter(on("us", "c"))
	owns.Store(false)
	j.commit(t.Context())
	owns.Store(true)
	var late chan error
	for i := range mostLines + 1 {
		_, late = j.enter(on("us", fmt.Sprint(i)))
	}
	j.close(t.Context())
	for _, c := range []struct {
		wait chan error
		want error
	}{{left, errNotOwned}, {gone, errGone}, {foreign, errNotOwned}, {late, errClosed}} {
		if got := <-c.wait; !errors.Is(got, c.want) {
			t.Errorf("got %v, want %v", got, c.want)
		}
	}
	if n := len(parse(d.stored())); n != mostLines {
		t.Errorf("%d lines are stored, want %d", n, mostLines)
	}
}
