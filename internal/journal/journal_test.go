package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kyma-project/mothership/internal/infra/local/localtest"
)

func TestMain(m *testing.M) { os.Exit(localtest.Main(m)) }

// desk is a namespace of a real API server with a journal in it.
type desk struct {
	t         *testing.T
	api       client.WithWatch
	namespace string

	mu     sync.Mutex
	writes int
	refuse error
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	srv := localtest.Server(t)
	api, err := client.NewWithWatch(srv.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &desk{t: t, api: api, namespace: localtest.Namespace(t, srv)}
}

// open starts a journal of all.
func (d *desk) open() (*Journal, func()) {
	d.t.Helper()
	return d.openFor(nil)
}

// openFor starts a journal of some runtimes; its slots are the lengths of their names.
func (d *desk) openFor(owns func(types.NamespacedName) bool) (*Journal, func()) {
	d.t.Helper()
	counted := interceptor.NewClient(d.api, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.CreateOption) error {
		d.mu.Lock()
		d.writes++
		err := d.refuse
		d.mu.Unlock()
		if err != nil {
			return err
		}
		return c.Create(ctx, obj, o...)
	}})
	j := New(Options{
		Reader: d.api, Writer: counted, Namespace: d.namespace, SlotOf: func(r types.NamespacedName) Slot { return Slot(len(r.Name)) }, Owns: owns,
	})
	ctx, cancel := context.WithCancel(d.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- j.Run(ctx) }()
	return j, sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			d.t.Error(err)
		}
	})
}

// segments are the lines of each.
func (d *desk) segments() (out [][]Entry) {
	d.t.Helper()
	var list corev1.ConfigMapList
	if err := d.api.List(d.t.Context(), &list, client.InNamespace(d.namespace), client.MatchingLabels{Label: labelIs}); err != nil {
		d.t.Fatal(err)
	}
	for _, m := range list.Items {
		out = append(out, parse(m.Data[dataKey]))
	}
	return out
}

// stored are all lines, sorted.
func (d *desk) stored() string {
	d.t.Helper()
	return format(slices.Concat(d.segments()...))
}

func on(runtime, module string) Entry {
	return Entry{types.NamespacedName{Namespace: "kcp-system", Name: runtime}, module}
}

func (d *desk) begin(j *Journal, e Entry) (end func()) {
	d.t.Helper()
	end, err := j.Begin(d.t.Context(), e)
	if err != nil {
		d.t.Fatal(err)
	}
	return end
}

func TestEntryIsThereWhenBeginReturns(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	j, stop := d.open()
	defer stop()
	end := d.begin(j, on("eu-1", "istio"))
	d.begin(j, on("us", "istio"))
	if diff := cmp.Diff("kcp-system/eu-1/istio\nkcp-system/us/istio", d.stored()); diff != "" {
		t.Error(diff)
	}
	end()
	if j.Has(on("eu-1", "istio")) || !j.Has(on("us", "istio")) {
		t.Error("the wrong entry was ended")
	}
	stop() // which writes what is left
	if diff := cmp.Diff("kcp-system/us/istio", d.stored()); diff != "" {
		t.Error(diff)
	}
}

func TestNextProcessFindsWhatWasLeft(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	j, stop := d.open()
	d.begin(j, on("eu-1", "istio"))
	d.begin(j, on("us", "istio"))
	stop()

	next, stop := d.open()
	defer stop()
	got, err := next.Load(t.Context(), func(s Slot) bool { return s == 4 })
	if diff := cmp.Diff([]Entry{on("eu-1", "istio")}, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if next.Has(on("us", "istio")) {
		t.Error("an entry of a slot that is another's was taken")
	}
	before := d.writes
	end := d.begin(next, on("eu-1", "istio"))
	if d.writes != before+1 {
		t.Error("that an old line is there is relied on, whoever may be about to take it out")
	}
	d.begin(next, on("eu-1", "istio"))()
	if end(); d.writes != before+1 {
		t.Error("what the API has already was written again")
	}
	stop()
	if diff := cmp.Diff("kcp-system/us/istio", d.stored()); diff != "" {
		t.Error("the other's entry must stay:", diff)
	}
}

func TestOnlyTheLastBeginCanEnd(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	j, stop := d.open()
	defer stop()
	e := on("eu-1", "istio")
	first := d.begin(j, e)
	second := d.begin(j, e)
	first()
	if !j.Has(e) {
		t.Error("an older run ended the entry of a newer one")
	}
	third := j.Ending(e)
	second()
	if !j.Has(e) {
		t.Error("an older run ended the entry that was taken up again")
	}
	third()
	if j.Has(e) || j.Ending(e) != nil {
		t.Error("the entry was not ended")
	}
}

func TestManyBeginsShareWrites(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	j, stop := d.open()
	defer stop()
	const n = 200
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			if _, err := j.Begin(t.Context(), on("eu-1", fmt.Sprintf("m%d", i))); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if d.writes > n/4 {
		t.Errorf("%d entries took %d writes", n, d.writes)
	}
	if got := parse(d.stored()); len(got) != n {
		t.Errorf("%d of %d entries are stored", len(got), n)
	}
}

func TestWhatCannotBeWrittenDoesNotBegin(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.refuse = errors.New("no more writes today")
	j, stop := d.open()
	defer stop()
	if _, err := j.Begin(t.Context(), on("eu-1", "istio")); !errors.Is(err, d.refuse) {
		t.Errorf("got %v", err)
	}
	d.mu.Lock()
	d.refuse = nil
	d.mu.Unlock()
	d.begin(j, on("us", "istio")) // with it goes what failed
	if got := d.stored(); got != "kcp-system/eu-1/istio\nkcp-system/us/istio" {
		t.Errorf("what failed was forgotten: %q", got)
	}
}

func TestForgetAndLeave(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	j, stop := d.open()
	defer stop()
	for _, e := range []Entry{on("eu-1", "istio"), on("eu-1", "cert"), on("us", "istio")} {
		d.begin(j, e)
	}
	j.Forget(on("eu-1", "").Runtime)
	j.Leave(func(s Slot) bool { return s == 2 })
	if n := j.Len(); n != 0 {
		t.Errorf("%d entries are left", n)
	}
	stop()
	if diff := cmp.Diff("kcp-system/us/istio", d.stored()); diff != "" {
		t.Error("what another process has now is not ours to write:", diff)
	}
}

func TestBeginEndsWithItsContext(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	j := New(Options{Reader: d.api, Writer: d.api, Namespace: d.namespace, SlotOf: func(types.NamespacedName) Slot { return 0 }})
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := j.Begin(ctx, on("eu-1", "istio")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if _, stop := d.open(); true {
		stop()
	}
}

// What has come to its end is for others to look at until the status says so, but not for who brought it there.
func TestSettled(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	j, stop := d.open()
	e := Entry{types.NamespacedName{Namespace: "n", Name: "eu"}, "web"}
	first, err := j.Begin(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	if !j.Has(e) {
		t.Error("what has begun is not there")
	}
	j.Settle(e)
	if j.Has(e) || j.Ending(e) != nil {
		t.Error("what has come to its end is to be looked at")
	}
	other, closeOther := d.open()
	if left, err := other.Load(t.Context(), func(Slot) bool { return true }); err != nil || len(left) != 1 {
		t.Errorf("others see %v, %v", left, err)
	}
	closeOther()
	second, err := j.Begin(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	if first(); !j.Has(e) {
		t.Error("the end of the first change ended the second")
	}
	j.Settle(e)
	second()
	if stop(); d.stored() != "" || j.Len() != 0 {
		t.Errorf("left: %v", d.stored())
	}
}
