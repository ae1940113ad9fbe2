package module

import (
	"context"
	"testing"

	"github.com/kyma-project/mothership/internal/cluster"
	"github.com/kyma-project/mothership/internal/remote"
	"github.com/kyma-project/mothership/reconciler"
)

// ways are how a runtime is asked: many things at once, and in a wave one after the other.
var ways = map[string]func(context.Context) context.Context{"AtOnce": cluster.AtOnce, "InTurn": cluster.InTurn}

// upgrade takes a module from what a result says that is installed to a component, and returns the requests that it took.
func (s *site) upgrade(in func(context.Context) context.Context, from reconciler.Component, installed reconciler.Result, to reconciler.Component) remote.Stats {
	s.t.Helper()
	before := s.rt.Stats()
	r := s.reconciler.Reconcile(in(s.t.Context()), reconciler.Request{
		Component: to, Runtime: s.rt, Installed: &reconciler.Installed{BundleDigest: installed.BundleDigest, Component: from},
	})
	if r.Outcome != reconciler.OutcomeDone {
		s.t.Fatalf("%s: %s %v", r.Outcome, r.Message, r.Err)
	}
	took := remote.Stats{}
	for verb, n := range s.rt.Stats() {
		if n > before[verb] {
			took[verb] = n - before[verb]
		}
	}
	return took
}

func (s *site) value(name string) string {
	s.t.Helper()
	var obj struct {
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
		Data map[string]string `json:"data"`
	}
	if err := s.client.Get(s.t.Context(), configMaps, s.namespace, name, &obj); err != nil {
		s.t.Fatal(err)
	}
	return obj.Data["v"]
}

func TestUpgradeOfWhatIsKnown(t *testing.T) {
	t.Parallel()
	for name, in := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			one := s.component("web", config("a", "1"), config("b", "1"), config("c", "1"))
			two := s.component("web", config("a", "2"), config("b", "1"), config("c", "2"))
			installed := s.install(one)
			took := s.upgrade(in, one, installed, two)
			if took[remote.VerbList] != 0 || took[remote.VerbGet] != 1 || took[remote.VerbApply] != 3 {
				t.Errorf("it took %v: want the inventory read, two objects applied and the inventory written", took)
			}
			if s.value("a") != "2" || s.value("b") != "1" || s.value("c") != "2" {
				t.Errorf("a=%s b=%s c=%s", s.value("a"), s.value("b"), s.value("c"))
			}
			before := s.rt.Stats()[remote.VerbApply]
			if s.install(two); s.rt.Stats()[remote.VerbApply] != before {
				t.Error("a look afterwards finds something to do")
			}
		})
	}
}

// A process that has just started does not remember the old bundle: it is rendered again.
func TestUpgradeAfterARestart(t *testing.T) {
	t.Parallel()
	s := setup(t)
	one, two := s.component("web", config("a", "1")), s.component("web", config("a", "2"))
	installed := s.install(one)
	s.reconciler.recent = newRecent()
	if took := s.upgrade(cluster.InTurn, one, installed, two); took[remote.VerbList] != 0 {
		t.Errorf("it took %v", took)
	}
}

func TestUpgradeThatMustLook(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		two    []string
		before func(*site, *reconciler.Result)
		want   string
	}{
		"other objects":        {two: []string{config("a", "2"), config("new", "2")}, want: "a new"},
		"one less":             {two: []string{config("a", "2")}, want: "a"},
		"another bundle there": {two: []string{config("a", "2"), config("b", "1")}, before: func(_ *site, r *reconciler.Result) { r.BundleDigest = "sha256:0" }, want: "a b"},
		"a field was taken":    {two: []string{config("a", "2"), config("b", "1")}, before: func(s *site, _ *reconciler.Result) { s.patch(configMaps, "a", `{"data":{"v":"mine"}}`) }, want: "a b"},
		"an object is missing": {two: []string{config("a", "2"), config("b", "2")}, before: func(s *site, _ *reconciler.Result) { s.delete(configMaps, "b") }, want: "a b"},
	} {
		for way, in := range ways {
			t.Run(name+" "+way, func(t *testing.T) {
				t.Parallel()
				s := setup(t)
				one := s.component("web", config("a", "1"), config("b", "1"))
				installed := s.install(one)
				if c.before != nil {
					c.before(s, &installed)
				}
				two := s.component("web", c.two...)
				s.upgrade(in, one, installed, two)
				if got := s.configs(two); got != c.want || s.value("a") != "2" {
					t.Errorf("there is %q, a=%s", got, s.value("a"))
				}
				before := s.rt.Stats()[remote.VerbApply]
				if s.install(two); s.rt.Stats()[remote.VerbApply] != before {
					t.Error("a look afterwards finds something to do")
				}
			})
		}
	}
}
