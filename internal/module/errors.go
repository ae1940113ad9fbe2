package module

import (
	"context"
	"errors"

	"github.com/kyma-project/mothership/internal/apply"
)

var (
	// ErrInvalid says that a component cannot be worked on as it is described.
	ErrInvalid = errors.New("invalid")
	// ErrOtherCluster says that another cluster answers than before: nothing that is known of the runtime holds any more.
	ErrOtherCluster = errors.New("another cluster answers")
)

// RuntimeError says that a runtime as a whole does not answer, or refuses us. It was met before anything of the module was done, so
// that it says nothing about the module: while the version, the identity or the inventory were read.
type RuntimeError struct{ Err error }

// Error is the cause's message.
func (e *RuntimeError) Error() string { return e.Err.Error() }

// Unwrap gives the cause, which matches the sentinels of internal/cluster.
func (e *RuntimeError) Unwrap() error { return e.Err }

// ofRuntime makes an error one of the runtime; nil stays nil. The end of the caller's context is not the runtime's doing.
func ofRuntime(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	return &RuntimeError{Err: err}
}

// FailedError says that objects can no longer become ready by themselves.
type FailedError struct{ Objects []apply.NotReady }

// Error names the objects and why.
func (e *FailedError) Error() string { return "failed: " + summary(e.Objects) }

// BlockedError says that a removal is held up by custom resources that it would take with it: somebody must delete them.
type BlockedError struct{ Removal *apply.Removal }

// Error names them.
func (e *BlockedError) Error() string { return BlockedMessage(e.Removal) }
