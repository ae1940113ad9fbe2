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
	// ErrUnreachable: no answer came: dial, DNS, refusal, TLS, or the end of the connection before an answer.
	ErrUnreachable = errors.New("unreachable")
	// ErrTimeout: the deadline of one request passed.
	ErrTimeout = errors.New("timed out")
	// ErrUnauthorized: 401.
	ErrUnauthorized = errors.New("unauthorized")
	// ErrForbidden: 403.
	ErrForbidden = errors.New("forbidden")
	// ErrNotFound: 404, for an object or, with ErrNoKind, for a resource as such.
	ErrNotFound = errors.New("not found")
	// ErrNoKind: the server does not serve the kind: *NoKindError of the mapping, or a 404 for the resource itself.
	ErrNoKind = errors.New("kind not served")
	// ErrConflict: 409: a precondition, a field manager's fields, or an object that exists already.
	ErrConflict = errors.New("conflict")
	// ErrExpired: 410: a continue token or resourceVersion is too old.
	ErrExpired = errors.New("expired")
	// ErrInvalid: 400, 422, and other refusals of a request as such.
	ErrInvalid = errors.New("invalid")
	// ErrThrottled: 429.
	ErrThrottled = errors.New("throttled")
	// ErrUnavailable: 5xx.
	ErrUnavailable = errors.New("unavailable")
	// ErrTruncated: an answer ended in the middle.
	ErrTruncated = errors.New("truncated answer")
	// ErrTooLarge: an answer is larger than its bound.
	ErrTooLarge = errors.New("answer too large")
	// ErrUnexpected: an answer that a Kubernetes API does not give: a redirect, a page, undecodable JSON.
	ErrUnexpected = errors.New("unexpected answer")
)

// IsTransient says whether the same call may succeed later without anybody changing anything: the error says so by a
// method Transient.
func IsTransient(err error) bool {
	var t interface{ Transient() bool }
	return errors.As(err, &t) && t.Transient()
}

// NoKindError says that the server does not serve a kind.
type NoKindError struct {
	// GVK that was asked for.
	GVK schema.GroupVersionKind
	// Versions of the same group that have the kind, the preferred one first.
	Versions []string
	// Groups other than GVK's that have a kind of that name.
	Groups []string
	// Stale says that the APIService behind the group and version does not answer, so that its kinds are unknown now.
	// Such an error is transient and matches ErrUnavailable instead of ErrNoKind.
	Stale bool
}

// Error is the message. It names what the server does serve.
func (e *NoKindError) Error() string {
	gv := e.GVK.GroupVersion()
	if e.Stale {
		return fmt.Sprintf("kind %s of %s is unknown: the APIService of %s does not answer", e.GVK.Kind, gv, gv)
	}
	msg := fmt.Sprintf("kind %s of %s is not served", e.GVK.Kind, gv)
	switch {
	case len(e.Versions) > 0:
		return msg + ": the server has it as " + strings.Join(e.Versions, ", ")
	case len(e.Groups) > 0:
		return msg + ": the server has that kind in " + strings.Join(e.Groups, ", ")
	}
	return msg + ": is its CustomResourceDefinition missing?"
}

// Is matches ErrNoKind, or ErrUnavailable for a stale group.
func (e *NoKindError) Is(target error) bool {
	if e.Stale {
		return target == ErrUnavailable
	}
	return target == ErrNoKind
}

// Transient says whether the kind may be known later.
func (e *NoKindError) Transient() bool { return e.Stale }
