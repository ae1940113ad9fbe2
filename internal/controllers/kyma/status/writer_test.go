package status

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/kyma-project/mothership/api/crd"
	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/catalog"
	"github.com/kyma-project/mothership/internal/infra/local/localtest"
)

func TestMain(m *testing.M) { os.Exit(localtest.Main(m)) }

// desk is a Kyma on a real API server, a writer of its status, and a cache as old as the test wants it.
type desk struct {
	t      *testing.T
	api    client.WithWatch
	name   types.NamespacedName
	writer *Writer
	end    func()
	// reports that are not written yet.
	reports sync.WaitGroup

	mu     sync.Mutex
	cached *v1beta2.Kyma // nil: the cache shows all that is there
	writes int
	before func() // each write
}

func newDesk(t *testing.T, modules ...string) *desk {
	t.Helper()
	srv := localtest.Server(t)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1beta2.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	api, err := client.NewWithWatch(srv.Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	install(t, api)
	d := &desk{t: t, api: api, name: types.NamespacedName{Namespace: localtest.Namespace(t, srv), Name: "eu-1"}}
	k := &v1beta2.Kyma{ObjectMeta: metav1.ObjectMeta{Namespace: d.name.Namespace, Name: d.name.Name}, Spec: v1beta2.KymaSpec{Channel: "regular"}}
	for _, m := range modules {
		k.Spec.Modules = append(k.Spec.Modules, v1beta2.Module{Name: m})
	}
	if err := api.Create(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	d.writer = New(Options{Cache: d, Live: api, Client: interceptor.NewClient(api, interceptor.Funcs{SubResourcePatch: d.patch}), Catalog: catalog.NewStore(), Pause: pause})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.writer.Run(ctx) }()
	d.end = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(d.end)
	return d
}

// pause is longer than what these tests take, unless they wait for it.
const pause = 2 * time.Second

var installing sync.Mutex

// install installs the definition of Kymas and waits until it is served.
func install(t *testing.T, api client.WithWatch) {
	t.Helper()
	installing.Lock()
	defer installing.Unlock()
	for _, data := range crd.All() {
		var def apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(data, &def); err != nil {
			t.Fatal(err)
		}
		if err := client.IgnoreAlreadyExists(api.Create(t.Context(), &def)); err != nil {
			t.Fatal(err)
		}
		served(t, api, def.Name)
	}
}

func served(t *testing.T, api client.WithWatch, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	w, err := api.Watch(ctx, &apiextensionsv1.CustomResourceDefinitionList{}, client.MatchingFields{"metadata.name": name})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		def, ok := e.Object.(*apiextensionsv1.CustomResourceDefinition)
		if ok && slices.ContainsFunc(def.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
			return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
		}) {
			return
		}
	}
	t.Fatalf("definition %s is not served", name)
}

// Get is the cache's.
func (d *desk) Get(ctx context.Context, name types.NamespacedName, obj client.Object, o ...client.GetOption) error {
	d.mu.Lock()
	cached := d.cached
	d.mu.Unlock()
	if cached == nil {
		return d.api.Get(ctx, name, obj, o...)
	}
	cached.DeepCopyInto(obj.(*v1beta2.Kyma))
	return nil
}

func (d *desk) List(ctx context.Context, list client.ObjectList, o ...client.ListOption) error {
	return d.api.List(ctx, list, o...)
}

func (d *desk) patch(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, o ...client.SubResourcePatchOption) error {
	d.mu.Lock()
	before := d.before
	d.writes++
	d.mu.Unlock()
	if before != nil {
		before()
	}
	return c.SubResource(sub).Patch(ctx, obj, p, o...)
}

func (d *desk) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.writes
}

// shows freezes the cache as it is now; without one it shows what is there.
func (d *desk) shows(k *v1beta2.Kyma) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cached = k
}

// live is the Kyma as it is.
func (d *desk) live() *v1beta2.Kyma {
	d.t.Helper()
	var k v1beta2.Kyma
	if err := d.api.Get(d.t.Context(), d.name, &k); err != nil {
		d.t.Fatal(err)
	}
	return &k
}

func (d *desk) report(name string, state v1beta2.State, message string) {
	d.reports.Add(1)
	d.writer.Report(d.name, Report{
		Module: v1beta2.ModuleStatus{Name: name, State: state, Message: message}, Generation: 1, Written: d.reports.Done,
	})
}

// written waits until all that was reported is in the status, or was replaced there.
func (d *desk) written() { d.reports.Wait() }

// until watches the Kyma until it is as wanted.
func (d *desk) until(want string, ok func(*v1beta2.Kyma) bool) *v1beta2.Kyma {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), 20*time.Second)
	defer cancel()
	w, err := d.api.Watch(ctx, &v1beta2.KymaList{}, client.InNamespace(d.name.Namespace))
	if err != nil {
		d.t.Fatal(err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if k, is := e.Object.(*v1beta2.Kyma); is && ok(k) {
			return k
		}
	}
	d.t.Fatalf("the Kyma is not: %s; it is %+v", want, d.live().Status)
	return nil
}

func state(k *v1beta2.Kyma, name string) v1beta2.State {
	for _, m := range k.Status.Modules {
		if m.Name == name {
			return m.State
		}
	}
	return ""
}

// Many report at once: few writes, and nothing is lost.
func TestManyReportersFewWrites(t *testing.T) {
	t.Parallel()
	var modules []string
	for i := range 40 {
		modules = append(modules, "m"+strconv.Itoa(i))
	}
	d := newDesk(t, modules...)
	var group sync.WaitGroup
	for _, name := range modules {
		group.Go(func() {
			for _, s := range []v1beta2.State{v1beta2.StateProcessing, v1beta2.StateWarning, v1beta2.StateReady} {
				d.report(name, s, "")
				if m, _ := d.writer.Module(d.live(), name); m.State != s {
					t.Errorf("module %s is %s, just after it was reported to be %s", name, m.State, s)
				}
			}
		})
	}
	group.Wait()
	k := d.until("ready", func(k *v1beta2.Kyma) bool { return k.Status.State == v1beta2.StateReady })
	if k.Status.ModulesReady != "40/40" || k.Status.ObservedGeneration != 1 {
		t.Errorf("%s ready, observed %d", k.Status.ModulesReady, k.Status.ObservedGeneration)
	}
	if n := d.count(); n > 30 {
		t.Errorf("%d writes for 120 reports", n)
	}
}

// Somebody else writes to the Kyma all the time: each write is based on what is there, and neither overwrites the other.
func TestWritesBesideOthers(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "a")
	others := 0
	d.before = func() { // between the read and the write, two times of three
		if others++; others%3 == 0 {
			return
		}
		k := d.live()
		k.Annotations = map[string]string{"others": strconv.Itoa(others)}
		if err := d.api.Update(t.Context(), k); err != nil {
			t.Error(err)
		}
	}
	d.shows(d.live()) // and the cache is behind
	for _, s := range []v1beta2.State{v1beta2.StateProcessing, v1beta2.StateError, v1beta2.StateReady} {
		d.report("a", s, "")
		d.written()
		k := d.live()
		if state(k, "a") != s || k.Annotations["others"] == "" {
			t.Errorf("a is %s and not %s; annotations %v", state(k, "a"), s, k.Annotations)
		}
	}
}

// What was reported is known from then on, however old the cache is.
func TestLatestNeverGoesBack(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "a", "b")
	d.shows(d.live())
	for i := range 10 {
		s := []v1beta2.State{v1beta2.StateProcessing, v1beta2.StateReady}[i%2]
		d.report("a", s, "")
		if i == 5 {
			d.writer.Gone(d.name, "b", nil)
		}
		for range 3 {
			d.latest("a", s)
			d.written()
		}
		if i == 7 { // the same again: nothing is written, and nothing forgotten
			d.report("a", s, "")
			d.writer.Touch(d.name)
			d.latest("a", s)
		}
	}
	d.shows(nil)
	d.latest("a", v1beta2.StateReady)
}

func (d *desk) latest(name string, want v1beta2.State) {
	d.t.Helper()
	var k v1beta2.Kyma
	if err := d.Get(d.t.Context(), d.name, &k); err != nil {
		d.t.Fatal(err)
	}
	k.Status.Modules = d.writer.Latest(&k)
	if got := state(&k, name); got != want {
		d.t.Errorf("module %s is %q, and was reported to be %q", name, got, want)
	}
	if m, _ := d.writer.Module(&k, name); m.State != want {
		d.t.Errorf("module %s alone is %q, and was reported to be %q", name, m.State, want)
	}
}

// What an old cache says already may no longer be so: there and back again is written.
func TestBackToWhatAnOldCacheShows(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "a")
	write := func(s v1beta2.State) {
		t.Helper()
		d.report("a", s, "")
		d.written()
		if got := state(d.live(), "a"); got != s {
			t.Fatalf("a is %q, and was reported to be %q", got, s)
		}
	}
	write(v1beta2.StateReady)
	d.shows(d.live())
	write(v1beta2.StateProcessing)
	write(v1beta2.StateReady)
}

// A write whose answer was lost has been made: the next one finds it done, and what was reported stays known.
func TestAnswerIsLost(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "a")
	d.shows(d.live())
	lost := false
	d.writer.o.Client = interceptor.NewClient(d.api, interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, o ...client.SubResourcePatchOption) error {
		err := c.SubResource(sub).Patch(ctx, obj.DeepCopyObject().(client.Object), p, o...)
		if err == nil && !lost {
			lost = true
			return fmt.Errorf("the answer is lost: %w", context.DeadlineExceeded)
		}
		return err
	}})
	d.report("a", v1beta2.StateReady, "")
	d.written()
	if s := state(d.live(), "a"); s != v1beta2.StateReady {
		t.Errorf("a is %q", s)
	}
	d.latest("a", v1beta2.StateReady)
}

// A message that changes while the state stays is not worth a write each time.
func TestMessagesPause(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "a")
	d.report("a", v1beta2.StateError, "0")
	d.written()
	first := d.count()
	for i := range 20 {
		d.report("a", v1beta2.StateError, strconv.Itoa(i+1))
	}
	d.until("the last message", func(k *v1beta2.Kyma) bool { return k.Status.Modules[0].Message == "20" })
	if n := d.count() - first; n != 1 {
		t.Errorf("%d writes for 20 messages", n)
	}
	d.report("a", v1beta2.StateError, "21")
	d.report("a", v1beta2.StateReady, "")
	begun := time.Now()
	d.written()
	if took := time.Since(begun); took > pause/2 || state(d.live(), "a") != v1beta2.StateReady {
		t.Errorf("a change of state took %s; it is %s", took, state(d.live(), "a"))
	}
}

func TestNothingIsWrittenForNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "a")
	d.report("a", v1beta2.StateReady, "")
	k := d.until("observed", func(k *v1beta2.Kyma) bool { return k.Status.ObservedGeneration == 1 })
	before := d.count()
	for range 5 {
		d.report("a", v1beta2.StateReady, "")
		d.writer.Evaluated(k, "a")
		d.writer.Touch(d.name)
		d.written()
	}
	d.end()
	if n := d.count(); n != before {
		t.Errorf("%d writes of what was there", n-before)
	}
}

// Of two reports on a module, the first is told with the second: nothing older will be written.
func TestWrittenWithALaterReport(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "a")
	held := make(chan struct{})
	var once sync.Once
	began := make(chan struct{})
	d.before = func() {
		once.Do(func() { close(began) })
		<-held
	}
	d.report("a", v1beta2.StateProcessing, "")
	<-began // what is under way is the first report's
	told := make(chan struct{})
	d.writer.Report(d.name, Report{Module: v1beta2.ModuleStatus{Name: "a", State: v1beta2.StateReady}, Generation: 1, Written: func() { close(told) }})
	select {
	case <-told:
		t.Error("told before it was written")
	default:
	}
	close(held)
	<-told
	d.written()
	if got := state(d.live(), "a"); got != v1beta2.StateReady {
		t.Errorf("a is %q", got)
	}
}

// What only began is not worth a write of its own, if it is soon over.
func TestLazyReport(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "a")
	d.report("a", v1beta2.StateReady, "1")
	d.written()
	before := d.count()
	lazy := func() {
		d.writer.Report(d.name, Report{Module: v1beta2.ModuleStatus{Name: "a", State: v1beta2.StateProcessing}, Generation: 1, Lazily: true})
	}
	lazy()
	d.latest("a", v1beta2.StateProcessing)
	d.report("a", v1beta2.StateReady, "2")
	d.written()
	if n := d.count() - before; n > 1 {
		t.Errorf("%d writes", n)
	}
	lazy()
	d.until("processing", func(k *v1beta2.Kyma) bool { return state(k, "a") == v1beta2.StateProcessing })
}

// A Kyma that is gone is forgotten.
func TestForget(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "a")
	if err := d.api.Delete(t.Context(), d.live()); err != nil {
		t.Fatal(err)
	}
	d.report("a", v1beta2.StateReady, "")
	d.report("a", v1beta2.StateReady, "")
	d.writer.Forget(d.name)
	d.end()
	d.writer.mu.Lock()
	defer d.writer.mu.Unlock()
	if len(d.writer.open) > 0 {
		t.Errorf("left: %v", d.writer.open)
	}
}

// What is pending at the end is written, also what pauses.
func TestTheEndWritesWhatIsPending(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "a")
	d.report("a", v1beta2.StateError, "first")
	d.written()
	d.report("a", v1beta2.StateReady, "")
	d.end()
	if s := state(d.live(), "a"); s != v1beta2.StateReady {
		t.Errorf("a is %s", s)
	}
}
