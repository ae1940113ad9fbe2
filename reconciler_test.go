package mothership_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kyma-project/mothership"
	"github.com/kyma-project/mothership/internal/infra/local/node"
	"github.com/kyma-project/mothership/reconciler"
)

// plant is a runtime and the built-in reconciler, for tests of its contract.
type plant struct {
	*site
	proxy      *proxy
	runtime    reconciler.Runtime
	reconciler reconciler.Reconciler
}

func newPlant(t *testing.T) *plant {
	t.Helper()
	s := setup(t)
	p := newProxy(t, s.cfg)
	rt, closeIt, err := mothership.NewRuntime("eu-1", p.cfg, mothership.Connection{CallTimeout: 5 * time.Second, Retries: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(closeIt)
	return &plant{site: s, proxy: p, runtime: rt, reconciler: mothership.NewReconciler(mothership.Options{})}
}

// component is a module as a control plane would hand it over.
func (p *plant) component(name, yaml string) reconciler.Component {
	p.t.Helper()
	m := p.module(name, yaml)
	m.Template.Version = "1.2.3"
	return reconciler.Component{Name: m.Name, Namespace: m.Namespace, Template: m.Template}
}

func (p *plant) reconcile(c reconciler.Component, facts ...string) reconciler.Result {
	p.t.Helper()
	known := map[string]string{}
	for _, f := range facts {
		known[f] = "known"
	}
	return p.reconciler.Reconcile(p.t.Context(), reconciler.Request{Component: c, Runtime: p.runtime, Facts: known})
}

// until reconciles as a control loop does, until it is neither retrying nor waiting.
func (p *plant) until(c reconciler.Component) reconciler.Result {
	p.t.Helper()
	var last reconciler.Result
	eventually(p.t, func() string {
		last = p.reconcile(c)
		if last.Outcome == reconciler.OutcomeRetry {
			return "still " + last.Message
		}
		return ""
	})
	return last
}

// settle calls a reconciler as a control loop does, but more often, until it is done, has failed or waits for a fact.
func settle(r reconciler.Reconciler, req reconciler.Request) reconciler.Result {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		result := r.Reconcile(ctx, req)
		if result.Outcome != reconciler.OutcomeRetry {
			return result
		}
		select {
		case <-ctx.Done():
			return result
		case <-tick.C:
		}
	}
}

func TestReconcileOutcomes(t *testing.T) {
	t.Parallel()
	t.Run("DonePublishesTheModule", func(t *testing.T) {
		t.Parallel()
		p := newPlant(t)
		c := p.component("web", web)
		r := p.reconcile(c)
		if r.Outcome != reconciler.OutcomeRetry || r.After <= 0 || r.Err != nil {
			t.Fatalf("before it is ready: %+v", r)
		}
		wants(t, r.Message, "not ready", "Deployment.apps "+p.namespace+"/web")
		r = p.until(c)
		want := reconciler.Done(reconciler.Fact{Key: "module.web", Value: "1.2.3"})
		want.BundleDigest = p.verify(mothership.Module{Name: c.Name, Namespace: c.Namespace, Template: c.Template}).BundleDigest
		want.Revision = r.Revision
		if diff := cmp.Diff(want, r); diff != "" || !strings.HasPrefix(r.Revision, "sha256:") {
			t.Errorf("revision %q; result (-want +got):\n%s", r.Revision, diff)
		}
		c.Deleting = true
		if r = p.until(c); r.Outcome != reconciler.OutcomeDone || len(r.Facts) != 0 {
			t.Errorf("deleting: %+v", r)
		}
		if p.parent(mothership.Module{Name: c.Name, Namespace: c.Namespace}) != nil {
			t.Error("the inventory is left")
		}
	})
	t.Run("WaitsForFacts", func(t *testing.T) {
		t.Parallel()
		p := newPlant(t)
		c := p.component("web", config)
		c.Template.Needs = []string{"network.vnetName", "module.istio", "kubeconfig.secret"}
		p.proxy.has(refuses) // it costs no request
		r := p.reconcile(c, "kubeconfig.secret")
		if diff := cmp.Diff(reconciler.Waiting("module.istio", "network.vnetName"), r); diff != "" {
			t.Errorf("result (-want +got):\n%s", diff)
		}
		p.proxy.has(nil)
		if r := p.reconcile(c, c.Template.Needs...); r.Outcome != reconciler.OutcomeDone {
			t.Errorf("with all facts: %+v", r)
		}
	})
	t.Run("RetriesWhatPasses", func(t *testing.T) {
		t.Parallel()
		p := newPlant(t)
		c := p.component("web", config)
		p.proxy.has(at("PATCH", "", says(503, "ServiceUnavailable", "starting")))
		if r := p.reconcile(c); r.Outcome != reconciler.OutcomeRetry || r.Err == nil {
			t.Errorf("result: %+v", r)
		}
		p.proxy.has(nil)
		missing := p.component("late", config+"---"+widget)
		if r := p.reconcile(missing); r.Outcome != reconciler.OutcomeRetry || r.Err == nil {
			t.Errorf("another module may bring the definition: %+v", r)
		}
	})
	t.Run("RetryWhatAGrantMends", func(t *testing.T) {
		t.Parallel()
		p := newPlant(t)
		p.proxy.has(at("PATCH", "", says(403, "Forbidden", "no")))
		if r := p.reconcile(p.component("web", config)); r.Outcome != reconciler.OutcomeRetry || r.Err == nil {
			t.Errorf("forbidden: %+v", r)
		}
	})
	t.Run("TerminalUntilItChanges", func(t *testing.T) {
		t.Parallel()
		p := newPlant(t)
		for name, yaml := range map[string]string{
			"malformed": "kind: [", "refused": strings.Replace(config, "name: config", "name: Config_1", 1),
			"failed": strings.Replace(job, "TROUBLE", node.Simulate+": "+node.Fail, 1),
		} {
			if r := p.until(p.component(name, yaml)); r.Outcome != reconciler.OutcomeTerminal || r.Err == nil {
				t.Errorf("%s: %+v", name, r)
			}
		}
	})
	t.Run("BlockedRemovalNamesWhatBlocks", func(t *testing.T) {
		t.Parallel()
		p := newPlant(t)
		c := p.component("widgets", widgets)
		p.until(c)
		p.input(strings.Replace(widget, "name: one", "name: mine", 1), "apply", "-f", "-")
		c.Deleting = true
		r := p.reconcile(c)
		if r.Outcome != reconciler.OutcomeRetry || r.After < 10*time.Second {
			t.Errorf("result: %+v", r)
		}
		wants(t, r.Message, "Widget", p.namespace+"/mine")
		p.kubectl("delete", "widgets."+p.namespace+".test", "mine")
		if r := p.until(c); r.Outcome != reconciler.OutcomeDone {
			t.Errorf("result: %+v", r)
		}
	})
	t.Run("OtherRuntime", func(t *testing.T) {
		t.Parallel()
		p := newPlant(t)
		r := p.reconciler.Reconcile(t.Context(), reconciler.Request{Component: p.component("web", config)})
		if r.Outcome != reconciler.OutcomeTerminal {
			t.Errorf("result: %+v", r)
		}
	})
}

func TestHooks(t *testing.T) {
	t.Parallel()
	var calls []string
	hook := func(name string, r reconciler.Result) reconciler.Func {
		return func(context.Context, reconciler.Request) reconciler.Result {
			calls = append(calls, name)
			return r
		}
	}
	base := reconciler.Func(func(_ context.Context, req reconciler.Request) reconciler.Result {
		calls = append(calls, "base "+req.Component.Name)
		return reconciler.Done(reconciler.Fact{Key: "base", Value: "1"})
	})
	waiting, done := reconciler.Waiting("x"), reconciler.Done(reconciler.Fact{Key: "after", Value: "2"})
	failing := errors.New("no such thing")
	for name, test := range map[string]struct {
		hooks    reconciler.Hooks
		deleting bool
		want     reconciler.Result
		calls    []string
	}{
		"None":        {reconciler.Hooks{}, false, reconciler.Done(reconciler.Fact{Key: "base", Value: "1"}), []string{"base c"}},
		"BeforeWaits": {reconciler.Hooks{Before: hook("before", waiting), After: hook("after", done)}, false, waiting, []string{"before"}},
		"All": {reconciler.Hooks{Before: hook("before", reconciler.Done()), After: hook("after", done)}, false,
			reconciler.Done(reconciler.Fact{Key: "base", Value: "1"}, reconciler.Fact{Key: "after", Value: "2"}), []string{"before", "base c", "after"}},
		"AfterWaits": {reconciler.Hooks{After: hook("after", waiting)}, false, waiting, []string{"base c", "after"}},
		"Deleting": {reconciler.Hooks{Before: hook("before", waiting), BeforeDelete: hook("delete", reconciler.Done()), After: hook("after", waiting)}, true,
			reconciler.Done(reconciler.Fact{Key: "base", Value: "1"}), []string{"delete", "base c"}},
		"Default": {reconciler.Hooks{Default: func(_ context.Context, req *reconciler.Request) error { req.Component.Name = "d"; return nil }}, false,
			reconciler.Done(reconciler.Fact{Key: "base", Value: "1"}), []string{"base d"}},
		"DefaultFails": {reconciler.Hooks{Default: func(context.Context, *reconciler.Request) error { return failing }}, false, reconciler.Terminal(failing), nil},
	} {
		t.Run(name, func(t *testing.T) {
			calls = nil
			req := reconciler.Request{Component: reconciler.Component{Name: "c", Deleting: test.deleting}}
			got := reconciler.With(base, test.hooks).Reconcile(t.Context(), req)
			if got.Outcome != test.want.Outcome || !errors.Is(got.Err, test.want.Err) || !cmp.Equal(got.Facts, test.want.Facts) || !cmp.Equal(got.Needs, test.want.Needs) {
				t.Errorf("result %+v, want %+v", got, test.want)
			}
			if diff := cmp.Diff(test.calls, calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}
