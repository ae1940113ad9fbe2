package apply

import (
	"context"
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

// StoppedError says that a checkpoint stopped the work, at a point where nothing is lost.
type StoppedError struct{ Err error }

// Error says why the checkpoint did.
func (e *StoppedError) Error() string { return fmt.Sprintf("stopped at a checkpoint: %s", e.Err) }

// Unwrap gives the checkpoint's error.
func (e *StoppedError) Unwrap() error { return e.Err }

// NotYetError says that nothing failed, but that something takes longer than it was waited for: a definition to be served, an
// object to be gone. The same pass gets further once it is there. It matches cluster.ErrTimeout.
type NotYetError struct{ Err error }

// Error says what was waited for, and what holds it up.
func (e *NotYetError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *NotYetError) Unwrap() error { return e.Err }

// notYet is the error of a wait that came to its bound; where the caller's context ended it instead, it is no such thing.
func notYet(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	return &NotYetError{Err: err}
}
