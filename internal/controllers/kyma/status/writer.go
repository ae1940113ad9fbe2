// Package status writes the status of Kymas: the only writer of it, so that what many modules report at the same time arrives as
// one guarded patch, and only where something changed.
//
// # Invariants
//
// A report is kept until a write that contains it was accepted and the cache shows it: Latest never goes back in time. A write
// carries the resourceVersion it is based on; a conflict is read again live. A message that changes while the state stays is
// written after a pause, so that an error whose text varies does not cost a write each time.
//
// The package may import the api module, internal/catalog, apimachinery, client-go's workqueue, controller-runtime's client and
// golang.org/x/time/rate.
package status

import (
	"cmp"
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/catalog"
)

// Options of New.
type Options struct {
	// Cache reads Kymas, Live reads them past the cache, Client writes their status. Needed.
	Cache  client.Reader
	Live   client.Reader
	Client client.StatusClient
	// Catalog says which modules a Kyma shall have. Needed.
	Catalog *catalog.Store
	// Owns says whether a Kyma's status is this replica's to write; reports on others are dropped. Default: all are.
	Owns func(kyma types.NamespacedName) bool
	// Workers write at the same time. Default: 4.
	Workers int
	// Pause between two writes of which the second changes messages only. Default: 10 s.
	Pause time.Duration
	// Behind is told when the writer falls behind, because the API is slow or refuses: when more than MaxBacklog Kymas are to be
	// written; and that it does no longer when they are half as many. It must not block or call the writer. Default: nobody is told.
	Behind func(behind bool)
	// MaxBacklog before Behind is told. Default: 256.
	MaxBacklog int
	// Busy says whether there is so much work that reports which are patient had better wait. It must not block or call the writer.
	// Default: there never is.
	Busy func() bool
	// Log of failures to write.
	Log logr.Logger
}

// Writer merges reports into the status of Kymas. It is safe for concurrent use.
type Writer struct {
	o     Options
	queue workqueue.TypedRateLimitingInterface[types.NamespacedName]

	mu     sync.Mutex
	open   map[types.NamespacedName]*account
	ending bool // nothing rests any more
	behind bool // what Behind was told last
	// unreachable paces what is written of runtimes that do not answer.
	unreachable *rate.Limiter
	// patient are reports that wait until less is going on, waits tells letThrough that there are some.
	patient []patient
	waits   chan struct{}
}

// account is what is known of a Kyma's status beyond what the cache shows.
type account struct {
	// pending is not written yet. written is all that was, for whoever has read the Kyma before: some have an older one in their
	// hands than others, so it is kept until none can be in use.
	pending, written *changes
	// version that the last write led to, and when it was.
	version string
	at      time.Time
	// took is how long that write took.
	took time.Duration
	// lulled says that some of pending waits in Writer.patient, urgent that some of it does not wait.
	lulled, urgent bool
}

// New makes a Writer; Run makes it work.
func New(o Options) *Writer {
	if o.Workers <= 0 {
		o.Workers = 4
	}
	if o.Owns == nil {
		o.Owns = func(types.NamespacedName) bool { return true }
	}
	if o.Behind == nil {
		o.Behind = func(bool) {}
	}
	if o.MaxBacklog <= 0 {
		o.MaxBacklog = 256
	}
	if o.Busy == nil {
		o.Busy = func() bool { return false }
	}
	if o.Pause <= 0 {
		o.Pause = 10 * time.Second
	}
	return &Writer{
		waits: make(chan struct{}, 1), unreachable: rate.NewLimiter(outageRate, outageBurst),
		o: o, open: map[types.NamespacedName]*account{},
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](50*time.Millisecond, time.Minute),
			workqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{Name: "kyma-status"}),
	}
}

// Report is what is now known of a module.
type Report struct {
	// Module is its status; LastTransitionTime is filled in.
	Module v1beta2.ModuleStatus
	// Generation of the Kyma's spec that was worked on.
	Generation int64
	// RuntimeUID of the cluster it was found in; empty if it was not asked.
	RuntimeUID string
	// Written is called once the status has this report, or a later one on the same module. It must not block, nor call the Writer. It
	// is not called if the Kyma is gone before. Default: nobody is told.
	Written func()
	// Lazily has the report written only if nothing else is to be written within a second: what is over sooner is not worth a write.
	Lazily bool
	// Patiently has the report written when less is going on, but within a minute, or with whatever else is to be written of the
	// Kyma: for what nobody waits for, one of thousands that report the same.
	Patiently bool
}

// lazily is how long a report waits that says that something has begun.
const lazily = time.Second

// Report reports on a module.
func (w *Writer) Report(kyma types.NamespacedName, r Report) {
	c := newChanges()
	c.modules[r.Module.Name], c.evaluated[r.Module.Name], c.runtimeUID = &r.Module, r.Generation, r.RuntimeUID
	if r.Written != nil {
		c.after[r.Module.Name] = []func(){r.Written}
	}
	if r.Lazily {
		w.later(kyma, c, lazily, false)
		return
	}
	if r.Patiently && w.o.Busy() {
		w.lull(kyma, c)
		return
	}
	w.add(kyma, c)
}

// Evaluated reports that a module is as its status says, for a generation of the spec. It costs nothing where the status has
// that generation already, and is written soon, like Touch.
func (w *Writer) Evaluated(k *v1beta2.Kyma, module string) {
	if k.Status.ObservedGeneration == k.Generation {
		return
	}
	c := newChanges()
	c.evaluated[module] = k.Generation
	w.later(client.ObjectKeyFromObject(k), c, soon, true)
}

// Gone reports that a module is no longer in the runtime. written is as in Report.
func (w *Writer) Gone(kyma types.NamespacedName, module string, written func()) {
	c := newChanges()
	c.modules[module] = nil
	if written != nil {
		c.after[module] = []func(){written}
	}
	w.add(kyma, c)
}

// Reachable reports whether the runtime answers, with one of the api module's reasons. Where many do not at the same time, that is written
// some time later, within ten minutes or with whatever else is to be written of the Kyma, so that those who answer do not wait for it;
// Reachability knows it at once.
func (w *Writer) Reachable(k *v1beta2.Kyma, reason, message string) {
	c := newChanges()
	status := metav1.ConditionFalse
	if reason == v1beta2.ReasonReachable {
		status = metav1.ConditionTrue
	}
	c.reachable = &metav1.Condition{
		Type: v1beta2.ConditionReachable, Status: status, Reason: reason, Message: bounded(message), ObservedGeneration: k.Generation,
	}
	kyma, known := client.ObjectKeyFromObject(k), w.Reachability(k)
	switch {
	case status == metav1.ConditionTrue:
		w.add(kyma, c)
	case known != nil && known.Reason == reason: // it is being written, or was: at most the message is new
		w.later(kyma, c, maxOutage, false)
	default:
		w.later(kyma, c, w.outage(), false)
	}
}

// How many of the runtimes that do not answer are written a second, how many at once, and how long one waits at most.
const (
	outageRate  = 4
	outageBurst = 10
	maxOutage   = 10 * time.Minute
)

// outage is how long it shall take until it is written that one more does not answer.
func (w *Writer) outage() time.Duration {
	turn := w.unreachable.Reserve()
	if wait := turn.Delay(); wait <= maxOutage {
		return wait
	}
	turn.Cancel()
	return rand.N(maxOutage)
}

// Reachability is what is known of whether a Kyma's runtime answers: what its status says, and what was reported since; nil if nothing is.
func (w *Writer) Reachability(k *v1beta2.Kyma) *metav1.Condition {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := meta.FindStatusCondition(k.Status.Conditions, v1beta2.ConditionReachable)
	if a := w.open[client.ObjectKeyFromObject(k)]; a != nil {
		for _, c := range a.unseen(k) {
			known = cmp.Or(c.reachable, known)
		}
	}
	return known.DeepCopy()
}

// Touch has the status computed anew, from what is known, soon: what modules report meanwhile goes into the same write, and none of
// them waits for one more.
func (w *Writer) Touch(kyma types.NamespacedName) { w.later(kyma, newChanges(), soon, true) }

// Review is Touch where the catalogue has changed what the status is summed up from, beside what the modules themselves report: which of
// them there are to be. k is not changed.
func (w *Writer) Review(k *v1beta2.Kyma) {
	if w.isUnsettled(k) || !sumsUp(k, catalog.Wanted(k, w.o.Catalog.In(k.Namespace))) {
		w.Touch(client.ObjectKeyFromObject(k))
	}
}

// isUnsettled says whether something is pending, or was written that a Kyma does not show: it may have been summed up from something
// else than what k says.
func (w *Writer) isUnsettled(k *v1beta2.Kyma) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.open[client.ObjectKeyFromObject(k)]
	return a != nil && len(a.unseen(k)) > 0
}

// soon is longer than it takes until a module's run reports that it begins.
const soon = 100 * time.Millisecond

// later has changes written after some time. Urgent ones take with them what waits for a lull.
func (w *Writer) later(kyma types.NamespacedName, c *changes, after time.Duration, urgent bool) {
	if w.o.Owns(kyma) {
		w.keep(kyma, c, urgent)
		w.queue.AddAfter(kyma, after)
	}
}

func (w *Writer) add(kyma types.NamespacedName, c *changes) {
	if w.o.Owns(kyma) {
		w.keep(kyma, c, true)
		w.queue.Add(kyma)
		w.look()
	}
}

// Backlog is how many Kymas are to be written now, and how many reports when less is going on: those that rest, or wait after a failure,
// left out.
func (w *Writer) Backlog() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.queue.Len() + len(w.patient)
}

// look tells whether the writer falls behind, where that is news.
func (w *Writer) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	most := w.o.MaxBacklog
	if w.behind {
		most /= 2
	}
	if behind := w.queue.Len() > most; behind != w.behind {
		w.behind = behind
		w.o.Behind(behind) // under the lock, so that the last word is the right one
	}
}

// keep lays changes over what is pending.
func (w *Writer) keep(kyma types.NamespacedName, c *changes, urgent bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.account(kyma)
	a.urgent = a.urgent || urgent
	if a.pending == nil {
		a.pending = newChanges()
	}
	a.pending.over(c)
}

// account is a Kyma's; the lock is held.
func (w *Writer) account(kyma types.NamespacedName) *account {
	a := w.open[kyma]
	if a == nil {
		a = &account{}
		w.open[kyma] = a
	}
	return a
}

// Forget drops what is pending for a Kyma that is gone.
func (w *Writer) Forget(kyma types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.open, kyma)
}

// Latest is what is known of a Kyma's modules: what its status says, and what was reported since. k is not changed.
func (w *Writer) Latest(k *v1beta2.Kyma) []v1beta2.ModuleStatus {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.open[client.ObjectKeyFromObject(k)]
	if a == nil {
		return k.Status.Modules
	}
	reports := map[string]*v1beta2.ModuleStatus{}
	for _, c := range a.unseen(k) {
		for name, m := range c.modules {
			reports[name] = m
		}
	}
	if len(reports) == 0 {
		return k.Status.Modules
	}
	return mergeModules(k.Status.Modules, reports, metav1.Now())
}

// Module is what is known of one of a Kyma's modules, as Latest has it; false if nothing is.
func (w *Writer) Module(k *v1beta2.Kyma, name string) (v1beta2.ModuleStatus, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var before *v1beta2.ModuleStatus
	for i := range k.Status.Modules {
		if k.Status.Modules[i].Name == name {
			before = &k.Status.Modules[i]
			break
		}
	}
	if a := w.open[client.ObjectKeyFromObject(k)]; a != nil {
		for _, c := range a.unseen(k) {
			if m, reported := c.modules[name]; reported {
				before = mergedModule(before, m, metav1.Now())
			}
		}
	}
	if before == nil {
		return v1beta2.ModuleStatus{}, false
	}
	return *before.DeepCopy(), true
}

// RuntimeUID is what is known of the cluster that a Kyma's modules are in, as Latest has it.
func (w *Writer) RuntimeUID(k *v1beta2.Kyma) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	uid := k.Status.RuntimeUID
	if a := w.open[client.ObjectKeyFromObject(k)]; a != nil {
		for _, c := range a.unseen(k) {
			uid = cmp.Or(c.runtimeUID, uid)
		}
	}
	return uid
}

// unseen are the changes over a Kyma that somebody has read, the older ones first: what was written and it does not show, and what is
// not written.
func (a *account) unseen(k *v1beta2.Kyma) []*changes {
	var out []*changes
	if a.written != nil && isOlder(k.ResourceVersion, a.version) {
		out = append(out, a.written)
	}
	if a.pending != nil {
		out = append(out, a.pending)
	}
	return out
}

// isOlder compares resourceVersions; an empty one is older than all.
func isOlder(a, b string) bool {
	if a == "" || b == "" {
		return a == "" && b != ""
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// Run writes until the context ends, and what is pending then, as far as that takes no longer than some seconds.
func (w *Writer) Run(ctx context.Context) error {
	var workers sync.WaitGroup
	writing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	for range w.o.Workers {
		workers.Go(func() {
			for w.next(writing) { // ends when the queue is shut down and empty
			}
		})
	}
	workers.Go(func() { w.letThrough(ctx) })
	w.sweepUntil(ctx)
	timer := time.AfterFunc(drain, cancel)
	defer timer.Stop()
	w.end()
	workers.Wait()
	if n := w.left(); n > 0 {
		w.o.Log.Info("The process ends before every status was written; what they are about is looked at again at the next start", "kymas", n)
	}
	return nil
}

// left is how many Kymas something is pending of.
func (w *Writer) left() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.open {
		if a.pending != nil {
			n++
		}
	}
	return n
}

// end has all that is pending written at once, also what rests: the queue would drop that.
func (w *Writer) end() {
	w.mu.Lock()
	w.ending = true
	for kyma, a := range w.open {
		if a.pending != nil {
			w.queue.Add(kyma)
		}
	}
	w.mu.Unlock()
	w.queue.ShutDown()
}

func (w *Writer) sweepUntil(ctx context.Context) {
	tick := time.NewTicker(sweepAge)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			w.sweep(now)
		}
	}
}

// drain is how long the last writes may take.
const drain = 5 * time.Second

func (w *Writer) next(ctx context.Context) bool {
	kyma, down := w.queue.Get()
	if down {
		return false
	}
	defer w.look()
	defer w.queue.Done(kyma)
	again, err := w.write(ctx, kyma)
	switch {
	case err != nil && ctx.Err() == nil:
		w.o.Log.Error(err, "Writing the status", "runtime", kyma.String())
		w.queue.AddRateLimited(kyma)
		return true
	case again > 0:
		w.queue.AddAfter(kyma, again)
	}
	w.queue.Forget(kyma)
	return true
}
