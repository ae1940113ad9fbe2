package remote

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/kyma-project/mothership/internal/cluster"
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

// The sentinels, as internal/cluster states them: errors.Is(err, ErrNotFound) and so on hold for an *Error of that reason.
// ErrNotFound also matches what ErrNoKind matches, except a *NoKindError.
var (
	ErrUnreachable  = cluster.ErrUnreachable
	ErrTimeout      = cluster.ErrTimeout
	ErrUnauthorized = cluster.ErrUnauthorized
	ErrForbidden    = cluster.ErrForbidden
	ErrNotFound     = cluster.ErrNotFound
	ErrConflict     = cluster.ErrConflict
	ErrExpired      = cluster.ErrExpired
	ErrInvalid      = cluster.ErrInvalid
	ErrThrottled    = cluster.ErrThrottled
	ErrUnavailable  = cluster.ErrUnavailable
	ErrTruncated    = cluster.ErrTruncated
	ErrTooLarge     = cluster.ErrTooLarge
	ErrUnexpected   = cluster.ErrUnexpected
	ErrNoKind       = cluster.ErrNoKind
)

// sentinels are what errors of a reason match.
var sentinels = map[Reason]error{
	ReasonUnreachable: ErrUnreachable, ReasonTimeout: ErrTimeout, ReasonUnauthorized: ErrUnauthorized,
	ReasonForbidden: ErrForbidden, ReasonNotFound: ErrNotFound, ReasonConflict: ErrConflict, ReasonExpired: ErrExpired,
	ReasonInvalid: ErrInvalid, ReasonThrottled: ErrThrottled, ReasonUnavailable: ErrUnavailable,
	ReasonTruncated: ErrTruncated, ReasonTooLarge: ErrTooLarge, ReasonUnexpected: ErrUnexpected, ReasonNoKind: ErrNoKind,
}

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
	silent        bool // the server has not answered for a while: a second attempt would only wait as long
	unprocessed   bool // the server did not take the request up, so that any verb may be repeated
}

// gerunds are the verbs as messages say them.
var gerunds = map[string]string{
	VerbGet: "reading", VerbList: "listing", VerbCreate: "creating", VerbPatch: "patching", VerbApply: "applying",
	VerbDelete: "deleting", VerbDiscovery: "discovering", VerbVersion: "reading",
	VerbWait: "waiting for", VerbWatch: "watching",
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
	return sentinels[e.Reason] == target || target == ErrNotFound && e.Reason == ReasonNoKind
}

// IsTransient says whether a later attempt may succeed with nothing changed: the runtime was unreachable, hung, throttled,
// unavailable (500, 502, 503, 504; a webhook that cannot be called is among them), or broke off in the middle. An ended
// context of the caller is not transient, whatever failed before.
func IsTransient(err error) bool { return cluster.IsTransient(err) }

// Transient says whether a later attempt may succeed with nothing changed.
func (e *Error) Transient() bool {
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
type NoKindError = cluster.NoKindError
