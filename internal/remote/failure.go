package remote

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// maxRetryAfter bounds what a server can make us wait between two attempts.
	maxRetryAfter = 10 * time.Second
	// maxFailureBody bounds what is read of a refusal.
	maxFailureBody = 256 << 10
	// maxMessage bounds what a message quotes of the server, in bytes.
	maxMessage = 2 << 10
)

// errDeadline is the cause with which a request's own deadline ends it.
var errDeadline = errors.New("no complete answer in time")

// errBodyTooLarge ends the reading of an answer beyond its bound.
var errBodyTooLarge = errors.New("the answer is larger than its bound")

// transportError types what went wrong without an answer; ended is why the request's own context has. The body of an answer that breaks
// off is not its business.
func (q *request) transportError(ended, err error) *Error {
	e := q.fail(ReasonUnreachable, 0, err)
	var opErr *net.OpError
	var certErr *tls.CertificateVerificationError
	switch {
	case errors.Is(ended, errDeadline):
		e.Reason, e.Err, e.silent = ReasonTimeout, errDeadline, errors.Is(ended, errSilent)
	case errors.As(err, &certErr):
		e.permanent = true
	case errors.As(err, &opErr) && opErr.Op == "dial":
		e.unprocessed = true
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		e.Err = errors.New("the server closed the connection without an answer")
	}
	return e
}

// bodyError types what went wrong while an answer of 2xx was read or decoded; ended is why the request's own context has.
func (q *request) bodyError(ended error, code int, err error) *Error {
	var own *Error
	var syntax *json.SyntaxError
	var wrongType *json.UnmarshalTypeError
	switch {
	case errors.As(err, &own):
		return own
	case errors.Is(ended, errDeadline):
		return q.fail(ReasonTimeout, code, errDeadline)
	case errors.Is(err, errBodyTooLarge):
		return q.fail(ReasonTooLarge, code, fmt.Errorf("more than %d MiB", q.bound()>>20))
	case errors.Is(err, errUndecodable) || errors.As(err, &syntax) || errors.As(err, &wrongType):
		return q.fail(ReasonUnexpected, code, q.guarded(err))
	}
	return q.fail(ReasonTruncated, code, q.guarded(err))
}

// guarded keeps a decoder's words about a Secret to itself: they may quote its values.
func (q *request) guarded(err error) error {
	if q.secret && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return errUndecodable
	}
	return err
}

// statusError types an answer other than 2xx. body is what was read of it, already without credentials.
func (q *request) statusError(resp *http.Response, body []byte) *Error {
	status := parseStatus(resp, body)
	e := q.fail(reasonOf(resp, status), resp.StatusCode, nil)
	e.retryAfter, e.hasRetryAfter = retryAfterOf(resp, status)
	e.unprocessed = resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable
	switch {
	case status != nil:
		if isUnfitting(status) {
			e.Reason = ReasonInvalid
		}
		e.unprocessed = e.unprocessed || webhookFailed(status)
		if q.secret {
			status = withoutValues(status)
		}
		status.Message = shorten(status.Message)
		e.Err = &apierrors.StatusError{ErrStatus: *status}
	case resp.Header.Get("Location") != "":
		e.Err = errors.New("the address answers with a redirect, which is not followed: is it that of a Kubernetes API?")
	default:
		e.Err = describeForeign(resp, body, q.secret)
	}
	return e
}

// reasonOf types an answer by its code. A 404 without Status is the API server's word on the kind only if the answer
// carries the Audit-Id that every API server sets; from anything in front of it, it says nothing about the runtime.
func reasonOf(resp *http.Response, status *metav1.Status) Reason {
	switch code := resp.StatusCode; {
	case code == http.StatusUnauthorized:
		return ReasonUnauthorized
	case code == http.StatusForbidden:
		return ReasonForbidden
	case code == http.StatusNotFound && status != nil:
		return ReasonNotFound
	case code == http.StatusNotFound && resp.Header.Get("Audit-Id") != "":
		return ReasonNoKind
	case code == http.StatusConflict:
		return ReasonConflict
	case code == http.StatusGone:
		return ReasonExpired
	case code == http.StatusTooManyRequests:
		return ReasonThrottled
	case code >= 500:
		return ReasonUnavailable
	case code < 400 || code == http.StatusNotFound:
		return ReasonUnexpected
	}
	return ReasonInvalid
}

// parseStatus gives the Status that a Kubernetes API answers failures with, or nil. body is as readFailure gives it.
func parseStatus(resp *http.Response, body []byte) *metav1.Status {
	if !isJSON(resp) && !isProtobuf(resp) {
		return nil
	}
	var s metav1.Status
	if json.Unmarshal(body, &s) != nil || s.Kind != "Status" {
		return nil
	}
	s.Code = int32(resp.StatusCode)
	return &s
}

func isJSON(resp *http.Response) bool { return isOf(resp, "application/json") }

func isProtobuf(resp *http.Response) bool { return isOf(resp, "application/vnd.kubernetes.protobuf") }

// isOf says whether an answer is of a media type.
func isOf(resp *http.Response, mediaType string) bool {
	header := resp.Header.Get("Content-Type")
	if header == mediaType { // as it nearly always is
		return true
	}
	is, _, err := mime.ParseMediaType(header)
	return err == nil && is == mediaType
}

// webhookFailed says whether an admission webhook could not be called, so that nothing was stored. The API server gives
// no other sign of it than the words of k8s.io/apiserver/pkg/admission/plugin/webhook/errors.
func webhookFailed(s *metav1.Status) bool {
	return s.Reason == metav1.StatusReasonInternalError && strings.Contains(s.Message, "failed calling webhook")
}

// unfitting is how the API server words its refusal of an apply whose fields, types or values are not the schema's
// (k8s.io/apimachinery/pkg/util/managedfields/internal/structuredmerge.go), with the path of the field if it knows it. It
// answers with 500 and no reason at all, although no repetition can succeed.
var unfitting = regexp.MustCompile(`^failed to (?:create typed patch object \([^)]*\)` +
	`|convert new object \([^)]*\) to proper version: unable to convert unstructured object to [^:]*)` +
	`:(?: (\.[A-Za-z0-9_./-]+):)?`)

func isUnfitting(s *metav1.Status) bool {
	return s.Code == http.StatusInternalServerError && s.Reason == "" && unfitting.MatchString(s.Message)
}

// withoutValues reduces a Status to its reason and the paths of the fields it names.
func withoutValues(s *metav1.Status) *metav1.Status {
	out := &metav1.Status{TypeMeta: s.TypeMeta, Status: s.Status, Reason: s.Reason, Code: s.Code}
	out.Message = string(s.Reason)
	if out.Message == "" {
		out.Message = "refused"
	}
	if m := unfitting.FindStringSubmatch(s.Message); m != nil {
		out.Message = "a field, type or value is not the schema's"
		if m[1] != "" {
			out.Message += ": " + m[1]
		}
	}
	if s.Details == nil {
		return out
	}
	out.Details = &metav1.StatusDetails{
		Name: s.Details.Name, Group: s.Details.Group, Kind: s.Details.Kind, UID: s.Details.UID,
		RetryAfterSeconds: s.Details.RetryAfterSeconds,
	}
	var fields []string
	for _, c := range s.Details.Causes {
		out.Details.Causes = append(out.Details.Causes, metav1.StatusCause{Type: c.Type, Field: c.Field})
		if c.Field != "" && !slices.Contains(fields, c.Field) {
			fields = append(fields, c.Field)
		}
	}
	if len(fields) > 0 {
		out.Message += " at " + strings.Join(fields, ", ")
	}
	return out
}

// describeForeign says what kind of answer it was, and the first words of a plain text.
func describeForeign(resp *http.Response, body []byte, secret bool) error {
	contentType, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if contentType == "text/plain" && !secret {
		line, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n")
		if line = printable(line); line != "" {
			return errors.New(line[:min(len(line), 200)])
		}
	}
	if contentType == "" {
		contentType = "no content"
	}
	return fmt.Errorf("the answer is %s, not a Kubernetes Status", printable(contentType))
}

func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) && r < unicode.MaxASCII {
			return r
		}
		return -1
	}, s)
}

func shorten(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	return strings.ToValidUTF8(s[:maxMessage], "") + " …"
}

// retryAfterOf reads the wish of the server: the header in seconds or as a date (RFC 9110, 10.2.3), else the Status.
func retryAfterOf(resp *http.Response, status *metav1.Status) (time.Duration, bool) {
	header := resp.Header.Get("Retry-After")
	if seconds, err := strconv.Atoi(header); err == nil && seconds >= 0 {
		return boundedSeconds(seconds), true
	}
	if at, err := http.ParseTime(header); err == nil {
		return min(max(time.Until(at), 0), maxRetryAfter), true
	}
	if status != nil && status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		return boundedSeconds(int(status.Details.RetryAfterSeconds)), true
	}
	return 0, false
}

func boundedSeconds(n int) time.Duration {
	return time.Duration(min(n, int(maxRetryAfter/time.Second))) * time.Second
}

var bearer = regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}`)

// scrub takes credentials out of what a server says, in case it echoes them.
func scrub(text []byte, credentials []string) []byte {
	s := string(text)
	for _, c := range credentials {
		s = strings.ReplaceAll(s, c, "[redacted]")
	}
	return []byte(bearer.ReplaceAllString(s, "$1 [redacted]"))
}
