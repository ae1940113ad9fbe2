package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// request is one call, which may take several HTTP requests.
type request struct {
	verb, method, path string
	// target is what messages say that the request is to; of an object, kind, namespace and name say it.
	target          string
	kind            Resource
	namespace, name string
	rawQuery        string     // of the URL
	query           url.Values // instead, where it changes between attempts
	accept          string
	contentType     string
	body            []byte
	etag            string // for If-None-Match
	// idempotent says that a repetition does no harm even if the first attempt was processed.
	idempotent bool
	// lasts is how long the answer may go on: that of a watch does, beyond the deadline of a call. 0 for all others.
	lasts time.Duration
	// secret says that the server's words may quote a Secret's values.
	secret bool
}

// decoder reads the answer of 2xx or 304. It is called once per attempt.
type decoder func(*http.Response) error

func (q *request) fail(r Reason, code int, err error) *Error {
	target := q.target
	if target == "" {
		target = groupKind(q.kind) + " " + qualified(q.namespace, q.name)
	}
	return &Error{Reason: r, Verb: q.verb, Target: target, Code: code, Err: err}
}

// interrupted is the end of the caller's context, for a cause, perhaps while a failure was about to be retried.
func (q *request) interrupted(cause error, last *Error) *Error {
	if last != nil {
		cause = fmt.Errorf("%w, after %s", cause, last.why())
	}
	return q.fail(ReasonInterrupted, 0, cause)
}

func (q *request) bound() int64 { return boundOf(q.verb) }

// retriable says whether the same request may be sent again.
func (q *request) retriable(e *Error) bool {
	return e.Transient() && !e.silent && (q.idempotent || e.unprocessed)
}

// call sends a request, repeats it after transient failures, and decodes its answer. Errors are *Error.
func (c *Client) call(ctx context.Context, q *request, decode decoder) error {
	return c.repeat(ctx, q, decode, c.attempt(ctx, q, decode))
}

// repeat repeats a request whose first attempt ended with err, nil if it did well, after transient failures. Errors are *Error.
func (c *Client) repeat(ctx context.Context, q *request, decode decoder, err *Error) error {
	for attempt := 0; err != nil; attempt++ {
		if !c.mayRepeat(ctx, attempt, q, err) {
			return err
		}
		delay := c.delay(attempt, err)
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= delay {
			return err // the context would end first: what failed says more
		}
		if cause := c.rest(ctx, delay); cause != nil {
			return q.interrupted(cause, err)
		}
		err = c.attempt(ctx, q, decode)
	}
	return nil
}

// delay before the next attempt: what the server asks for, but at least the backoff.
func (c *Client) delay(attempt int, err *Error) time.Duration {
	d := c.backoff(attempt)
	if err.hasRetryAfter {
		return max(err.retryAfter, d)
	}
	return d
}

// attempt makes one HTTP request.
func (c *Client) attempt(ctx context.Context, q *request, decode decoder) *Error {
	resp, reqCtx, err := c.gate.send(ctx, q.verb, q.lasts, func(ctx context.Context) (*http.Request, error) {
		return c.httpRequest(ctx, q)
	})
	return c.outcome(ctx, q, decode, resp, err, func() error { return context.Cause(reqCtx) })
}

// httpRequest is a request as it is sent. Errors are *Error.
func (c *Client) httpRequest(ctx context.Context, q *request) (*http.Request, error) {
	req, err := q.httpRequest(ctx)
	if err != nil {
		return nil, q.fail(ReasonInvalid, 0, err)
	}
	c.impersonate(req.Header)
	return req, nil
}

// outcome is what became of an attempt: its answer, which is decoded and closed, or the error of sending it. cause is why the request's
// own context has ended, or nil.
func (c *Client) outcome(ctx context.Context, q *request, decode decoder, resp *http.Response, err error, cause func() error) *Error {
	if err != nil {
		if ctx.Err() != nil {
			return q.interrupted(context.Cause(ctx), nil)
		}
		if refused := new(refusal); errors.As(err, &refused) {
			return q.interrupted(refused.cause, nil)
		}
		if own := (*Error)(nil); errors.As(err, &own) { // there is no such request
			return own
		}
		return q.transportError(cause(), err)
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 && (resp.StatusCode != http.StatusNotModified || q.etag == "") {
		return q.statusError(resp, readFailure(resp))
	}
	if err := decode(resp); err != nil {
		if ctx.Err() != nil {
			return q.interrupted(context.Cause(ctx), nil)
		}
		return q.bodyError(cause(), resp.StatusCode, err)
	}
	return nil
}

func (q *request) httpRequest(ctx context.Context) (*http.Request, error) {
	var content io.Reader
	if q.body != nil {
		content = bytes.NewReader(q.body)
	}
	req, err := http.NewRequestWithContext(ctx, q.method, "/", content)
	if err != nil {
		return nil, err
	}
	req.URL = &url.URL{Path: q.path, RawQuery: q.rawQuery}
	if q.query != nil {
		req.URL.RawQuery = q.query.Encode()
	}
	accept := q.accept
	if accept == "" {
		accept = acceptJSON
	}
	req.Header["Accept"] = []string{accept} // in the canonical form: see http.Header
	if q.contentType != "" {
		req.Header["Content-Type"] = []string{q.contentType}
	}
	if q.etag != "" {
		req.Header["If-None-Match"] = []string{q.etag}
	}
	return req, nil
}

// readFailure reads a bounded part of a refusal, a Status in protobuf as JSON; what cannot be read does not matter.
func readFailure(resp *http.Response) []byte {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxFailureBody))
	var credentials []string
	if b, ok := resp.Body.(*body); ok {
		credentials = b.gen.credentials
	}
	if isProtobuf(resp) {
		text = statusJSON(text, credentials)
	}
	return scrub(text, credentials)
}

const (
	acceptJSON     = "application/json"
	acceptMetaJSON = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"
	acceptMetadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io," + acceptMetaJSON
	acceptMetaList = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"
)

// errUndecodable says that an answer is not what the request asks for.
var errUndecodable = errors.New("the answer cannot be decoded")
