package status

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// maxMessage bounds a message in the status, in bytes.
const maxMessage = 1024

// changes are what is to be merged into a Kyma's status.
type changes struct {
	// modules by name; nil for one that is gone.
	modules map[string]*v1beta2.ModuleStatus
	// evaluated are the generations of the spec that modules were last worked on for, by name.
	evaluated map[string]int64
	// runtimeUID of the cluster that the modules are in; empty if nothing is known.
	runtimeUID string
	// reachable is the condition of that; nil if nothing is known.
	reachable *metav1.Condition
	// after is whom to tell once the modules' reports are written, by name.
	after map[string][]func()
}

func newChanges() *changes {
	return &changes{modules: map[string]*v1beta2.ModuleStatus{}, evaluated: map[string]int64{}, after: map[string][]func(){}}
}

// over lays newer changes over these.
func (c *changes) over(newer *changes) {
	if newer.runtimeUID != "" {
		c.runtimeUID = newer.runtimeUID
	}
	if newer.reachable != nil {
		c.reachable = newer.reachable
	}
	for name, m := range newer.modules {
		c.modules[name] = m
	}
	for name, list := range newer.after {
		c.after[name] = append(c.after[name], list...)
	}
	for name, generation := range newer.evaluated {
		c.evaluated[name] = max(generation, c.evaluated[name])
	}
}

// merge is a Kyma's status after changes. wanted are the names of the modules that the Kyma shall have. It changes nothing, and
// its result depends on nothing else.
func merge(k *v1beta2.Kyma, c *changes, wanted []string, now metav1.Time) v1beta2.KymaStatus {
	out := k.Status // whose slices may be a cache's
	out.Modules, out.Conditions = slices.Clone(out.Modules), slices.Clone(out.Conditions)
	if c.runtimeUID != "" && out.RuntimeUID != c.runtimeUID {
		forgetDigests(&out)
		out.RuntimeUID = c.runtimeUID
	}
	out.Modules = mergeModules(out.Modules, c.modules, now)
	if allEvaluated(k, c, wanted) {
		out.ObservedGeneration, out.ActiveChannel = k.Generation, k.Spec.Channel
	}
	if c.reachable != nil {
		meta.SetStatusCondition(&out.Conditions, *c.reachable)
	}
	summarise(k, &out, wanted, now)
	return out
}

// forgetDigests: what another cluster has says nothing of this one.
func forgetDigests(s *v1beta2.KymaStatus) {
	for i := range s.Modules {
		s.Modules[i].InputDigest, s.Modules[i].BundleDigest, s.Modules[i].Revision = "", "", ""
	}
}

func mergeModules(old []v1beta2.ModuleStatus, reports map[string]*v1beta2.ModuleStatus, now metav1.Time) []v1beta2.ModuleStatus {
	var out []v1beta2.ModuleStatus
	before := map[string]*v1beta2.ModuleStatus{}
	for i := range old {
		before[old[i].Name] = &old[i]
		if _, reported := reports[old[i].Name]; !reported {
			out = append(out, old[i])
		}
	}
	for name, m := range reports {
		if next := mergedModule(before[name], m, now); next != nil {
			out = append(out, *next)
		}
	}
	slices.SortFunc(out, func(a, b v1beta2.ModuleStatus) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// mergedModule is a module's status after a report; nil for one that is gone.
func mergedModule(before, report *v1beta2.ModuleStatus, now metav1.Time) *v1beta2.ModuleStatus {
	if report == nil {
		return nil
	}
	next := *report
	next.Message = bounded(next.Message)
	next.WaitingFor = slices.Sorted(slices.Values(next.WaitingFor))
	next.LastTransitionTime = now
	if before != nil && before.State == next.State {
		next.LastTransitionTime = before.LastTransitionTime
	}
	return &next
}

// allEvaluated says whether every wanted module was worked on for the newest spec.
func allEvaluated(k *v1beta2.Kyma, c *changes, wanted []string) bool {
	if k.Status.ObservedGeneration == k.Generation {
		return true
	}
	return !slices.ContainsFunc(wanted, func(name string) bool { return c.evaluated[name] < k.Generation })
}

// bounded cuts a message where it is too long, between two characters.
func bounded(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	return strings.ToValidUTF8(s[:maxMessage-len("…")], "") + "…"
}

// ranking of states: the first that any module has is the Kyma's.
var ranking = []v1beta2.State{v1beta2.StateError, v1beta2.StateWarning, v1beta2.StateDeleting, v1beta2.StateProcessing}

// rank is what a module's state means for its Kyma.
func rank(s v1beta2.State) v1beta2.State {
	switch s {
	case v1beta2.StateReady, v1beta2.StateUnmanaged:
		return v1beta2.StateReady
	case v1beta2.StateWaiting, v1beta2.StateDeleting, "":
		return v1beta2.StateProcessing
	}
	return s
}

// summarise says in one word, one condition and one figure how all modules are.
func summarise(k *v1beta2.Kyma, out *v1beta2.KymaStatus, wanted []string, now metav1.Time) {
	groups, ready := map[v1beta2.State][]string{}, 0
	seen := map[string]bool{}
	for _, m := range out.Modules {
		seen[m.Name] = true
		state := rank(m.State)
		if state == v1beta2.StateReady {
			ready++
		}
		groups[state] = append(groups[state], m.Name)
	}
	for _, name := range wanted {
		if !seen[name] {
			groups[v1beta2.StateProcessing] = append(groups[v1beta2.StateProcessing], name)
			seen[name] = true
		}
	}
	out.ModulesReady = fmt.Sprintf("%d/%d", ready, len(seen))
	condition := verdict(k, out, groups, len(seen))
	condition.Type, condition.ObservedGeneration, condition.LastTransitionTime = v1beta2.ConditionReady, out.ObservedGeneration, now
	meta.SetStatusCondition(&out.Conditions, condition)
}

// sumsUp says whether a Kyma's status has all modules that it shall have, and has been summed up from no others.
func sumsUp(k *v1beta2.Kyma, wanted []string) bool {
	reported := make(map[string]bool, len(k.Status.Modules))
	for i := range k.Status.Modules {
		reported[k.Status.Modules[i].Name] = true
	}
	_, total, _ := strings.Cut(k.Status.ModulesReady, "/")
	return total == strconv.Itoa(len(reported)) && !slices.ContainsFunc(wanted, func(name string) bool { return !reported[name] })
}

// verdict decides the state and its condition.
func verdict(k *v1beta2.Kyma, out *v1beta2.KymaStatus, groups map[v1beta2.State][]string, total int) metav1.Condition {
	no := func(state v1beta2.State, reason, message string) metav1.Condition {
		out.State = state
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: reason, Message: bounded(message)}
	}
	unreachable := meta.FindStatusCondition(out.Conditions, v1beta2.ConditionReachable)
	if unreachable != nil && unreachable.Status != metav1.ConditionFalse {
		unreachable = nil
	}
	errs, warnings, busy := groups[v1beta2.StateError], groups[v1beta2.StateWarning], groups[v1beta2.StateProcessing]
	switch {
	case k.DeletionTimestamp != nil:
		return no(v1beta2.StateDeleting, v1beta2.ReasonDeleting, deletingMessage(unreachable, errs, warnings, busy))
	case k.Spec.Suspend:
		return no(stateOf(groups), v1beta2.ReasonSuspended, "suspended: nothing is installed, repaired or removed (spec.suspend)")
	case len(errs) > 0:
		return no(v1beta2.StateError, v1beta2.ReasonModuleError, "in error: "+names(errs))
	case unreachable != nil && unreachable.Reason == v1beta2.ReasonRuntimeNotReady:
		return no(v1beta2.StateProcessing, unreachable.Reason, unreachable.Message)
	case unreachable != nil:
		return no(v1beta2.StateWarning, unreachable.Reason, unreachable.Message)
	case len(warnings) > 0:
		return no(v1beta2.StateWarning, v1beta2.ReasonModuleWarning, "with a warning: "+names(warnings))
	case len(busy) > 0 || out.ObservedGeneration != k.Generation:
		return no(v1beta2.StateProcessing, v1beta2.ReasonProcessing, "in work: "+names(busy))
	}
	out.State = v1beta2.StateReady
	return metav1.Condition{Status: metav1.ConditionTrue, Reason: v1beta2.ReasonAllReady, Message: fmt.Sprintf("%d of %d modules are ready", total, total)}
}

func deletingMessage(unreachable *metav1.Condition, errs, warnings, busy []string) string {
	switch {
	case unreachable != nil:
		return "cannot remove the modules: " + unreachable.Message
	case len(errs)+len(warnings)+len(busy) == 0:
		return "removing"
	}
	return "removing " + names(slices.Concat(errs, warnings, busy))
}

// stateOf is the first state of the ranking that any module has.
func stateOf(groups map[v1beta2.State][]string) v1beta2.State {
	for _, state := range ranking {
		if len(groups[state]) > 0 {
			return state
		}
	}
	return v1beta2.StateReady
}

// maxNames bounds how many modules a message names.
const maxNames = 10

func names(list []string) string {
	list = slices.Sorted(slices.Values(list))
	out := strings.Join(list[:min(len(list), maxNames)], ", ")
	if more := len(list) - maxNames; more > 0 {
		out += fmt.Sprintf(" and %d more", more)
	}
	return out
}
