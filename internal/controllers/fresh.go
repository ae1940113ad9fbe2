package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/shard"
)

const (
	// freshTimeout bounds one comparison of caches with the API.
	freshTimeout = 30 * time.Second
	// freshWait bounds the wait for one cache: what was deleted since the comparison began never comes.
	freshWait = 5 * time.Second
	// freshPause is the time between two comparisons, freshPoll that between two looks into a cache.
	freshPause = time.Second
	freshPoll  = 10 * time.Millisecond
	// freshPage is how many objects are read at once: their metadata only.
	freshPage = 500
)

// kinds are what decisions depend on. The catalogue comes first: it is taken in by then.
var kinds = []struct {
	name   string
	list   func() client.ObjectList
	shared bool // each replica has its share of them
}{
	{"ModuleTemplate", func() client.ObjectList { return &v1beta2.ModuleTemplateList{} }, false},
	{"ModuleReleaseMeta", func() client.ObjectList { return &v1beta2.ModuleReleaseMetaList{} }, false},
	{"Runtime", func() client.ObjectList { return &v1beta2.RuntimeList{} }, true},
	{"Kyma", func() client.ObjectList { return &v1beta2.KymaList{} }, true},
}

// fresh waits until the caches show everything that is in the API at the time of the call, for some slots. A process that has just
// been woken may have caches of an hour ago, and their watches take a while to notice.
func (s *share) fresh(ctx context.Context, slots map[shard.Slot]bool) error {
	ctx, cancel := context.WithTimeout(ctx, freshTimeout)
	defer cancel()
	for _, kind := range kinds {
		now, err := s.live(ctx, kind.name)
		if err != nil {
			return err
		}
		if kind.shared {
			now.only(slots)
		}
		if err := s.await(ctx, now, kind.list); err != nil {
			return fmt.Errorf("waiting for the cache of %ss: %w", kind.name, err)
		}
	}
	return nil
}

// errBehind says that a cache is older than the API, and stays so.
var errBehind = errors.New("it is behind")

// snapshot is the versions of all objects of a kind, and that of the whole.
type snapshot struct {
	version string
	objects map[types.NamespacedName]string
	of      func(types.NamespacedName) bool // which are of interest
}

func (n *snapshot) only(slots map[shard.Slot]bool) {
	n.of = func(name types.NamespacedName) bool { return slots[shard.SlotOf(name.String())] }
}

// live reads the snapshot from the API.
func (s *share) live(ctx context.Context, kind string) (*snapshot, error) {
	out := &snapshot{objects: map[types.NamespacedName]string{}, of: func(types.NamespacedName) bool { return true }}
	reader := s.fleet.o.Manager.GetAPIReader()
	for next := ""; ; { // ends with the last page
		var page metav1.PartialObjectMetadataList
		page.SetGroupVersionKind(v1beta2.GroupVersion.WithKind(kind + "List"))
		if err := reader.List(ctx, &page, client.Limit(freshPage), client.Continue(next)); err != nil {
			return nil, fmt.Errorf("reading the versions of %ss: %w", kind, err)
		}
		out.version = page.ResourceVersion
		for i := range page.Items {
			out.objects[client.ObjectKeyFromObject(&page.Items[i])] = page.Items[i].ResourceVersion
		}
		if next = page.Continue; next == "" {
			return out, nil
		}
	}
}

// await waits until a cache is not older than a snapshot.
func (s *share) await(ctx context.Context, now *snapshot, list func() client.ObjectList) error {
	ctx, cancel := context.WithTimeoutCause(ctx, freshWait, errBehind)
	defer cancel()
	tick := time.NewTicker(freshPoll)
	defer tick.Stop()
	for {
		cached := list()
		if err := s.fleet.o.Manager.GetClient().List(ctx, cached, client.UnsafeDisableDeepCopy); err != nil {
			return err
		}
		behind, err := now.newer(cached)
		if err != nil || !behind {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// newer says whether a snapshot has anything that a cache does not have yet, or no longer has what the cache still has.
func (n *snapshot) newer(cached client.ObjectList) (bool, error) {
	seen, newer := map[types.NamespacedName]bool{}, false
	err := meta.EachListItem(cached, func(obj runtime.Object) error {
		m, err := meta.Accessor(obj)
		if err != nil {
			return err
		}
		name := types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()}
		if !n.of(name) {
			return nil
		}
		seen[name] = true
		want, there := n.objects[name]
		if !there {
			want = n.version // it was deleted before the snapshot, or made after it
		}
		order, err := resourceversion.CompareResourceVersion(m.GetResourceVersion(), want)
		newer = newer || order < 0
		return err
	})
	for name := range n.objects {
		newer = newer || (n.of(name) && !seen[name])
	}
	return newer, err
}
