package fleetview

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/controlplane"
	"github.com/kyma-project/mothership/internal/catalog"
	"github.com/kyma-project/mothership/internal/values"
)

// Input is what an explanation is made from.
type Input struct {
	// Kyma to explain. Needed.
	Kyma *v1beta2.Kyma
	// Runtime of the same name, nil if there is none.
	Runtime *v1beta2.Runtime
	// Catalog of the Kyma's namespace. Needed.
	Catalog catalog.Catalog
	// Engine is what the control plane itself says it does, nil if it could not be asked.
	Engine *controlplane.Explanation
}

// Explanation says how a Kyma is, why, what was tried, and what happens next.
type Explanation struct {
	Kyma  string        `json:"kyma"`
	State v1beta2.State `json:"state"`
	// Why is the state in a sentence.
	Why     string              `json:"why,omitempty"`
	Suspend bool                `json:"suspend,omitempty"`
	Runtime RuntimeExplanation  `json:"runtime"`
	Modules []ModuleExplanation `json:"modules"`
	// Asked says that the control plane itself was asked; without it there are no attempts and times.
	Asked bool `json:"asked"`
}

// RuntimeExplanation says how the runtime is.
type RuntimeExplanation struct {
	// Exists is false if there is no Runtime of the Kyma's name.
	Exists bool          `json:"exists"`
	State  v1beta2.State `json:"state,omitempty"`
	// Why it is not ready, or does not answer.
	Why string `json:"why,omitempty"`
	// Failures is how often in a row it did not answer, NextProbe when it is asked again.
	Failures  int        `json:"failures,omitempty"`
	NextProbe *time.Time `json:"nextProbe,omitempty"`
	Advice    string     `json:"advice,omitempty"`
}

// ModuleExplanation says how a module is.
type ModuleExplanation struct {
	Module
	// Waits says what each missing fact is, and what brings it.
	Waits []string `json:"waits,omitempty"`
	// Attempts is how many runs have failed since the last success; Tried is what the last one said, TriedAt when that was.
	Attempts int        `json:"attempts,omitempty"`
	Tried    string     `json:"tried,omitempty"`
	TriedAt  *time.Time `json:"triedAt,omitempty"`
	// Next is what happens next, NextAt when, if there is a time for it.
	Next   string     `json:"next"`
	NextAt *time.Time `json:"nextAt,omitempty"`
	// Advice is what a person can do.
	Advice string `json:"advice,omitempty"`
}

// Explain explains a Kyma.
func Explain(in Input) Explanation {
	k := in.Kyma
	out := Explanation{
		Kyma: k.Name, State: k.Status.State, Suspend: k.Spec.Suspend, Asked: in.Engine != nil,
		Runtime: explainRuntime(in), Modules: []ModuleExplanation{},
	}
	if ready := meta.FindStatusCondition(k.Status.Conditions, v1beta2.ConditionReady); ready != nil {
		out.Why = ready.Message
	}
	if k.Status.State == "" {
		out.State, out.Why = v1beta2.StateProcessing, "the control plane has not looked at it yet: is one running?"
	}
	for _, m := range Modules(k) {
		out.Modules = append(out.Modules, explainModule(in, m))
	}
	return out
}

// Of leaves one module only; false if there is no such module.
func (e Explanation) Of(module string) (Explanation, bool) {
	i := slices.IndexFunc(e.Modules, func(m ModuleExplanation) bool { return m.Module.Module == module })
	if i < 0 {
		return e, false
	}
	e.Modules = e.Modules[i : i+1]
	return e, true
}

func explainRuntime(in Input) RuntimeExplanation {
	name := in.Kyma.Name
	if in.Runtime == nil {
		return RuntimeExplanation{
			Why:    "there is no Runtime " + name + ": a Kyma has the name of its Runtime",
			Advice: "mothership runtime add " + name + " --no-kyma, or delete the Kyma",
		}
	}
	out := RuntimeExplanation{Exists: true, State: in.Runtime.Status.State}
	if c := meta.FindStatusCondition(in.Runtime.Status.Conditions, v1beta2.ConditionReady); c != nil && c.Status != metav1.ConditionTrue {
		out.Why = c.Message
	}
	if c := meta.FindStatusCondition(in.Kyma.Status.Conditions, v1beta2.ConditionReachable); c != nil && c.Status == metav1.ConditionFalse {
		out.Why = c.Message
	}
	if in.Engine != nil && in.Engine.Unreachable {
		out.Failures, out.NextProbe = in.Engine.Failures, in.Engine.NextProbe
	}
	return out
}

func explainModule(in Input, m Module) ModuleExplanation {
	out := ModuleExplanation{Module: m}
	for _, fact := range m.WaitingFor {
		out.Waits = append(out.Waits, explainFact(in, fact))
	}
	c := componentOf(in.Engine, m.Module)
	if c != nil {
		out.Attempts, out.TriedAt = c.Attempts, c.LastAt
		if c.LastAt != nil {
			out.Tried = strings.TrimSuffix(c.Last+": "+c.Message, ": ")
		}
	}
	out.Next, out.NextAt, out.Advice = next(in, m, c)
	return out
}

func componentOf(e *controlplane.Explanation, name string) *controlplane.ComponentExplanation {
	if e == nil {
		return nil
	}
	for i := range e.Components {
		if e.Components[i].Name == name {
			return &e.Components[i]
		}
	}
	return nil
}

// next is what happens next with a module, when, and what a person can do.
func next(in Input, m Module, c *controlplane.ComponentExplanation) (what string, at *time.Time, advice string) {
	name := in.Kyma.Name
	switch {
	case m.State == v1beta2.StateUnmanaged:
		return "nothing: it is left alone on request", nil, "mothership module manage " + name + " " + m.Module
	case in.Kyma.Spec.Suspend && in.Kyma.DeletionTimestamp == nil:
		return "nothing: the Kyma is suspended", nil, "mothership resume " + name
	case in.Runtime == nil && m.State != v1beta2.StateReady:
		return "nothing, until there is a Runtime " + name, nil, ""
	case in.Engine != nil && in.Engine.Unreachable:
		return "it goes on as soon as the runtime answers", in.Engine.NextProbe, ""
	case c != nil:
		return nextOfComponent(name, m, c)
	}
	return nextByState(name, m)
}

// unchanged ends what is said of a module that only a change can help.
const unchanged = "nothing by itself, until the Kyma, the catalogue or a value that it uses changes"

func nextOfComponent(kyma string, m Module, c *controlplane.ComponentExplanation) (what string, at *time.Time, advice string) {
	switch c.Phase {
	case "running":
		return "it is being worked on at the moment", nil, ""
	case "queued":
		return "it is worked on as soon as it is its turn", nil, ""
	case "delayed":
		if m.State == v1beta2.StateReady {
			return "it is looked at again", c.Next, ""
		}
		return "it is tried again by itself", c.Next, "to have it tried at once: mothership reconcile " + kyma
	case "waiting":
		return "it goes on by itself as soon as what it waits for is there", nil, ""
	case "failed":
		return unchanged, nil, "mend what the message says; to have it tried as it is: mothership reconcile " + kyma
	}
	return nextByState(kyma, m)
}

// nextByState is what can be said without asking the control plane.
func nextByState(kyma string, m Module) (what string, at *time.Time, advice string) {
	switch m.State {
	case v1beta2.StateReady:
		return "nothing is to be done; what somebody changes in the runtime is put back", nil, ""
	case v1beta2.StateWaiting:
		return "it goes on by itself as soon as what it waits for is there", nil, ""
	case v1beta2.StateWarning:
		return "a person should look; it goes on working meanwhile", nil, ""
	case v1beta2.StateError:
		return "it is tried again with growing pauses where that can help; else " + unchanged, nil,
			"mend what the message says; to have it tried as it is: mothership reconcile " + kyma
	}
	return "it is being worked on, or looked at again within seconds", nil, ""
}

// explainFact says what a missing fact is, and what brings it.
func explainFact(in Input, fact string) string {
	if module, is := strings.CutPrefix(fact, v1beta2.FactModulePrefix); is {
		return fact + ": " + explainNeed(in, module)
	}
	if object, is := strings.CutPrefix(fact, values.FactPrefix); is {
		kind, name, _ := strings.Cut(object, "/")
		return fmt.Sprintf("%s: the module takes values from the %s %s, which is missing or has no such key: create it in namespace %s",
			fact, kindOf(kind), name, in.Kyma.Namespace)
	}
	return fact + ": a fact about the runtime that nobody has stated yet"
}

func kindOf(lower string) string {
	if lower == "secret" {
		return "Secret"
	}
	return "ConfigMap"
}

// explainNeed says why another module is not ready.
func explainNeed(in Input, module string) string {
	for _, m := range Modules(in.Kyma) {
		if m.Module != module {
			continue
		}
		return strings.TrimSuffix(fmt.Sprintf("module %s is %s: %s", module, m.State, m.Message), ": ")
	}
	if slices.Contains(in.Catalog.Modules(), module) {
		return fmt.Sprintf("module %s is not enabled: mothership module enable %s %s", module, in.Kyma.Name, module)
	}
	return fmt.Sprintf("module %s is neither enabled nor in the catalogue", module)
}
