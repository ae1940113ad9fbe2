package status

import (
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kyma-project/mothership/api/v1beta2"
)

var (
	before = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	now    = metav1.NewTime(before.Add(time.Hour))
)

// with is a Kyma of generation 2, of which 1 was observed, with modules given as "name state".
func with(modules ...string) *v1beta2.Kyma {
	k := &v1beta2.Kyma{Spec: v1beta2.KymaSpec{Channel: "regular"}}
	k.Generation, k.Status.ObservedGeneration = 2, 1
	for _, m := range modules {
		name, state, _ := strings.Cut(m, " ")
		k.Status.Modules = append(k.Status.Modules, v1beta2.ModuleStatus{
			Name: name, State: v1beta2.State(state), InputDigest: "in", BundleDigest: "out", LastTransitionTime: before,
		})
	}
	return k
}

// reports are changes of modules given as "name state", evaluated for generation 2; without a state it is gone.
func reports(modules ...string) *changes {
	c := newChanges()
	for _, m := range modules {
		name, state, there := strings.Cut(m, " ")
		c.evaluated[name] = 2
		if c.modules[name] = nil; there {
			c.modules[name] = &v1beta2.ModuleStatus{Name: name, State: v1beta2.State(state)}
		}
	}
	return c
}

func unreachable(c *changes, reason string) *changes {
	c.reachable = &metav1.Condition{Type: v1beta2.ConditionReachable, Status: metav1.ConditionFalse, Reason: reason, Message: "it does not answer"}
	return c
}

func suspended(k *v1beta2.Kyma) *v1beta2.Kyma {
	k.Spec.Suspend = true
	return k
}

func deleting(k *v1beta2.Kyma) *v1beta2.Kyma {
	k.DeletionTimestamp = &now
	return k
}

func TestMerge(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		kyma    *v1beta2.Kyma
		changes *changes
		wanted  string
		want    string // state, ready, reason: message
	}{
		"Nothing":               {with(), reports(), "", "Ready 0/0 AllModulesReady: 0 of 0 modules are ready"},
		"AllReady":              {with("a Ready"), reports("a Ready", "b Ready"), "a b", "Ready 2/2 AllModulesReady: 2 of 2 modules are ready"},
		"Unmanaged":             {with(), reports("a Unmanaged", "b Ready"), "a b", "Ready 2/2 AllModulesReady: 2 of 2 modules are ready"},
		"NotEvaluated":          {with("a Ready", "b Ready"), reports("a Ready"), "a b", "Processing 2/2 ModulesProcessing: in work: "},
		"NotReported":           {with(), reports("a Ready"), "a b", "Processing 1/2 ModulesProcessing: in work: b"},
		"Waiting":               {with(), reports("a Ready", "b Waiting"), "a b", "Processing 1/2 ModulesProcessing: in work: b"},
		"Processing":            {with(), reports("b Processing", "a Deleting"), "b", "Processing 0/2 ModulesProcessing: in work: a, b"},
		"WarningBeforeBusy":     {with(), reports("a Warning", "b Processing"), "a b", "Warning 0/2 ModuleWarning: with a warning: a"},
		"ErrorBeforeWarning":    {with(), reports("a Warning", "b Error", "c Ready"), "a b c", "Error 1/3 ModuleError: in error: b"},
		"Unreachable":           {with("a Ready"), unreachable(reports(), v1beta2.ReasonUnauthorized), "a", "Warning 1/1 Unauthorized: it does not answer"},
		"UnreachableAndWarning": {with("a Warning"), unreachable(reports(), v1beta2.ReasonUnreachable), "a", "Warning 0/1 Unreachable: it does not answer"},
		"UnreachableAndError":   {with("a Error"), unreachable(reports(), v1beta2.ReasonUnreachable), "a", "Error 0/1 ModuleError: in error: a"},
		"NotThereYet":           {with(), unreachable(reports(), v1beta2.ReasonRuntimeNotReady), "a", "Processing 0/1 RuntimeNotReady: it does not answer"},
		"Suspended":             {suspended(with("a Ready")), reports(), "a", "Ready 1/1 Suspended: suspended: nothing is installed, repaired or removed (spec.suspend)"},
		"SuspendedInError":      {suspended(with("a Error")), reports(), "a", "Error 0/1 Suspended: suspended: nothing is installed, repaired or removed (spec.suspend)"},
		"Deleting":              {deleting(with("a Ready", "b Deleting")), reports(), "", "Deleting 1/2 Deleting: removing b"},
		"DeletingTheLast":       {deleting(with("a Deleting")), reports("a"), "", "Deleting 0/0 Deleting: removing"},
		"DeletingUnreachable":   {deleting(with("a Ready")), unreachable(reports(), v1beta2.ReasonUnreachable), "", "Deleting 1/1 Deleting: cannot remove the modules: it does not answer"},
		"Gone":                  {with("a Ready", "b Deleting"), reports("b", "a Ready"), "a", "Ready 1/1 AllModulesReady: 1 of 1 modules are ready"},
		"ManyInError":           {with(), reports("a Error", "b Error", "c Error", "d Error", "e Error", "f Error", "g Error", "h Error", "i Error", "j Error", "k Error", "l Error"), "", "Error 0/12 ModuleError: in error: a, b, c, d, e, f, g, h, i, j and 2 more"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			untouched := test.kyma.DeepCopy()
			s := merge(test.kyma, test.changes, strings.Fields(test.wanted), now)
			c := meta.FindStatusCondition(s.Conditions, v1beta2.ConditionReady)
			if got := string(s.State) + " " + s.ModulesReady + " " + c.Reason + ": " + c.Message; got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if ready := c.Status == metav1.ConditionTrue; ready != (c.Reason == v1beta2.ReasonAllReady) {
				t.Errorf("condition %+v", c)
			}
			if diff := cmp.Diff(untouched, test.kyma); diff != "" {
				t.Errorf("the Kyma was changed:\n%s", diff)
			}
		})
	}
}

// The status is summed up anew where it does not have what is wanted, or counts what it does not have.
func TestSumsUp(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		ready  string
		wanted []string
		want   bool
	}{
		"AllThatAreWanted":       {"1/2", []string{"a", "b"}, true},
		"OneOnItsWayOut":         {"1/2", []string{"a"}, true},
		"OneMoreIsWanted":        {"1/2", []string{"a", "b", "c"}, false},
		"OneMoreWasWanted":       {"1/3", []string{"a", "b"}, false},
		"NothingSummedUpYet":     {"", []string{"a", "b"}, false},
		"AnotherInItsStead":      {"1/2", []string{"a", "c"}, false},
		"NoneWantedAndSomeStay":  {"0/2", nil, true},
		"NoneWantedAndMoreCount": {"0/3", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			k := with("a Ready", "b Error")
			k.Status.ModulesReady = tt.ready
			if got := sumsUp(k, tt.wanted); got != tt.want {
				t.Errorf("sums up: %v", got)
			}
		})
	}
}

// The generation is observed when all that is wanted was worked on for it, and not before.
func TestObservedGeneration(t *testing.T) {
	t.Parallel()
	old := reports("a Ready", "b Ready")
	old.evaluated["b"] = 1
	for name, test := range map[string]struct {
		changes *changes
		want    int64
		channel string
	}{
		"None": {reports(), 1, ""}, "Some": {reports("a Ready"), 1, ""}, "ForAnOlderOne": {old, 1, ""}, "All": {reports("a Ready", "b Error"), 2, "regular"},
		"MoreThanWanted": {reports("a Ready", "b Ready", "c"), 2, "regular"},
	} {
		s := merge(with("a Ready", "b Ready"), test.changes, []string{"a", "b"}, now)
		c := meta.FindStatusCondition(s.Conditions, v1beta2.ConditionReady)
		if s.ObservedGeneration != test.want || s.ActiveChannel != test.channel || c.ObservedGeneration != test.want {
			t.Errorf("%s: observed %d (condition %d), channel %q", name, s.ObservedGeneration, c.ObservedGeneration, s.ActiveChannel)
		}
	}
}

// What another cluster has says nothing of this one.
func TestDigestsOfAnotherClusterAreForgotten(t *testing.T) {
	t.Parallel()
	k := with("a Ready", "b Ready")
	k.Status.RuntimeUID = "first"
	c := reports("b Ready")
	c.modules["b"].InputDigest, c.runtimeUID = "new", "second"
	s := merge(k, c, []string{"a", "b"}, now)
	if s.RuntimeUID != "second" || s.Modules[0].InputDigest+s.Modules[0].BundleDigest != "" || s.Modules[1].InputDigest != "new" {
		t.Errorf("%s: %+v", s.RuntimeUID, s.Modules)
	}
	for _, uid := range []string{"", "first"} { // nothing is known, or nothing new
		c := reports("b Ready")
		c.runtimeUID = uid
		if s := merge(k, c, nil, now); s.Modules[0].InputDigest != "in" || s.RuntimeUID != "first" {
			t.Errorf("%s: %+v", s.RuntimeUID, s.Modules)
		}
	}
}

func TestTransitionTimeIsThatOfTheState(t *testing.T) {
	t.Parallel()
	c := reports("a Ready", "b Error", "c Ready")
	c.modules["a"].Message = "another"
	s := merge(with("a Ready", "b Ready"), c, nil, now)
	for i, want := range []metav1.Time{before, now, now} {
		if got := s.Modules[i].LastTransitionTime; got != want {
			t.Errorf("module %s: %s, want %s", s.Modules[i].Name, got, want)
		}
	}
}

func TestMessagesAreBoundedAndListsSorted(t *testing.T) {
	t.Parallel()
	c := reports("a Waiting")
	c.modules["a"].Message, c.modules["a"].WaitingFor = strings.Repeat("ä", maxMessage), []string{"b", "a"}
	s := merge(with(), unreachable(c, v1beta2.ReasonUnreachable), nil, now)
	m := s.Modules[0]
	if len(m.Message) > maxMessage || len(m.Message) < maxMessage-4 || !utf8.ValidString(m.Message) || !strings.HasSuffix(m.Message, "ä…") {
		t.Errorf("%d bytes: …%s", len(m.Message), m.Message[len(m.Message)-8:])
	}
	if diff := cmp.Diff([]string{"a", "b"}, m.WaitingFor); diff != "" {
		t.Error(diff)
	}
	if got := bounded(strings.Repeat("a", maxMessage)); len(got) != maxMessage {
		t.Errorf("what fits was cut to %d", len(got))
	}
}

// Merging is idempotent, so that a status is not written for nothing.
func TestMergeTwice(t *testing.T) {
	t.Parallel()
	k := with("a Ready")
	c := unreachable(reports("a Error", "b Waiting", "c"), v1beta2.ReasonForbidden)
	c.runtimeUID = "it"
	first := merge(k, c, []string{"a", "b"}, before)
	k.Status = first
	if diff := cmp.Diff(first, merge(k, c, []string{"a", "b"}, now)); diff != "" {
		t.Errorf("the second time:\n%s", diff)
	}
}

func TestNewerChangesLieOverOlder(t *testing.T) {
	t.Parallel()
	c := reports("a Ready", "b Ready")
	c.runtimeUID = "it"
	newer := reports("b", "c Error")
	newer.evaluated["b"] = 1
	c.over(newer)
	if c.modules["a"] == nil || c.modules["b"] != nil || c.modules["c"] == nil || c.evaluated["b"] != 2 || c.runtimeUID != "it" {
		t.Errorf("%+v", c)
	}
}

// A field that is compared by nobody would never be written.
func TestEveryFieldOfAModuleIsCompared(t *testing.T) {
	t.Parallel()
	if !sameModule(v1beta2.ModuleStatus{WaitingFor: []string{}}, v1beta2.ModuleStatus{}) {
		t.Error("an empty list is not the same as none")
	}
	for i := range reflect.TypeFor[v1beta2.ModuleStatus]().NumField() {
		var m v1beta2.ModuleStatus
		switch field := reflect.ValueOf(&m).Elem().Field(i); value := field.Addr().Interface().(type) {
		case *[]string:
			*value = []string{"x"}
		case *metav1.Time:
			*value = metav1.Unix(1, 0)
		default:
			field.SetString("x")
		}
		if sameModule(m, v1beta2.ModuleStatus{}) || sameModule(v1beta2.ModuleStatus{}, m) || !sameModule(m, m) {
			t.Errorf("%+v is not told from a module without anything", m)
		}
	}
}
