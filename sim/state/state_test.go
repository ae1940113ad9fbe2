package state_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kyma-project/mothership/sim/schema"
	"github.com/kyma-project/mothership/sim/state"
)

// bench is a cluster and its ConfigMaps.
type bench struct {
	t    *testing.T
	w    *state.World
	c    *state.Cluster
	maps *schema.Version
}

func setup(t *testing.T, o state.Options) *bench {
	t.Helper()
	w := state.NewWorld(o)
	c, err := w.NewCluster("eu-1")
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t: t, w: w, c: c, maps: resource(t, c, "", "configmaps")}
}

func resource(t *testing.T, c *state.Cluster, group, name string) *schema.Version {
	t.Helper()
	v := c.Catalog().Resource(apischema.GroupVersionResource{Group: group, Version: "v1", Resource: name})
	if v == nil {
		t.Fatalf("%s is not served", name)
	}
	return v
}

func (b *bench) apply(c *state.Cluster, name, value string) state.Object {
	b.t.Helper()
	body := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"v":%q}}`, name, value)
	o, err := c.Patch(&state.Write{Version: b.maps, Namespace: "default", Name: name, Body: body, Manager: "m"}, types.ApplyPatchType)
	if err != nil {
		b.t.Fatal(err)
	}
	return o
}

func (b *bench) list(limit int64, next string) (string, *state.List, error) {
	l, err := b.c.List(b.maps, state.Filter{Namespace: "default"}, limit, next)
	if err != nil {
		return "", nil, err
	}
	var names []string
	for _, o := range l.Objects {
		names = append(names, o.Content.Name)
	}
	return strings.Join(names, " "), l, nil
}

func TestPagesAreOfOneMoment(t *testing.T) {
	t.Parallel()
	b := setup(t, state.Options{})
	for _, name := range []string{"a", "b", "c", "d"} {
		b.apply(b.c, name, "1")
	}
	names, first, err := b.list(2, "")
	if err != nil || names != "a b" || *first.Remaining != 2 {
		t.Fatal(names, err)
	}
	b.apply(b.c, "bb", "1")
	names, second, err := b.list(2, first.Continue)
	if err != nil || names != "c d" || second.Version != first.Version || second.Continue != "" {
		t.Fatal(names, err)
	}
	for i := range 40 { // other lists push it out
		b.apply(b.c, "x", fmt.Sprint(i))
		if _, _, err := b.list(1, ""); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := b.list(2, first.Continue); !apierrors.IsResourceExpired(err) {
		t.Errorf("an old token: %v", err)
	}
}

func TestWatchGivesEveryChangeInOrderOrExpires(t *testing.T) {
	t.Parallel()
	b := setup(t, state.Options{History: 8})
	from := b.c.ResourceVersion()
	w := b.c.Watch(b.maps, state.Filter{Namespace: "default"}, from)
	b.apply(b.c, "a", "1")
	b.apply(b.c, "a", "2")
	if _, _, err := b.c.Delete(b.maps, "default", "a", state.Deletion{}); err != nil {
		t.Fatal(err)
	}
	events, more, err := w.Next()
	if err != nil || len(events) != 3 {
		t.Fatal(events, err)
	}
	for i, want := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
		if events[i].Type != want || events[i].Object.Identity.ResourceVersion != from+uint64(i)+1 {
			t.Errorf("event %d: %+v, want %s", i, events[i], want)
		}
	}
	select {
	case <-more:
		t.Error("it says that there is more")
	default:
	}
	for i := range 40 {
		b.apply(b.c, "b", fmt.Sprint(i))
	}
	<-more
	if _, _, err := w.Next(); !apierrors.IsResourceExpired(err) {
		t.Errorf("far behind: %v", err)
	}
}

func TestTheSameIsNotWrittenTwice(t *testing.T) {
	t.Parallel()
	b := setup(t, state.Options{})
	one := b.apply(b.c, "a", "1")
	if again := b.apply(b.c, "a", "1"); again.Identity.ResourceVersion != one.Identity.ResourceVersion {
		t.Error("the same apply made a new version")
	}
}

func TestWhatOneClusterWasToldCostsTheNextALookUp(t *testing.T) {
	t.Parallel()
	b := setup(t, state.Options{})
	one := b.apply(b.c, "a", "1")
	other, err := b.w.NewCluster("eu-2")
	if err != nil {
		t.Fatal(err)
	}
	before, _ := b.w.Merges()
	two := b.apply(other, "a", "1")
	if after, _ := b.w.Merges(); after != before+1 {
		t.Errorf("%d remembered before, %d after", before, after)
	}
	if one.Content != two.Content || one.Identity.UID == two.Identity.UID {
		t.Error("two clusters do not share content, or share identity")
	}
}

const deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":2,
  "selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`

func TestWorkloadsGetReadyAfterTheirDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, state.Options{MinDelay: time.Minute, MaxDelay: 2 * time.Minute})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go b.w.Run(ctx)
		v := resource(t, b.c, "apps", "deployments")
		made, err := b.c.Create(&state.Write{Version: v, Namespace: "default", Body: []byte(deployment), Manager: "m"})
		if err != nil {
			t.Fatal(err)
		}
		ready := func() bool {
			o, err := b.c.Get(v, "default", "web")
			if err != nil {
				t.Fatal(err)
			}
			status, _ := o.Content.Tree()["status"].(map[string]any)
			return fmt.Sprint(status["readyReplicas"], status["observedGeneration"]) == "2 1" && o.Identity.Generation == made.Identity.Generation
		}
		time.Sleep(59 * time.Second)
		synctest.Wait()
		if ready() {
			t.Error("it is ready at once")
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if !ready() || b.w.Pending() != 0 {
			t.Errorf("not ready in time; %d pending", b.w.Pending())
		}
	})
}

func TestForegroundAndOrphan(t *testing.T) {
	t.Parallel()
	for propagation, left := range map[metav1.DeletionPropagation]string{
		metav1.DeletePropagationForeground: "", metav1.DeletePropagationOrphan: "owned", metav1.DeletePropagationBackground: "",
	} {
		t.Run(string(propagation), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t, state.Options{})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go b.w.Run(ctx)
				owner := b.apply(b.c, "owner", "1")
				body := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"owned","ownerReferences":[
					{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":%q,"blockOwnerDeletion":true}]}}`, owner.Identity.UID)
				if _, err := b.c.Create(&state.Write{Version: b.maps, Namespace: "default", Body: body, Manager: "m"}); err != nil {
					t.Fatal(err)
				}
				if _, _, err := b.c.Delete(b.maps, "default", "owner", state.Deletion{Propagation: propagation}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if names, _, err := b.list(0, ""); err != nil || names != left {
					t.Errorf("left: %q %v, want %q", names, err, left)
				}
			})
		})
	}
}
