package apply

import (
	"fmt"

	"github.com/kyma-project/mothership/internal/bundle"
)

// Action is what is done, or would be done, with an object.
type Action string

// The actions.
const (
	// ActionNone: the object is as the bundle says.
	ActionNone Action = "unchanged"
	// ActionCreate: it does not exist.
	ActionCreate Action = "created"
	// ActionUpdate: the bundle says something else than last time.
	ActionUpdate Action = "updated"
	// ActionRepair: somebody else changed it.
	ActionRepair Action = "repaired"
	// ActionAdopt: it exists, belongs to something else, and is taken over.
	ActionAdopt Action = "adopted"
	// ActionRefuse: it exists and belongs to something else.
	ActionRefuse Action = "refused"
	// ActionPrune: the bundle no longer has it.
	ActionPrune Action = "pruned"
	// ActionDelete: the module is being removed.
	ActionDelete Action = "deleted"
	// ActionKeep: it is no longer wanted, but protected.
	ActionKeep Action = "kept"
)

// Drift is a field that is not as it was applied.
type Drift struct {
	// Path of the field, such as .spec.replicas.
	Path string `json:"path"`
	// Manager that owns it now; empty when the field was removed.
	Manager string `json:"manager,omitempty"`
}

// String is the path and who changed it.
func (d Drift) String() string {
	if d.Manager == "" {
		return d.Path + " was removed"
	}
	return fmt.Sprintf("%s was changed by %s", d.Path, d.Manager)
}

// Event says what happened to one object.
type Event struct {
	Object bundle.Ref `json:"object"`
	Action Action     `json:"action"`
	// Drift that was repaired.
	Drift []Drift `json:"drift,omitempty"`
	// Message says why, where that is not plain.
	Message string `json:"message,omitempty"`
}

// ObjectError is an error at one object.
type ObjectError struct {
	Object bundle.Ref
	// Hint says what to do, or is empty.
	Hint string
	Err  error
}

// Error is the message; the hint is not part of it.
func (e *ObjectError) Error() string { return fmt.Sprintf("%s: %s", e.Object, e.Err) }

// Unwrap gives the cause.
func (e *ObjectError) Unwrap() error { return e.Err }
