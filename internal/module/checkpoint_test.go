package module

import (
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/bundle"
	"github.com/kyma-project/mothership/internal/cluster"
	"github.com/kyma-project/mothership/reconciler"
)

var errNewer = errors.New("newer state is wanted")

// partOf selects the members of a component.
func partOf(c reconciler.Component) string {
	return v1beta2.ApplySetPartOfLabel + "=" + bundle.ApplySetID(c.Namespace, c.Name)
}

var (
	definitions = cluster.Resource{GroupVersionResource: schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, Kind: "CustomResourceDefinition"}
	accounts    = cluster.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}, Kind: "ServiceAccount", Namespaced: true}
)

// stopAt is a checkpoint that fails when it is asked for the nth time.
func stopAt(n int, asked *int) func() error {
	return func() error {
		if *asked++; *asked == n {
			return errNewer
		}
		return nil
	}
}

// stopped runs a component until the checkpoint is asked for the nth time, and says whether it was.
func (s *site) stopped(c reconciler.Component, n int) bool {
	s.t.Helper()
	asked := 0
	r := s.reconciler.Reconcile(s.t.Context(), reconciler.Request{Component: c, Runtime: s.rt, Checkpoint: stopAt(n, &asked)})
	if asked < n {
		if r.Outcome != reconciler.OutcomeDone {
			s.t.Fatalf("not stopped after %d: %+v", asked, r)
		}
		return false
	}
	if r.Outcome != reconciler.OutcomeSuperseded || !errors.Is(r.Err, errNewer) || asked != n {
		s.t.Fatalf("stopped at %d of %d: %+v", n, asked, r)
	}
	if r.InputDigest != "" || r.BundleDigest != "" {
		s.t.Errorf("stopped at %d, but applied to the end: %+v", n, r)
	}
	return true
}

// TestStoppingLosesNothing stops an upgrade at each checkpoint there is, and has a third version go on from there.
func TestStoppingLosesNothing(t *testing.T) {
	t.Parallel()
	const account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: web}\n"
	points := 0
	for n := 1; n < 20; n++ {
		more := t.Run(fmt.Sprintf("At%d", n), func(t *testing.T) {
			s := setup(t)
			s.install(s.component("web", config("first", "1"), config("dropped", "1")))
			second := s.component("web", widgets, account, config("first", "2"), config("second", "2"), widget("one"))
			if !s.stopped(second, n) {
				points = n - 1
				return
			}
			if n == 1 && s.configs(second) != "dropped first" {
				t.Errorf("before the first write: %s", s.configs(second))
			}
			third := s.component("web", config("first", "3"), config("third", "3"))
			s.until(third)
			if got := s.configs(third); got != "first third" {
				t.Errorf("members: %s", got)
			}
			eventually(t, func() string { return s.leftOf(third) })
		})
		if !more || points > 0 {
			break
		}
	}
	if points != 5 { // before the first write, between four stages, before pruning
		t.Errorf("%d checkpoints", points)
	}
}

// leftOf says whether anything but ConfigMaps is left of a component.
func (s *site) leftOf(c reconciler.Component) string {
	s.t.Helper()
	var left string
	for _, r := range []cluster.Resource{definitions, accounts} {
		items, err := s.client.ListMeta(s.t.Context(), r, cluster.ListOptions{LabelSelector: partOf(c)})
		if err != nil {
			s.t.Fatal(err)
		}
		for _, item := range items {
			left += " " + r.Kind + " " + item.Name
		}
	}
	return left
}

func TestRemovalStopsBeforeItBegins(t *testing.T) {
	t.Parallel()
	s := setup(t)
	c := s.component("web", config("a", "1"))
	s.install(c)
	c.Deleting = true
	if !s.stopped(c, 1) || s.configs(c) != "a" {
		t.Errorf("members: %q", s.configs(c))
	}
	asked := 0
	r := s.reconciler.Reconcile(t.Context(), reconciler.Request{Component: c, Runtime: s.rt, Checkpoint: stopAt(2, &asked)})
	if r.Outcome == reconciler.OutcomeSuperseded || asked != 1 {
		t.Errorf("a removal that has begun was asked about %d times: %+v", asked, r)
	}
}
