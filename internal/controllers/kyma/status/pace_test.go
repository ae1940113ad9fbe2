package status

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/catalog"
)

// slow holds one Kyma; each write of its status takes a second.
type slow struct {
	client.Reader
	client.SubResourceWriter

	mu     sync.Mutex
	kyma   v1beta2.Kyma
	writes []time.Time // when each ended
}

func (s *slow) Get(_ context.Context, _ types.NamespacedName, obj client.Object, _ ...client.GetOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kyma.DeepCopyInto(obj.(*v1beta2.Kyma))
	return nil
}

func (s *slow) Status() client.SubResourceWriter { return s }

func (s *slow) Patch(_ context.Context, obj client.Object, p client.Patch, _ ...client.SubResourcePatchOption) error {
	<-time.After(time.Second)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes = append(s.writes, time.Now())
	patch, err := p.Data(obj)
	if err != nil {
		return err
	}
	before, err := json.Marshal(s.kyma)
	if err != nil {
		return err
	}
	after, err := jsonpatch.MergePatch(before, patch)
	if err != nil {
		return err
	}
	s.kyma = v1beta2.Kyma{}
	if err := json.Unmarshal(after, &s.kyma); err != nil {
		return err
	}
	s.kyma.ResourceVersion = strconv.Itoa(len(s.writes) + 1)
	obj.SetResourceVersion(s.kyma.ResourceVersion)
	return nil
}

// written is when each write ended, in seconds, and the states that the status has.
func (s *slow) written(since time.Time) (at []float64, states map[string]v1beta2.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.writes {
		at = append(at, w.Sub(since).Seconds())
	}
	states = map[string]v1beta2.State{}
	for _, m := range s.kyma.Status.Modules {
		states[m.Name] = m.State
	}
	return at, states
}

// paced runs a test in virtual time with a writer over a slow API; end ends the writer.
func paced(t *testing.T, test func(t *testing.T, w *Writer, s *slow, name types.NamespacedName, end func())) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &slow{kyma: v1beta2.Kyma{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "eu-1", ResourceVersion: "1"}}}
		w := New(Options{Cache: s, Live: s, Client: s, Catalog: catalog.NewStore()})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		end := sync.OnceFunc(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
		defer end()
		test(t, w, s, client.ObjectKeyFromObject(&s.kyma), end)
	})
}

func report(w *Writer, name types.NamespacedName, module string, state v1beta2.State) {
	w.Report(name, Report{Module: v1beta2.ModuleStatus{Name: module, State: state}})
}

func TestALargeStatusIsWrittenSeldom(t *testing.T) {
	t.Parallel()
	paced(t, func(t *testing.T, w *Writer, s *slow, name types.NamespacedName, _ func()) {
		begun := time.Now()
		for i := range 40 { // one every 250 ms
			report(w, name, "m"+strconv.Itoa(i), v1beta2.StateReady)
			<-time.After(250 * time.Millisecond)
		}
		<-time.After(10 * time.Second)
		at, states := s.written(begun)
		if len(states) != 40 || len(at) > 4 {
			t.Errorf("%d modules are written, by writes at %v s", len(states), at)
		}
	})
}

func TestAtTheEndNothingRests(t *testing.T) {
	t.Parallel()
	paced(t, func(t *testing.T, w *Writer, s *slow, name types.NamespacedName, end func()) {
		begun := time.Now()
		report(w, name, "web", v1beta2.StateProcessing)
		<-time.After(1500 * time.Millisecond)
		report(w, name, "web", v1beta2.StateReady)
		synctest.Wait()
		end()
		if at, states := s.written(begun); states["web"] != v1beta2.StateReady {
			t.Errorf("written at %v s: %v; want what was reported last", at, states)
		}
	})
}

func TestATouchIsWrittenWithWhatIsReportedThen(t *testing.T) {
	t.Parallel()
	paced(t, func(t *testing.T, w *Writer, s *slow, name types.NamespacedName, _ func()) {
		begun := time.Now()
		w.Touch(name)
		w.Evaluated(&v1beta2.Kyma{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name, Generation: 1}}, "shop")
		<-time.After(soon / 2)
		report(w, name, "web", v1beta2.StateProcessing)
		<-time.After(10 * time.Second)
		if at, states := s.written(begun); len(at) != 1 || states["web"] != v1beta2.StateProcessing {
			t.Errorf("%v is written at %v s; want one write", states, at)
		}
		w.Touch(name)
		<-time.After(10 * time.Second)
		if at, _ := s.written(begun); len(at) != 1 {
			t.Errorf("writes at %v s, although nothing had changed", at)
		}
	})
}

// many holds as many Kymas as are asked for; each write takes a second.
type many struct{ slow }

func (m *many) Get(_ context.Context, name types.NamespacedName, obj client.Object, _ ...client.GetOption) error {
	k := obj.(*v1beta2.Kyma)
	k.Namespace, k.Name, k.ResourceVersion = name.Namespace, name.Name, "1"
	return nil
}

func (m *many) Status() client.SubResourceWriter { return m }

func (m *many) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	<-time.After(time.Second)
	return nil
}

// Who feeds a writer that does not keep up is told so once, and once that it does again.
func TestBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := &many{}
		var mu sync.Mutex
		var all []bool
		said := func() []bool {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(all)
		}
		w := New(Options{Cache: api, Live: api, Client: api, Catalog: catalog.NewStore(), MaxBacklog: 20, Behind: func(behind bool) {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, behind)
		}})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		for i := range 50 {
			w.Report(types.NamespacedName{Namespace: "n", Name: strconv.Itoa(i)}, Report{Module: v1beta2.ModuleStatus{Name: "m", State: v1beta2.StateReady}})
		}
		<-time.After(5 * time.Second)
		synctest.Wait()
		if n, said := w.Backlog(), said(); n <= 10 || len(said) != 1 || !said[0] {
			t.Errorf("%d are to be written; said %v", n, said)
		}
		<-time.After(time.Minute)
		synctest.Wait()
		if n, said := w.Backlog(), said(); n != 0 || len(said) != 2 || said[1] {
			t.Errorf("%d are to be written; said %v", n, said)
		}
		stop()
		<-ended
	})
}

// When many runtimes do not answer at the same time, that is written bit by bit, but the first few, and that one answers again, at once.
func TestAnOutageIsWrittenBitByBit(t *testing.T) {
	t.Parallel()
	busyWriter(t, func(t *testing.T, w *Writer, api *counting, busy *atomic.Bool, _ func()) {
		busy.Store(false)
		const n = 3000
		written := func() (sum int) {
			for i := range n {
				sum += api.of(strconv.Itoa(i))
			}
			return sum
		}
		kyma := func(i int) *v1beta2.Kyma {
			return &v1beta2.Kyma{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: strconv.Itoa(i)}}
		}
		for i := range n {
			w.Reachable(kyma(i), v1beta2.ReasonUnreachable, "it does not answer")
		}
		synctest.Wait()
		if got := written(); got != outageBurst {
			t.Errorf("%d are written at once, want %d", got, outageBurst)
		}
		<-time.After(maxOutage / 4)
		if got := written(); got < outageRate*15 || got > n/3 {
			t.Errorf("%d of %d are written after a quarter of the time", got, n)
		}
		const back = 900
		if known := w.Reachability(kyma(back)); known == nil || known.Reason != v1beta2.ReasonUnreachable {
			t.Errorf("what is not written yet is not known: %v", known)
		}
		before := w.unreachable.Tokens()
		w.Reachable(kyma(back), v1beta2.ReasonUnreachable, "it still does not answer")
		if after := w.unreachable.Tokens(); after < before {
			t.Error("what is known counts again")
		}
		if api.of(strconv.Itoa(back)) != 0 {
			t.Fatal("the turn of this one was too early for the test")
		}
		w.Reachable(kyma(back), v1beta2.ReasonReachable, "")
		synctest.Wait()
		if api.of(strconv.Itoa(back)) != 1 {
			t.Error("that a runtime answers again waits")
		}
		<-time.After(maxOutage)
		synctest.Wait()
		for i := range n {
			if got := api.of(strconv.Itoa(i)); got != 1 {
				t.Fatalf("runtime %d is written %d times", i, got)
			}
		}
		w.Reachable(kyma(n), v1beta2.ReasonUnreachable, "it does not answer")
		synctest.Wait()
		if api.of(strconv.Itoa(n)) != 1 {
			t.Error("one waits for an outage that is over")
		}
	})
}

// A change of the catalogue is not summed up where the status has all of it; it is where something may be under way that was summed up
// from what the catalogue was before.
func TestReview(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		before func(w *Writer, name types.NamespacedName)
		want   bool
	}{
		"Settled": {func(*Writer, types.NamespacedName) {}, false},
		"Pending": {func(w *Writer, name types.NamespacedName) { w.Touch(name) }, true},
		"Written": {func(w *Writer, name types.NamespacedName) { wrote(w, name, "8") }, true},
		"Shown":   {func(w *Writer, name types.NamespacedName) { wrote(w, name, "7") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := &many{}
			w := New(Options{Cache: api, Live: api, Client: api, Catalog: catalog.NewStore()})
			k := with("a Ready")
			k.Namespace, k.Name, k.ResourceVersion, k.Status.ModulesReady = "kcp-system", "eu-1", "7", "1/1"
			k.Spec.Modules = []v1beta2.Module{{Name: "a"}}
			kyma := client.ObjectKeyFromObject(k)
			tt.before(w, kyma)
			w.account(kyma).urgent = false // what Touch sets
			if w.Review(k); w.account(kyma).urgent != tt.want {
				t.Errorf("touched: %v", !tt.want)
			}
		})
	}
}

// wrote books a write that led to a version.
func wrote(w *Writer, name types.NamespacedName, version string) {
	w.done(name, newChanges(), version, true, &v1beta2.Kyma{})
}
