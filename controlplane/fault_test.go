package controlplane_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// faults are what can be wrong with a runtime as a whole, and what is to be said about it.
var faults = map[string]struct {
	fault  fault
	reason string
}{
	"Hangs":           {hangs, v1beta2.ReasonUnreachable},
	"Refuses":         {refuses, v1beta2.ReasonUnreachable},
	"Unauthorized":    {says(http.StatusUnauthorized, metav1.StatusReasonUnauthorized), v1beta2.ReasonUnauthorized},
	"Forbidden":       {says(http.StatusForbidden, metav1.StatusReasonForbidden), v1beta2.ReasonForbidden},
	"Throttled":       {says(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests), v1beta2.ReasonUnavailable},
	"Unavailable":     {says(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable), v1beta2.ReasonUnavailable},
	"ForbiddenPartly": {at("/configmaps", says(http.StatusForbidden, metav1.StatusReasonForbidden)), v1beta2.ReasonForbidden},
}

// modulesAtFault is how many modules a runtime at fault has: they must not cost more than one.
const modulesAtFault = 5

func (s *site) several() []v1beta2.Module {
	s.t.Helper()
	var out []v1beta2.Module
	for _, name := range []string{"a", "b", "c", "d", "e"}[:modulesAtFault] {
		s.offers(name, "1.0.0")
		out = append(out, s.entry(name))
	}
	return out
}

// A runtime that fails is one condition, costs few calls and writes, and is taken up again by itself.
func TestRuntimeAtFault(t *testing.T) {
	t.Parallel()
	for name, test := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.join()
			s.wants(s.several()...)
			before := s.ready()
			s.proxy.has(test.fault)
			for _, m := range before.Spec.Modules { // all of them have something to do
				s.offersAgain(strings.TrimPrefix(m.Name, s.name+"-"))
			}
			k := s.unreachable(test.reason)
			if k.Status.State != v1beta2.StateWarning || reasonOf(k) != test.reason {
				t.Errorf("state %s, reason %s", k.Status.State, reasonOf(k))
			}
			s.sick(test.reason)
			s.proxy.has(nil)
			s.ready()
			for _, m := range before.Spec.Modules {
				s.data(strings.TrimPrefix(m.Name, s.name+"-"), "version", "again")
			}
			if k := s.ready(); !meta.IsStatusConditionTrue(k.Status.Conditions, v1beta2.ConditionReachable) {
				t.Errorf("conditions %+v", k.Status.Conditions)
			}
		})
	}
}

// offersAgain changes a module's template.
func (s *site) offersAgain(name string) {
	s.t.Helper()
	s.offersAs(name, "again")
}

// offersAs changes a module's template to one whose object has a version.
func (s *site) offersAs(name, version string) {
	s.t.Helper()
	change(s, &v1beta2.ModuleTemplate{}, s.mod(name)+"-1.0.0", func(t *v1beta2.ModuleTemplate) {
		t.Spec.Source = s.manifests(configMap(s.mod(name), map[string]string{"version": version}))
	})
}

// sick watches a runtime at fault for a while: what it costs, and what is said.
func (s *site) sick(reason string) {
	s.t.Helper()
	s.proxy.forget()
	seen := s.during(sickness)
	for _, k := range seen {
		if c := meta.FindStatusCondition(k.Status.Conditions, v1beta2.ConditionReachable); c == nil || c.Reason != reason {
			s.t.Errorf("the condition flaps: %+v", c)
		}
		for _, m := range k.Status.Modules {
			if m.State != v1beta2.StateReady && m.State != v1beta2.StateProcessing {
				s.t.Errorf("module %s is %s because of its runtime: %s", m.Name, m.State, m.Message)
			}
		}
	}
	if len(seen) > 2 {
		s.t.Errorf("%d writes of the status in %s", len(seen), sickness)
	}
	if asked := s.proxy.asked(); len(asked) > 24 {
		s.t.Errorf("%d requests in %s: %q", len(asked), sickness, asked)
	}
}

// sickness is how long a runtime at fault is watched.
const sickness = 4 * time.Second

// A runtime that fails from the beginning, and others beside it.
func TestRuntimeAtFaultFromTheBeginning(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.proxy.has(says(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable))
	s.join()
	s.wants(s.several()...)
	k := s.unreachable(v1beta2.ReasonUnavailable)
	for _, m := range k.Status.Modules {
		t.Errorf("module %s is %s although nothing is known of it", m.Name, m.State)
	}
	s.sick(v1beta2.ReasonUnavailable)
	s.proxy.has(nil)
	s.ready()
}

func TestKubeconfigThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.proxy.token = s.token
	s.join(func(r *v1beta2.Runtime) { r.Spec.Kubeconfig.SecretRef.Name = s.name + "-late" })
	s.offers("app", "1.0.0")
	s.wants(s.entry("app"))
	k := s.unreachable(v1beta2.ReasonRuntimeNotReady)
	if k.Status.State != v1beta2.StateProcessing {
		t.Errorf("state %s", k.Status.State)
	}
	late := s.secret(s.name+"-late", map[string]string{"kubeconfig": "users: [{name: it, user: {token: " + canary("nowhere") + "}}]"})
	s.create(late)
	k = s.unreachable(v1beta2.ReasonKubeconfigInvalid)
	if c := meta.FindStatusCondition(k.Status.Conditions, v1beta2.ConditionReachable); !strings.Contains(c.Message, "Secret "+late.Name+", key kubeconfig") {
		t.Errorf("message %q", c.Message)
	}
	set := func(kubeconfig []byte) {
		change(s, &corev1.Secret{}, late.Name, func(secret *corev1.Secret) { secret.Data = map[string][]byte{"kubeconfig": kubeconfig} })
	}
	set(s.proxy.kubeconfig(canary("wrong")))
	s.unreachable(v1beta2.ReasonUnauthorized)
	set(s.proxy.kubeconfig(s.token))
	s.ready()
}

// blinks answers only every other fifth of a second.
func blinks(w http.ResponseWriter, r *http.Request) bool {
	const blink = 200
	return time.Now().UnixMilli()/blink%2 == 0 && says(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable)(w, r)
}

// A runtime that answers now and then does not have its status written each time that it does.
func TestRuntimeThatAnswersNowAndThen(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.join()
	s.wants(s.several()...)
	before := s.ready()
	s.proxy.has(blinks)
	for round := range 4 { // there is always something to do
		for _, m := range before.Spec.Modules {
			s.offersAs(strings.TrimPrefix(m.Name, s.name+"-"), strconv.Itoa(round))
		}
		flips, last := 0, metav1.ConditionStatus("")
		seen := s.during(sickness / 2)
		for _, k := range seen {
			if c := meta.FindStatusCondition(k.Status.Conditions, v1beta2.ConditionReachable); c != nil && c.Status != last {
				flips, last = flips+1, c.Status
			}
		}
		if flips > 3 || len(seen) > 3*modulesAtFault {
			t.Errorf("round %d: the status was written %d times, and whether the runtime answers said in %d ways", round, len(seen), flips)
		}
	}
	s.proxy.has(nil)
	for _, m := range before.Spec.Modules {
		s.data(strings.TrimPrefix(m.Name, s.name+"-"), "version", "3")
	}
}
