package status

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/catalog"
)

// counting counts the writes to each Kyma, which take no time.
type counting struct {
	many
	writes map[string]int
	spec   []v1beta2.Module // of each, in generation 2, if there is one
}

func (c *counting) Get(ctx context.Context, name types.NamespacedName, obj client.Object, o ...client.GetOption) error {
	if k := obj.(*v1beta2.Kyma); c.spec != nil {
		k.Generation, k.Spec.Modules = 2, c.spec
	}
	return c.many.Get(ctx, name, obj, o...)
}

func (c *counting) Status() client.SubResourceWriter { return c }

func (c *counting) Patch(_ context.Context, obj client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writes[obj.GetName()]++
	return nil
}

func (c *counting) of(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writes[name]
}

// busyWriter runs a test in virtual time with a writer in a control plane that is busy for as long as the test says.
func busyWriter(t *testing.T, test func(t *testing.T, w *Writer, api *counting, busy *atomic.Bool, end func())) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var busy atomic.Bool
		busy.Store(true)
		api := &counting{writes: map[string]int{}}
		w := New(Options{Cache: api, Live: api, Client: api, Catalog: catalog.NewStore(), Busy: busy.Load, MaxBacklog: 40})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		stopped := false
		end := func() {
			if cancel(); !stopped {
				stopped = true
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
		}
		defer end()
		test(t, w, api, &busy, end)
	})
}

func kymaNamed(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "fleet", Name: name}
}

// upgraded reports as one of a wave does: that it has begun, and soon that it is done.
func upgraded(w *Writer, name string) {
	m := v1beta2.ModuleStatus{Name: "web", State: v1beta2.StateProcessing}
	w.Report(kymaNamed(name), Report{Module: m, Lazily: true})
	m.State = v1beta2.StateReady
	w.Report(kymaNamed(name), Report{Module: m, Patiently: true})
}

func TestAWaveIsWrittenWhenLessIsGoingOn(t *testing.T) {
	t.Parallel()
	busyWriter(t, func(t *testing.T, w *Writer, api *counting, busy *atomic.Bool, _ func()) {
		upgraded(w, "one")
		upgraded(w, "two")
		<-time.After(3 * time.Second)
		if api.of("one")+api.of("two") != 0 || w.Backlog() != 2 {
			t.Errorf("%v is written while there is more to do, and %d are to be", api.writes, w.Backlog())
		}
		w.Report(kymaNamed("two"), Report{Module: v1beta2.ModuleStatus{Name: "shop", State: v1beta2.StateError}})
		<-time.After(time.Second)
		if api.of("one") != 0 || api.of("two") != 1 {
			t.Errorf("%v is written after one of them had something else to say", api.writes)
		}
		busy.Store(false)
		<-time.After(2 * lullPoll)
		synctest.Wait()
		if api.of("one") != 1 || api.of("two") != 1 || w.Backlog() != 0 {
			t.Errorf("%v is written when there is no more to do, and %d are to be", api.writes, w.Backlog())
		}
		upgraded(w, "one")
		synctest.Wait()
		if api.of("one") != 2 {
			t.Error("what is reported when nothing else is going on waits")
		}
	})
}

func TestAWaveWaitsForSoLongOnly(t *testing.T) {
	t.Parallel()
	busyWriter(t, func(t *testing.T, w *Writer, api *counting, _ *atomic.Bool, _ func()) {
		upgraded(w, "one")
		<-time.After(maxLull + 2*lullPoll)
		synctest.Wait()
		if api.of("one") != 1 {
			t.Errorf("%v is written after %s", api.writes, maxLull)
		}
	})
}

func TestSoManyWaitOnly(t *testing.T) {
	t.Parallel()
	busyWriter(t, func(t *testing.T, w *Writer, api *counting, _ *atomic.Bool, _ func()) {
		for i := range maxPatient {
			upgraded(w, strconv.Itoa(i))
		}
		upgraded(w, "one more")
		synctest.Wait()
		if len(api.writes) != 1 || api.of("0") != 1 {
			t.Errorf("%d are written, want the first", len(api.writes))
		}
	})
}

// A wave that goes on keeps nobody waiting for longer.
func TestALongWave(t *testing.T) {
	t.Parallel()
	busyWriter(t, func(t *testing.T, w *Writer, api *counting, _ *atomic.Bool, _ func()) {
		const pause = 20 * time.Millisecond
		begun := time.Now()
		for i := 0; time.Since(begun) < maxLull+time.Second; i++ {
			if upgraded(w, strconv.Itoa(i)); time.Since(begun) < maxLull && api.of("0") != 0 {
				t.Fatalf("written after %s", time.Since(begun))
			}
			<-time.After(pause)
		}
		if api.of("0") != 1 || api.of("40") != 1 {
			t.Errorf("the first ones are not written after %s; %d wait", time.Since(begun), w.Backlog())
		}
		if n := w.Backlog(); n < int((maxLull-time.Second)/pause) {
			t.Errorf("%d wait", n)
		}
	})
}

func TestAtTheEndNobodyIsPatient(t *testing.T) {
	t.Parallel()
	busyWriter(t, func(t *testing.T, w *Writer, api *counting, _ *atomic.Bool, end func()) {
		upgraded(w, "one")
		upgraded(w, "two")
		end()
		if api.of("one") != 1 || api.of("two") != 1 {
			t.Errorf("%v is written at the end", api.writes)
		}
	})
}

// Whoever lets a wave through leaves room for others, and nobody is told that the writer falls behind.
func TestAWaveLeavesRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var busy atomic.Bool
		busy.Store(true)
		api := &many{}
		w := New(Options{
			Cache: api, Live: api, Client: api, Catalog: catalog.NewStore(), Busy: busy.Load, MaxBacklog: 40,
			Behind: func(bool) { t.Error("it says that it is behind") },
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		for i := range 200 {
			w.Report(kymaNamed(strconv.Itoa(i)), Report{Module: v1beta2.ModuleStatus{Name: "web", State: v1beta2.StateReady}, Patiently: true})
		}
		busy.Store(false)
		<-time.After(10 * time.Second) // each of the four workers takes a second for one
		if n := w.Backlog(); n < 150 || n > 165 {
			t.Errorf("%d are still to be written", n)
		}
		<-time.After(time.Minute)
		synctest.Wait()
		if n := w.Backlog(); n != 0 {
			t.Errorf("%d are still to be written in the end", n)
		}
		cancel()
		<-ended
	})
}

// While there is a wave of work, what the modules of one Kyma report goes into a write a second.
func TestAKymaOfAWave(t *testing.T) {
	t.Parallel()
	busyWriter(t, func(t *testing.T, w *Writer, api *counting, busy *atomic.Bool, _ func()) {
		say := func() {
			for i := range 20 {
				w.Report(kymaNamed("one"), Report{Module: v1beta2.ModuleStatus{Name: strconv.Itoa(i), State: v1beta2.StateReady}})
				<-time.After(100 * time.Millisecond)
			}
		}
		say()
		<-time.After(restBusy)
		if n := api.of("one"); n < 2 || n > 3 {
			t.Errorf("%d writes in two seconds", n)
		}
		busy.Store(false)
		before := api.of("one")
		if say(); api.of("one") < before+18 {
			t.Errorf("%d writes of 20 reports when little is going on", api.of("one")-before)
		}
	})
}

// While there is a wave of work, a Kyma whose modules have not all been seen to is written each few seconds, and at once when they have.
func TestAnUnfinishedKymaOfAWave(t *testing.T) {
	t.Parallel()
	busyWriter(t, func(t *testing.T, w *Writer, api *counting, _ *atomic.Bool, _ func()) {
		api.spec = []v1beta2.Module{{Name: "0"}, {Name: "1"}, {Name: "2"}}
		say := func(i int) {
			w.Report(kymaNamed("one"), Report{Module: v1beta2.ModuleStatus{Name: strconv.Itoa(i), State: v1beta2.StateReady}, Generation: 2})
		}
		say(0)
		<-time.After(2 * time.Second)
		say(1)
		<-time.After(time.Second)
		if n := api.of("one"); n != 1 {
			t.Errorf("%d writes before all have been seen to", n)
		}
		say(2)
		<-time.After(10 * time.Millisecond)
		if n := api.of("one"); n != 2 {
			t.Errorf("%d writes when all have been seen to", n)
		}
	})
}
