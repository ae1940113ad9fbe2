package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/catalog"
)

// callTimeout is the deadline of one read or write.
const callTimeout = 15 * time.Second

// attempts bounds how often a write is based on something new after a conflict.
const attempts = 5

// errBusy says that others wrote to the Kyma each time.
var errBusy = errors.New("conflict after conflict")

// write writes what is pending. It returns when to try again, if it is too early for a change of messages only.
func (w *Writer) write(ctx context.Context, kyma types.NamespacedName) (again time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	reader := w.o.Cache
	for range attempts {
		if !w.o.Owns(kyma) { // asked each time: a conflict may be the new owner's doing
			w.Forget(kyma)
			return 0, nil
		}
		var k v1beta2.Kyma
		if err := reader.Get(ctx, kyma, &k, client.UnsafeDisableDeepCopy); err != nil { // nothing that it refers to is changed
			if apierrors.IsNotFound(err) {
				w.Forget(kyma)
				return 0, nil
			}
			return 0, fmt.Errorf("reading Kyma %s: %w", kyma, err)
		}
		if w.isBehind(kyma, &k) {
			reader = w.o.Live
			continue
		}
		again, err := w.writeOver(ctx, kyma, &k)
		if !apierrors.IsConflict(err) {
			return again, err
		}
		reader = w.o.Live
	}
	return 0, fmt.Errorf("writing the status of Kyma %s: %w", kyma, errBusy)
}

// isBehind says whether a Kyma as read does not show our own last write. It is no good for telling what has to be written: what is
// pending may be the same as what an older one says, and other than what is there.
func (w *Writer) isBehind(kyma types.NamespacedName, k *v1beta2.Kyma) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.open[kyma]
	return a != nil && a.pending != nil && isOlder(k.ResourceVersion, a.version)
}

// writeOver writes over a status as it was read.
func (w *Writer) writeOver(ctx context.Context, kyma types.NamespacedName, k *v1beta2.Kyma) (again time.Duration, err error) {
	c, at, took := w.take(kyma, k)
	if c == nil {
		return 0, nil
	}
	busy, pause := w.o.Busy(), rest*took
	if busy {
		pause = max(pause, restBusy)
	}
	if wait := time.Until(at.Add(pause)); wait > 0 {
		return wait, nil
	}
	next := merge(k, c, catalog.Wanted(k, w.o.Catalog.In(k.Namespace)), metav1.Now())
	changed := difference(&k.Status, &next)
	if len(changed) == 0 {
		w.done(kyma, c, k.ResourceVersion, false, k)
		return 0, nil
	}
	if wait := time.Until(at.Add(restUnfinished)); wait > 0 && busy && next.ObservedGeneration < k.Generation {
		return wait, nil
	}
	if wait := time.Until(at.Add(w.o.Pause)); wait > 0 && sameButMessages(&next, &k.Status) {
		return wait, nil
	}
	began := time.Now()
	version, err := w.patch(ctx, k, changed)
	if err != nil {
		if apierrors.IsNotFound(err) {
			w.Forget(kyma)
			return 0, nil
		}
		return 0, err
	}
	k.Status = next
	w.done(kyma, c, version, true, k)
	w.paced(kyma, time.Since(began))
	return 0, nil
}

// patch writes the parts of the status that differ, on top of the Kyma as it was read, and returns the version that this led to. The
// answer is asked for without the Kyma in it: we know what that says.
func (w *Writer) patch(ctx context.Context, k *v1beta2.Kyma, changed map[string]any) (version string, err error) {
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": k.ResourceVersion, "uid": k.UID}, "status": changed,
	})
	if err != nil {
		return "", fmt.Errorf("serialising the status: %w", err)
	}
	meta := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name}}
	meta.SetGroupVersionKind(v1beta2.GroupVersion.WithKind("Kyma"))
	if err := w.o.Client.Status().Patch(ctx, meta, client.RawPatch(types.MergePatchType, body)); err != nil {
		return "", err
	}
	return meta.ResourceVersion, nil
}

// difference is a merge patch (RFC 7386) of a status: the fields that differ, whole.
func difference(old, next *v1beta2.KymaStatus) map[string]any {
	out := map[string]any{}
	was, is := reflect.ValueOf(old).Elem(), reflect.ValueOf(next).Elem()
	for i := range is.NumField() {
		name, _, _ := strings.Cut(is.Type().Field(i).Tag.Get("json"), ",")
		switch field := is.Field(i); {
		case isSame(was.Field(i).Interface(), field.Interface()):
		case field.IsZero() || (field.Kind() == reflect.Slice && field.Len() == 0):
			out[name] = nil
		default:
			out[name] = field.Interface()
		}
	}
	return out
}

// isSame compares two values of a field. Modules are most of a status, and mostly the same.
func isSame(a, b any) bool {
	if was, ok := a.([]v1beta2.ModuleStatus); ok {
		return slices.EqualFunc(was, b.([]v1beta2.ModuleStatus), sameModule)
	}
	return equality.Semantic.DeepEqual(a, b)
}

// sameModule is equality.Semantic.DeepEqual without reflection.
func sameModule(a, b v1beta2.ModuleStatus) bool {
	return a.Name == b.Name && a.Namespace == b.Namespace && a.Channel == b.Channel && a.Version == b.Version && a.State == b.State &&
		a.Message == b.Message && slices.Equal(a.WaitingFor, b.WaitingFor) && a.InputDigest == b.InputDigest &&
		a.BundleDigest == b.BundleDigest && a.Revision == b.Revision && a.LastTransitionTime.Equal(&b.LastTransitionTime)
}

// rest is how many times as long as a write has taken nothing is written to the same Kyma afterwards: the status of a Kyma with many
// modules is large, and what comes meanwhile goes into one write. While there is a wave of work, it is restBusy at least, and
// restUnfinished as long as not all modules have been seen to for the newest spec: there is more to come, and at the end of it all is written.
const (
	rest           = 3
	restBusy       = time.Second
	restUnfinished = 5 * time.Second
)

// paced books how long a write took.
func (w *Writer) paced(kyma types.NamespacedName, took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.account(kyma).took = took
}

// take is all that the Kyma as read does not show, nil if nothing is to be written now; when the last write was, and how long it took:
// never and no time at the end, when nothing rests.
func (w *Writer) take(kyma types.NamespacedName, k *v1beta2.Kyma) (c *changes, at time.Time, took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.open[kyma]
	if a == nil || a.pending == nil || (a.lulled && !a.urgent && !w.ending) {
		return nil, time.Time{}, 0
	}
	c = newChanges()
	for _, unseen := range a.unseen(k) {
		c.over(unseen)
	}
	if w.ending {
		return c, time.Time{}, 0
	}
	return c, a.at, a.took
}

// done books a write of changes c. Reports that came meanwhile stay pending.
func (w *Writer) done(kyma types.NamespacedName, c *changes, version string, wrote bool, k *v1beta2.Kyma) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.account(kyma)
	if a.written == nil {
		a.written = newChanges()
	}
	a.written.over(c) // also what was there already: the cache may not show it yet
	if wrote || isOlder(a.version, version) {
		a.version = version
	}
	if wrote {
		a.at = time.Now()
	}
	if a.pending != nil {
		a.pending.subtract(c)
		if k.Status.ObservedGeneration < k.Generation { // the others' evaluations are still to come
			for name, generation := range c.evaluated {
				a.pending.evaluated[name] = max(generation, a.pending.evaluated[name])
			}
		}
		if a.pending.empty() {
			a.pending, a.urgent, a.lulled = nil, false, false
		}
	}
}

// sweep forgets what the cache must have shown by now.
func (w *Writer) sweep(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for kyma, a := range w.open {
		if a.pending == nil && now.Sub(a.at) > sweepAge {
			delete(w.open, kyma)
		}
	}
}

// sweepAge is how long a write is remembered at most for a cache that does not show it.
const sweepAge = time.Minute

// subtract drops what was written, unless it was replaced meanwhile, and tells those who wait for it.
func (c *changes) subtract(written *changes) {
	for name, m := range written.modules {
		if now, ok := c.modules[name]; ok && now == m {
			for _, f := range c.after[name] {
				f()
			}
			delete(c.modules, name)
			delete(c.after, name)
		}
	}
	for name, generation := range written.evaluated {
		if c.evaluated[name] == generation {
			delete(c.evaluated, name)
		}
	}
	if c.runtimeUID == written.runtimeUID {
		c.runtimeUID = ""
	}
	if c.reachable == written.reachable {
		c.reachable = nil
	}
}

func (c *changes) empty() bool {
	return len(c.modules) == 0 && len(c.evaluated) == 0 && c.runtimeUID == "" && c.reachable == nil
}

// sameButMessages says whether two statuses differ in messages only.
func sameButMessages(a, b *v1beta2.KymaStatus) bool {
	return equality.Semantic.DeepEqual(withoutMessages(a), withoutMessages(b))
}

func withoutMessages(s *v1beta2.KymaStatus) *v1beta2.KymaStatus {
	out := s.DeepCopy()
	for i := range out.Modules {
		out.Modules[i].Message = ""
	}
	for i := range out.Conditions {
		out.Conditions[i].Message = ""
	}
	return out
}
