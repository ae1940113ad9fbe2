package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kyma-project/mothership/internal/cluster"
)

const (
	// minWatch and maxWatch are between what times a server is asked to end a watch: drawn anew for each, so that those of a
	// fleet do not all begin again at once.
	minWatch, maxWatch = 5 * time.Minute, 10 * time.Minute
	// watchGrace is how much longer than that a watch may last, should its connection be dead.
	watchGrace = 30 * time.Second
	// maxWatchEvent bounds one event. An object has 1.5 MiB at most, of which metadata are a part.
	maxWatchEvent = 4 << 20
)

func watchFor() time.Duration { return minWatch + rand.N(maxWatch-minWatch) }

// WatchMeta makes one watch of the metadata of a kind's objects, in all namespaces, and calls each for each event, one after the
// other. It returns nil when the server has ended the watch in order, which it does after some minutes: go on from the
// ResourceVersion of the last event, bookmarks included. ErrExpired says that there is no going on from there: list, and begin
// anew (ListMetaVersion). It is not repeated after other errors either, and ends when ctx does. Errors are *Error.
//
// A watch is under no call's deadline once it has begun, and takes no slot of MaxInFlight. It stays on the connection and with the
// credentials that it began with: after Swap, end it and begin another.
func (c *Client) WatchMeta(ctx context.Context, r Resource, o WatchOptions, each func(WatchEvent)) error {
	lasts := c.watchFor()
	q, err := watchRequest(r, o, lasts)
	if err != nil {
		return err
	}
	if err := c.attempt(ctx, q, func(resp *http.Response) error { return q.readEvents(resp, r.GVK(), each) }); err != nil {
		return err
	}
	if ctx.Err() != nil { // it may look like the end of the answer
		return q.interrupted(context.Cause(ctx), nil)
	}
	return nil
}

func watchRequest(r Resource, o WatchOptions, lasts time.Duration) (*request, error) {
	q, err := objectRequest(VerbWatch, http.MethodGet, r, "", "")
	if err != nil {
		return nil, err
	}
	q.target, q.accept, q.lasts = groupKind(r), acceptMetaJSON, lasts+watchGrace
	q.query = url.Values{
		"watch": {"true"}, "allowWatchBookmarks": {"true"},
		"timeoutSeconds": {strconv.Itoa(int(lasts / time.Second))},
	}
	if o.LabelSelector != "" {
		q.query.Set("labelSelector", o.LabelSelector)
	}
	if o.ResourceVersion != "" {
		q.query.Set("resourceVersion", o.ResourceVersion)
	}
	return q, nil
}

// readEvents reads events to the end of the answer. The end within an event is io.ErrUnexpectedEOF.
func (q *request) readEvents(resp *http.Response, gvk schema.GroupVersionKind, each func(WatchEvent)) error {
	if err := checkJSON(resp); err != nil {
		return err
	}
	in := &meter{r: resp.Body, over: errEventTooLarge}
	dec := json.NewDecoder(in)
	for { // the request's deadline is its bound
		in.left = maxWatchEvent
		var line watchLine
		if more, err := nextValue(dec, &line); err != nil || !more {
			return err
		}
		e, err := q.event(&line, gvk)
		if err != nil {
			return err
		}
		each(e)
	}
}

// watchLine is an event as the server sends it.
type watchLine struct {
	Type   cluster.WatchEventType `json:"type"`
	Object json.RawMessage        `json:"object"`
}

// watchError is the type of a line whose object is a Status.
const watchError cluster.WatchEventType = "ERROR"

// event decodes a line. Errors are *Error for what the server reports, else about what it should not have sent.
func (q *request) event(line *watchLine, gvk schema.GroupVersionKind) (WatchEvent, error) {
	switch line.Type {
	case cluster.WatchAdded, cluster.WatchModified, cluster.WatchDeleted, cluster.WatchBookmark:
	case watchError:
		return WatchEvent{}, q.watchFailed(line.Object)
	default:
		return WatchEvent{}, fmt.Errorf("%w: there are no events of type %q", errUndecodable, printable(shorten(string(line.Type))))
	}
	meta := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(line.Object, meta); err != nil {
		return WatchEvent{}, fmt.Errorf("%w: %w", errUndecodable, err)
	}
	e := WatchEvent{Type: line.Type, ResourceVersion: meta.ResourceVersion}
	if line.Type == cluster.WatchBookmark {
		return e, nil
	}
	meta.SetGroupVersionKind(gvk)
	e.Object = meta
	return e, named(meta.Name)
}

// watchFailed types what the server reports in the middle of a watch.
func (q *request) watchFailed(object json.RawMessage) error {
	var s metav1.Status
	if err := json.Unmarshal(object, &s); err != nil || s.Kind != "Status" {
		return fmt.Errorf("%w: an error event without a Status", errUndecodable)
	}
	s.Message = shorten(s.Message)
	reason := reasonOf(&http.Response{StatusCode: int(s.Code)}, &s)
	if s.Reason == metav1.StatusReasonExpired || s.Reason == metav1.StatusReasonGone {
		reason = ReasonExpired
	}
	return q.fail(reason, int(s.Code), &apierrors.StatusError{ErrStatus: s})
}

// errEventTooLarge ends a watch at an event beyond its bound.
var errEventTooLarge = fmt.Errorf("one event: %w", errBodyTooLarge)

// meter reads until left bytes were read, and is over then.
type meter struct {
	r    io.Reader
	left int
	over error
}

// Read gives no more than is left, and then the error.
func (m *meter) Read(p []byte) (int, error) {
	if m.left <= 0 {
		return 0, m.over
	}
	n, err := m.r.Read(p[:min(len(p), m.left)])
	m.left -= n
	return n, err
}
