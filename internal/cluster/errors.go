package cluster

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What went wrong with a call, matched by errors.Is. Where the server sent a Status, the error also unwraps to
// apimachinery's *StatusError.
var (
	// ErrUnreachable: no answer was had: DNS, refused, reset, TLS.
	ErrUnreachable = errors.New("unreachable")
	// ErrTimeout: the server did not answer within the call's deadline.
	ErrTimeout = errors.New("timeout")
	// ErrUnauthorized is 401.
	ErrUnauthorized = errors.New("unauthorized")
	// ErrForbidden is 403.
	ErrForbidden = errors.New("forbidden")
	// ErrNotFound is 404.
	ErrNotFound = errors.New("not found")
	// ErrConflict is 409.
	ErrConflict = errors.New("conflict")
	// ErrInvalid is 400 or 422.
	ErrInvalid = errors.New("invalid")
	// ErrThrottled is 429.
	ErrThrottled = errors.New("throttled")
	// ErrUnavailable is 5xx.
	ErrUnavailable = errors.New("unavailable")
	// ErrExpired is 410.
	ErrExpired = errors.New("expired")
	// ErrTruncated: the answer ended early.
	ErrTruncated = errors.New("truncated")
)

// IsTransient says whether the same call may succeed later without anybody changing anything.
func IsTransient(err error) bool {
	for _, transient := range []error{ErrUnreachable, ErrTimeout, ErrThrottled, ErrUnavailable, ErrExpired, ErrTruncated} {
		if errors.Is(err, transient) {
			return true
		}
	}
	return false
}

// NoKindError says that a server does not serve a kind.
type NoKindError struct {
	GVK schema.GroupVersionKind
	// Served are the versions of the kind that the server does serve.
	Served []string
}

// Error says what is missing and what there is instead.
func (e *NoKindError) Error() string {
	what := fmt.Sprintf("the server has no kind %s in %s", e.GVK.Kind, e.GVK.GroupVersion())
	if len(e.Served) > 0 {
		return what + ", only in " + strings.Join(e.Served, ", ")
	}
	return what + ": install the CustomResourceDefinition first"
}
