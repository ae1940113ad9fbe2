package fleet_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kyma-project/mothership/internal/fleet"
)

var (
	first  = types.NamespacedName{Namespace: "kcp-system", Name: "eu-1"}
	second = types.NamespacedName{Namespace: "kcp-system", Name: "eu-2"}
)

func TestKeys(t *testing.T) {
	t.Parallel()
	if got := fleet.RuntimeOf(fleet.ModuleKey(first, "istio")); got != first {
		t.Errorf("the module's runtime is %s", got)
	}
	if got := fleet.RuntimeOf(fleet.RuntimeKey(first)); got != first || fleet.RuntimeKey(first).Component != "" {
		t.Errorf("the runtime is %s", got)
	}
}

func TestSuspects(t *testing.T) {
	t.Parallel()
	var s fleet.Suspects
	a, b := fleet.ModuleKey(first, "a"), fleet.ModuleKey(second, "b")
	if s.Has(a) || s.Take(a) {
		t.Error("suspected without a reason")
	}
	s.Add(a)
	s.Add(a)
	s.Add(b)
	if !s.Has(a) || !s.Take(a) || s.Has(a) || s.Take(a) {
		t.Error("not taken exactly once")
	}
	s.Add(a)
	s.Forget(first)
	if s.Has(a) || !s.Has(b) {
		t.Error("forgot too little or too much")
	}
}

// The first request that is seen is old: a start must not look at everything.
func TestAsked(t *testing.T) {
	t.Parallel()
	var s fleet.Suspects
	for i, test := range []struct {
		request string
		want    bool
	}{{"yesterday", false}, {"yesterday", false}, {"now", true}, {"now", false}, {"", true}, {"now", true}} {
		if got := s.Asked(first, test.request); got != test.want {
			t.Errorf("%d: %q: %t", i, test.request, got)
		}
	}
	if s.Asked(second, "now") {
		t.Error("another's request counts")
	}
	s.Forget(first)
	if s.Asked(first, "later") {
		t.Error("it is known after it was forgotten")
	}
}

func TestClaims(t *testing.T) {
	t.Parallel()
	var c fleet.Claims
	claim := func(uid string, kyma, want types.NamespacedName) {
		t.Helper()
		if got := c.Claim(uid, kyma); got != want {
			t.Errorf("cluster %s belongs to %s, want %s", uid, got, want)
		}
	}
	c.Release(first)
	claim("x", first, first)
	claim("x", first, first)
	claim("x", second, first)
	c.Release(second) // it has nothing
	claim("x", second, first)
	claim("y", first, first) // its kubeconfig leads elsewhere: it gives up the other
	claim("x", second, second)
	claim("x", first, second)
	claim("y", second, first)
	c.Release(first)
	claim("y", second, second)
	claim("x", first, first)
}
