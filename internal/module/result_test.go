package module

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kyma-project/mothership/internal/apply"
	"github.com/kyma-project/mothership/internal/cluster"
	"github.com/kyma-project/mothership/reconciler"
)

// TestContestedFieldIsAWarning has another manager take a field again and again.
func TestContestedFieldIsAWarning(t *testing.T) {
	t.Parallel()
	s := setup(t)
	c := s.component("web", config("a", "ours"))
	first := s.install(c)
	const theirs = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"v":"theirs"}}`
	for i := range 4 {
		err := s.client.Apply(t.Context(), configMaps, s.namespace, "a", []byte(theirs), cluster.ApplyOptions{Manager: "fighter", Force: true}, nil)
		if err != nil {
			t.Fatal(err)
		}
		r := s.install(c)
		if r.InputDigest != first.InputDigest || r.BundleDigest != first.BundleDigest || r.InputDigest == "" {
			t.Errorf("digests: %+v, at first %+v", r, first)
		}
		if i < 3 {
			if len(r.Warnings) != 0 {
				t.Errorf("pass %d warns: %v", i, r.Warnings)
			}
			continue
		}
		if len(r.Warnings) != 1 || r.Warnings[0].Reason != reconciler.WarningFieldContested {
			t.Fatalf("warnings: %v", r.Warnings)
		}
		for _, word := range []string{"ConfigMap " + s.namespace + "/a", ".data.v", "fighter"} {
			if !strings.Contains(r.Warnings[0].Message, word) {
				t.Errorf("%q is not in: %s", word, r.Warnings[0])
			}
		}
	}
}

func TestWithProgress(t *testing.T) {
	t.Parallel()
	s := setup(t)
	events := make(chan apply.Event, 10)
	c := s.component("web", config("a", "1"))
	r := s.reconciler.WithProgress(func(e apply.Event) { events <- e }).Reconcile(t.Context(), reconciler.Request{Component: c, Runtime: s.rt})
	if r.Outcome != reconciler.OutcomeDone || len(events) != 1 {
		t.Fatalf("%d events: %+v", len(events), r)
	}
	if e := <-events; e.Action != apply.ActionCreate || e.Object.Name != "a" {
		t.Errorf("event: %+v", e)
	}
	s.patch(configMaps, "a", `{"data":{"v":"2"}}`)
	s.install(c)
	if len(events) != 0 {
		t.Error("the base tells too")
	}
}

// TestWhatIsNotThereYetIsNoError: a wait that comes to its bound names what it waited for.
func TestWhatIsNotThereYetIsNoError(t *testing.T) {
	t.Parallel()
	held := strings.Replace(config("a", "1"), "{name: a}", "{name: a, finalizers: [test.local/hold]}", 1)
	for name, next := range map[string][]string{
		"ObjectThatGoesFirst":  {held},
		"InstanceThatIsPruned": {widgets, config("b", "1")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			s.reconciler.patience = 100 * time.Millisecond
			r, object := configMaps, "a"
			first := s.component("web", held)
			if len(next) > 1 {
				r, object = s.widgetsOf(), "one"
				first = s.component("web", widgets, config("b", "1"), "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: cleaner}\n",
					strings.Replace(widget("one"), "{name: one}", "{name: one, finalizers: [test.local/hold]}", 1))
			}
			s.until(first) // the definition takes longer than that
			if r == configMaps {
				s.delete(r, object)
			}
			c := s.component("web", next...)
			result := s.run(c)
			if result.Outcome != reconciler.OutcomeRetry || result.After <= 0 || result.Err != nil || !strings.Contains(result.Message, s.namespace+"/"+object) ||
				!strings.Contains(result.Message, "test.local/hold") {
				t.Fatalf("held up: %+v", result)
			}
			s.patch(r, object, `{"metadata":{"finalizers":null}}`)
			s.until(c)
		})
	}
}

// TestNamespaceThatGoesIsWaitedFor: a module is installed again once the namespace that is being deleted is gone.
func TestNamespaceThatGoesIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := setup(t)
	const held = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"held","finalizers":["test.local/hold"]}}`
	if err := s.client.Create(t.Context(), configMaps, s.namespace, []byte(held), nil); err != nil {
		t.Fatal(err)
	}
	if err := s.client.Delete(t.Context(), namespaces, "", s.namespace, cluster.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c := s.component("web", config("a", "1"))
	r := s.run(c)
	if r.Outcome != reconciler.OutcomeRetry || r.After <= 0 || r.Err != nil || !strings.Contains(r.Message, s.namespace+"/a") {
		t.Fatalf("while it is being deleted: %+v", r)
	}
	s.patch(configMaps, "held", `{"metadata":{"finalizers":null}}`)
	s.until(c)
}

func TestBlockedAndFailedAreErrorsThatAreLookedAtAgain(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.install(s.component("web", widgets, config("a", "1")))
	body := strings.ReplaceAll(`{"apiVersion":"$NS.test/v1","kind":"Widget","metadata":{"name":"mine"}}`, "$NS", s.namespace)
	if err := s.client.Create(t.Context(), s.widgetsOf(), s.namespace, []byte(body), nil); err != nil {
		t.Fatal(err)
	}
	c := s.component("web")
	c.Deleting = true
	r := s.run(c)
	var blocked *BlockedError
	if r.Outcome != reconciler.OutcomeRetry || r.After < 10*time.Second || !errors.As(r.Err, &blocked) || !strings.Contains(r.Message, "mine") {
		t.Fatalf("blocked: %+v", r)
	}
	var failed *FailedError
	if r := report(c, []apply.NotReady{{Failed: true, Message: "broken"}}); r.Outcome != reconciler.OutcomeRetry || r.After <= 0 || !errors.As(r.Err, &failed) {
		t.Errorf("failed: %+v", r)
	}
	s.delete(s.widgetsOf(), "mine")
	s.until(c)
}
