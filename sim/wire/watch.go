package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kyma-project/mothership/sim/state"
)

const (
	// minWatch is how long a watch lasts at least if the client does not say; it is drawn up to twice that.
	minWatch = 30 * time.Minute
	// bookmarkEvery is how often a quiet watch is told how far it is.
	bookmarkEvery = time.Minute
)

// stream is one watch.
type stream struct {
	*request
	w         *state.Watcher
	metadata  bool
	bookmarks bool
	lasts     time.Duration
	flush     func() error
}

// watch answers with events until the client leaves, its time is over, or the cluster closes.
func (q *request) watch() error {
	f, err := q.filter()
	if err != nil {
		return err
	}
	query := q.URL.Query()
	lasts := minWatch + rand.N(minWatch)
	if seconds, err := strconv.Atoi(query.Get("timeoutSeconds")); err == nil && seconds > 0 {
		lasts = time.Duration(seconds) * time.Second
	}
	s := &stream{request: q, metadata: q.metadataOnly(), bookmarks: isTrue(query.Get("allowWatchBookmarks")), lasts: lasts}
	s.flush = http.NewResponseController(q.out).Flush
	initial, err := s.begin(f)
	if err != nil {
		return err
	}
	q.out.Header().Set("Content-Type", "application/json")
	q.out.WriteHeader(http.StatusOK)
	return s.follow(initial, time.After(lasts))
}

// begin finds where the watch starts, and the objects that it starts with.
func (s *stream) begin(f state.Filter) (*state.List, error) {
	query := s.URL.Query()
	version, all := query.Get("resourceVersion"), isTrue(query.Get("sendInitialEvents"))
	if version != "" && version != "0" && !all {
		after, err := strconv.ParseUint(version, 10, 32)
		if err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version %q", version))
		}
		s.w = s.c.Watch(s.path.v, f, after)
		return nil, nil
	}
	list, err := s.c.List(s.path.v, f, 0, "")
	if err != nil {
		return nil, err
	}
	s.w = s.c.Watch(s.path.v, f, list.Version)
	return list, nil
}

var errOver = errors.New("the watch is over")

func (s *stream) follow(initial *state.List, end <-chan time.Time) error {
	if initial != nil {
		for _, o := range initial.Objects {
			s.event(watch.Added, o)
		}
		if isTrue(s.URL.Query().Get("sendInitialEvents")) {
			s.bookmark(map[string]any{metav1.InitialEventsAnnotationKey: "true"})
		}
	}
	tick := time.NewTicker(bookmarkEvery)
	defer tick.Stop()
	for { // the watch's time is its bound
		more, err := s.send()
		if err != nil {
			return nil //nolint:nilerr // it was told in the stream, or nobody listens
		}
		select {
		case <-s.Context().Done():
			return nil
		case <-end:
			if s.lasts > bookmarkEvery { // shorter ones know where they are
				s.mayBookmark()
			}
			return nil
		case <-tick.C:
			s.mayBookmark()
		case <-more:
		}
	}
}

// send writes the events that there are.
func (s *stream) send() (<-chan struct{}, error) {
	events, more, err := s.w.Next()
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		st := status.Status()
		st.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		if encoded, err := json.Marshal(st); err == nil {
			s.line(watch.Error, encoded)
		}
		return nil, errors.Join(err, s.flush())
	}
	if more == nil {
		return nil, errOver
	}
	for _, e := range events {
		if s.o.Slow != nil {
			s.o.Slow(s.Request)
		}
		s.event(e.Type, e.Object)
	}
	return more, s.flush()
}

func (s *stream) event(t watch.EventType, o state.Object) {
	s.line(t, s.encode(nil, o, s.metadata))
}

func (s *stream) line(t watch.EventType, object []byte) {
	_, _ = fmt.Fprintf(s.out, "{\"type\":%q,\"object\":%s}\n", t, object) // flush tells when the client is gone
}

func (s *stream) mayBookmark() {
	if s.bookmarks {
		s.bookmark(nil)
		_ = s.flush() // the next event tells when the client is gone
	}
}

func (s *stream) bookmark(annotations map[string]any) {
	meta := map[string]any{"resourceVersion": strconv.FormatUint(s.w.Version(), 10)}
	if annotations != nil {
		meta["annotations"] = annotations
	}
	apiVersion, kind := s.path.v.APIVersion(), s.path.v.Kind.Kind
	if s.metadata {
		apiVersion, kind = "meta.k8s.io/v1", "PartialObjectMetadata"
	}
	if encoded, err := json.Marshal(map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": meta}); err == nil {
		s.line(watch.Bookmark, encoded)
	}
}
