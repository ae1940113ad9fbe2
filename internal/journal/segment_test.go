package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	const lineEU, lineUS = "kcp-system/eu-1/istio", "kcp-system/us/istio"
	a, b, move := d.replicas()
	ends := d.enterAll(a, on("eu-1", "istio"), on("us", "istio"))
	move()
	a.Leave(us)
	d.load(b)
	ends[1]() // the old process has no say any more
	b.sweep(t.Context(), true)
	a.sweep(t.Context(), true)
	d.expect(lineEU+"\n"+lineUS, "nothing has ended")
	ends[0]()
	a.sweep(t.Context(), false)
	d.expect(lineUS, "the first has ended its change")
	if a.sweep(t.Context(), true); len(a.segments) > 0 {
		t.Errorf("a segment that has nothing of ours is remembered: %v", a.segments)
	}
	b.Ending(on("us", "istio"))()
	b.sweep(t.Context(), false)
	d.expect("", "both have ended")
}

// replicas are two processes, of which the first has everything until the runtime us goes to the second.
func (d *desk) replicas() (a, b *Journal, move func()) {
	var moved atomic.Bool
	a = d.closed(d.api, func(r types.NamespacedName) bool { return r.Name != "us" || !moved.Load() })
	b = d.closed(d.api, func(r types.NamespacedName) bool { return r.Name == "us" && moved.Load() })
	return a, b, func() { moved.Store(true) }
}

func us(s Slot) bool { return s == 2 }

// load has a process take over what is in the slot of the runtime us.
func (d *desk) load(j *Journal) {
	d.t.Helper()
	if left, err := j.Load(d.t.Context(), us); err != nil || len(left) == 0 {
		d.t.Fatal(left, err)
	}
}

// What was ended and not taken out yet when it went to another process is that one's: the first does not take it out any more.
func TestLineThatWasEndedGoesToo(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	a, b, move := d.replicas()
	ends := d.enterAll(a, on("eu-1", "istio"), on("us", "istio"))
	ends[1]()
	move()
	a.Leave(us)
	d.load(b)
	a.sweep(t.Context(), true)
	ends[0]()
	a.sweep(t.Context(), true)
	d.expect("kcp-system/us/istio", "the second process has found it")
	end := d.enterAll(b, on("us", "istio"))[0]
	b.sweep(t.Context(), true)
	d.expect("kcp-system/us/istio", "the second process has begun it")
	end()
	b.sweep(t.Context(), true)
	d.expect("", "all have ended")
}

// So is what was merged into another segment.
func TestMergedLineGoesToo(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	a, b, move := d.replicas()
	d.enterAll(a, on("us", "istio"))
	for i := range mostSparse {
		d.enterAll(a, on(fmt.Sprintf("eu-%d", i), "istio"))
	}
	a.merge()
	a.commit(t.Context())
	move()
	a.Leave(us)
	d.load(b)
	for _, j := range []*Journal{a, b, a, b} {
		j.sweep(t.Context(), true)
	}
	if got := parse(d.stored()); len(got) != mostSparse+1 || !slices.Contains(got, on("us", "istio")) {
		t.Errorf("stored are %v", got)
	}
}

// A process that has lost a runtime, and was not told so yet, takes nothing of it out.
func TestLostBeforeLeave(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	a, _, move := d.replicas()
	d.enterAll(a, on("us", "istio"))
	for i := range mostSparse {
		d.enterAll(a, on(fmt.Sprintf("eu-%d", i), "istio"))
	}
	move()
	a.merge()
	a.commit(t.Context())
	a.sweep(t.Context(), true)
	a.Leave(us)
	a.sweep(t.Context(), true)
	if !slices.Contains(parse(d.stored()), on("us", "istio")) {
		t.Error("a line of another process was taken out")
	}
}

// What was found and not worked on before the runtime went again is not relied on when it comes back.
func TestLoadForgets(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	a, b, _ := d.replicas()
	end := d.enterAll(a, on("us", "istio"))[0]
	d.load(b)
	end()
	a.sweep(t.Context(), true)
	if left, err := b.Load(t.Context(), us); err != nil || len(left) > 0 || b.Has(on("us", "istio")) {
		t.Error("what is there no more is remembered", left, err)
	}
}

// A segment that is found before the answer to its own write comes is one.
func TestLoadedWhileWritten(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var j *Journal
	j = d.closed(interceptor.NewClient(d.api, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.CreateOption) error {
		err := c.Create(ctx, obj, o...)
		d.load(j)
		return err
	}}), nil)
	_, wait := j.enter(on("us", "istio"))
	j.commit(t.Context())
	if err := <-wait; !errors.Is(err, errNotOwned) {
		t.Errorf("got %v", err)
	}
	j.sweep(t.Context(), true)
	d.expect("kcp-system/us/istio", "it was found")
	j.Ending(on("us", "istio"))()
	j.sweep(t.Context(), true)
	d.expect("", "it has ended")
}

// While nothing can be written, it is not tried without end, and nothing is remembered of tries that cannot have arrived.
func TestRefusedWritesRest(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	writes := 0
	j := d.closed(interceptor.NewClient(d.api, interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
		writes++
		return apierrors.NewForbidden(corev1.Resource("configmaps"), "x", errors.New("the quota is used up"))
	}}), nil)
	for i := range 3 * mostLines {
		j.enter(on(fmt.Sprintf("eu-%d", i), "istio"))
	}
	for range 3 {
		j.commit(t.Context())
		select {
		case <-j.kick:
			t.Fatal("it is tried again at once")
		default:
		}
	}
	if writes != 3 || len(j.segments) > 0 || len(j.queue) != 3*mostLines {
		t.Errorf("%d writes; %d segments are remembered; %d entries wait", writes, len(j.segments), len(j.queue))
	}
	j.retry()
	select {
	case <-j.kick:
	default:
		t.Error("it is never tried again")
	}
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
	if j.over(false); len(j.segments) > 0 {
		t.Error("a segment that was deleted is remembered")
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
	d.enterAll(j, on("us", "a"))
	if j.merge(); len(j.queue) > 0 {
		t.Error("few segments are merged")
	}
	j.Forget(on("us", "a").Runtime)
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
