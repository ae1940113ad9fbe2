package mothership

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kyma-project/mothership/internal/apply"
	"github.com/kyma-project/mothership/internal/bundle"
	"github.com/kyma-project/mothership/internal/module"
)

// The parts of results, documented where they are defined.
type (
	// Ref names an object in a cluster.
	Ref = bundle.Ref
	// Action is what was done, or would be done, with an object.
	Action = apply.Action
	// Event says what happened to one object.
	Event = apply.Event
	// Drift is a field that is not as it was applied.
	Drift = apply.Drift
	// Change is what would happen to one object.
	Change = apply.Change
	// FieldChange is one field that would change.
	FieldChange = apply.FieldChange
	// NotReady is an object that is not ready, and why.
	NotReady = apply.NotReady
	// Hook is a Helm hook of a chart. Hooks are reported and never run.
	Hook = bundle.Hook
	// Image is the reference of an image that was replaced by that of a mirror.
	Image = bundle.Image
	// ObjectError is an error at one object; it carries a hint.
	ObjectError = apply.ObjectError
	// FailedError says that objects can no longer become ready by themselves.
	FailedError = module.FailedError
)

// The actions.
const (
	ActionNone   = apply.ActionNone
	ActionCreate = apply.ActionCreate
	ActionUpdate = apply.ActionUpdate
	ActionRepair = apply.ActionRepair
	ActionAdopt  = apply.ActionAdopt
	ActionRefuse = apply.ActionRefuse
	ActionPrune  = apply.ActionPrune
	ActionDelete = apply.ActionDelete
	ActionKeep   = apply.ActionKeep
)

// Result is what Install or Uninstall came to.
type Result struct {
	Module    string `json:"module"`
	Namespace string `json:"namespace"`
	// SourceDigest and BundleDigest identify the source and the bundle that was made of it.
	SourceDigest string `json:"sourceDigest,omitempty"`
	BundleDigest string `json:"bundleDigest,omitempty"`
	// Objects of the module, and what happened to each; those that were pruned or deleted too.
	Objects []Event `json:"objects"`
	// NotReady are objects that were not ready at the last look; empty without InstallOptions.Wait.
	NotReady []NotReady `json:"notReady,omitempty"`
	// Blocking are custom resources that hold up an Uninstall.
	Blocking []Ref `json:"blocking,omitempty"`
	// Hooks of the chart, which were not run.
	Hooks []Hook `json:"hooks,omitempty"`
	// Images that are taken from a mirror (Options.PostRender).
	Images []Image `json:"images,omitempty"`
	// Warnings for people.
	Warnings []string `json:"warnings,omitempty"`
	// Requests made to the cluster, by verb.
	Requests map[string]int `json:"requests"`
	// Duration of the call.
	Duration time.Duration `json:"durationNanoseconds"`
}

// Changed says whether anything was written.
func (r *Result) Changed() bool {
	for _, e := range r.Objects {
		if e.Action != ActionNone && e.Action != ActionKeep {
			return true
		}
	}
	return false
}

// Count is the number of objects with an action.
func (r *Result) Count(a Action) int {
	n := 0
	for _, e := range r.Objects {
		if e.Action == a {
			n++
		}
	}
	return n
}

// Comparison is what Diff or Verify found.
type Comparison struct {
	Module       string `json:"module"`
	Namespace    string `json:"namespace"`
	BundleDigest string `json:"bundleDigest"`
	// Changes that Install would make; none means that the cluster is as the module says.
	Changes []Change `json:"changes"`
	// Unchanged is the number of objects that are as the module says.
	Unchanged int `json:"unchanged"`
	// Hooks and Warnings as in Result.
	Hooks    []Hook         `json:"hooks,omitempty"`
	Warnings []string       `json:"warnings,omitempty"`
	Requests map[string]int `json:"requests"`
	Duration time.Duration  `json:"durationNanoseconds"`
}

// Equal says that Install would change nothing.
func (c *Comparison) Equal() bool { return len(c.Changes) == 0 }

// Rendered is a module without a cluster.
type Rendered struct {
	Module       string   `json:"module"`
	Namespace    string   `json:"namespace"`
	SourceDigest string   `json:"sourceDigest"`
	BundleDigest string   `json:"bundleDigest"`
	Objects      []Object `json:"objects"`
	Hooks        []Hook   `json:"hooks,omitempty"`
	Images       []Image  `json:"images,omitempty"`
	Warnings     []string `json:"warnings,omitempty"`
}

// Object is one rendered object.
type Object struct {
	Ref
	// Stage in which it is applied: definitions, cluster, built-in, custom, admission.
	Stage string `json:"stage"`
	// JSON is what would be sent.
	JSON []byte `json:"-"`
}

var errTimedOut = errors.New("the time given with the call is over")

// TimeoutError says that a call's time was over before it was done.
type TimeoutError struct {
	// Doing says what was under way.
	Doing string
	// NotReady are the objects that were waited for.
	NotReady []NotReady
	// Err is the last passing error, if there was one.
	Err error
}

// Error says what was under way and what was waited for.
func (e *TimeoutError) Error() string {
	var parts []string
	for _, n := range e.NotReady {
		parts = append(parts, n.String())
	}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	if len(parts) == 0 {
		return fmt.Sprintf("%s: %v", e.Doing, errTimedOut)
	}
	return fmt.Sprintf("%s: %v: %s", e.Doing, errTimedOut, strings.Join(parts, "; "))
}

// Unwrap gives the last passing error.
func (e *TimeoutError) Unwrap() error { return e.Err }

// BlockedError says that an Uninstall is held up by custom resources that it would take with it.
type BlockedError struct{ Message string }

// Error names them.
func (e *BlockedError) Error() string { return e.Message }
