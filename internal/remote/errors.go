package remote

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Reason says why a request failed.
type Reason string

// The reasons.
const (
	// ReasonUnreachable: no answer came: dial, DNS, refusal, TLS, or the end of the connection before an answer.
	ReasonUnreachable Reason = "unreachable"
	// ReasonTimeout: the deadline of one request passed (Options.Timeout).
	ReasonTimeout Reason = "timed out"
	// ReasonInterrupted: the caller's context ended; the error matches context.Cause.
	ReasonInterrupted Reason = "interrupted"
	// ReasonUnauthorized: 401.
	ReasonUnauthorized Reason = "unauthorized"
	// ReasonForbidden: 403.
	ReasonForbidden Reason = "forbidden"
	// ReasonNotFound: 404 for an object.
	ReasonNotFound Reason = "not found"
	// ReasonNoKind: 404 for the resource itself: the server does not serve the kind.
	ReasonNoKind Reason = "kind not served"
	// ReasonConflict: 409: a precondition, a field manager's fields, or an object that exists already.
	ReasonConflict Reason = "conflict"
	// ReasonExpired: 410: a continue token or resourceVersion is too old.
	ReasonExpired Reason = "expired"
	// ReasonInvalid: 400, 422, and other refusals of a request as such (405, 406, 413, 415).
	ReasonInvalid Reason = "invalid"
	// ReasonThrottled: 429.
	ReasonThrottled Reason = "throttled"
	// ReasonUnavailable: 5xx.
	ReasonUnavailable Reason = "unavailable"
	// ReasonTruncated: an answer ended in the middle.
	ReasonTruncated Reason = "truncated answer"
	// ReasonTooLarge: an answer is larger than its bound.
	ReasonTooLarge Reason = "answer too large"
	// ReasonUnexpected: an answer that a Kubernetes API does not give: a redirect, a page, undecodable JSON.
	ReasonUnexpected Reason = "unexpected answer"
)

// The sentinels: errors.Is(err, ErrNotFound) and so on hold for an *Error of that reason.
var (
	ErrUnreachable  error = sentinel(ReasonUnreachable)
	ErrTimeout      error = sentinel(ReasonTimeout)
	ErrUnauthorized error = sentinel(ReasonUnauthorized)
	ErrForbidden    error = sentinel(ReasonForbidden)
	// ErrNotFound also matches what ErrNoKind matches, except a *NoKindError.
	ErrNotFound    error = sentinel(ReasonNotFound)
	ErrConflict    error = sentinel(ReasonConflict)
	ErrExpired     error = sentinel(ReasonExpired)
	ErrInvalid     error = sentinel(ReasonInvalid)
	ErrThrottled   error = sentinel(ReasonThrottled)
	ErrUnavailable error = sentinel(ReasonUnavailable)
	ErrTruncated   error = sentinel(ReasonTruncated)
	ErrTooLarge    error = sentinel(ReasonTooLarge)
	ErrUnexpected  error = sentinel(ReasonUnexpected)
	// ErrNoKind says that the server does not serve the kind: *NoKindError of the mapping, or a 404 for the resource
	// itself (then Client.Forget is due).
	ErrNoKind error = sentinel(ReasonNoKind)
)

type sentinel Reason

func (s sentinel) Error() string { return string(s) }

// Error is a failed request.
type Error struct {
	// Reason says why.
	Reason Reason
	// Verb of the request, as counted (VerbApply …).
	Verb string
	// Target of the request: "Deployment.apps demo/web", "Pod in demo", "the server's version".
	Target string
	// Code of the HTTP answer; 0 if there was none.
	Code int
	// Err is the cause: the *apierrors.StatusError where the server sent a Status. Credentials, and a Secret's values,
	// are taken out of it.
	Err error

	retryAfter    time.Duration // bounded; 0 with hasRetryAfter means at once
	hasRetryAfter bool
	permanent     bool // a second attempt gives the same: a certificate that does not verify
	unprocessed   bool // the server did not take the request up, so that any verb may be repeated
}

// gerunds are the verbs as messages say them.
var gerunds = map[string]string{
	VerbGet: "reading", VerbList: "listing", VerbCreate: "creating", VerbPatch: "patching", VerbApply: "applying",
	VerbDelete: "deleting", VerbDiscovery: "discovering", VerbVersion: "reading",
}

// Error is the message: what, to what, why. "applying Deployment.apps demo/web: 403 forbidden: …".
func (e *Error) Error() string {
	return gerunds[e.Verb] + " " + e.Target + ": " + e.why()
}

// why is the message without what it happened to.
func (e *Error) why() string {
	var b strings.Builder
	if e.Code != 0 && e.Code/100 != 2 {
		fmt.Fprintf(&b, "%d ", e.Code)
	}
	b.WriteString(string(e.Reason))
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is matches the sentinel of the error's reason.
func (e *Error) Is(target error) bool {
	s, ok := target.(sentinel)
	if !ok {
		return false
	}
	return Reason(s) == e.Reason || Reason(s) == ReasonNotFound && e.Reason == ReasonNoKind
}

// IsTransient says whether a later attempt may succeed with nothing changed: the runtime was unreachable, hung, throttled,
// unavailable (500, 502, 503, 504; a webhook that cannot be called is among them), or broke off in the middle. An ended
// context of the caller is not transient, whatever failed before.
func IsTransient(err error) bool {
	var noKind *NoKindError
	if errors.As(err, &noKind) {
		return noKind.Stale
	}
	var e *Error
	return errors.As(err, &e) && e.transient()
}

func (e *Error) transient() bool {
	if e.permanent {
		return false
	}
	switch e.Reason {
	case ReasonUnreachable, ReasonTimeout, ReasonThrottled, ReasonTruncated:
		return true
	case ReasonUnavailable:
		switch e.Code {
		case http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return true
		}
	}
	return false
}

// RetryAfter is how long the server asks to wait, at most 10 s, and false if it did not say.
func RetryAfter(err error) (time.Duration, bool) {
	var e *Error
	if !errors.As(err, &e) || !e.hasRetryAfter {
		return 0, false
	}
	return e.retryAfter, true
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
