package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kyma-project/mothership/sim/content"
	"github.com/kyma-project/mothership/sim/schema"
	"github.com/kyma-project/mothership/sim/state"
)

// Options of an answer.
type Options struct {
	// HalfDiscovery has every second group not answer.
	HalfDiscovery bool
	// Slow, if not nil, is called before each event of a watch.
	Slow func(*http.Request)
}

// request is one request, understood.
type request struct {
	*http.Request
	c    *state.Cluster
	o    Options
	out  http.ResponseWriter
	path place
}

// place is what a path names.
type place struct {
	gvr             apischema.GroupVersionResource
	namespace, name string
	sub             string
	v               *schema.Version
}

// Serve answers a request for a cluster. The request's path is as the API server knows it, without a prefix.
func Serve(w http.ResponseWriter, r *http.Request, c *state.Cluster, o Options) {
	w.Header().Set("Audit-Id", auditID())
	w.Header().Set("Cache-Control", "no-cache, private")
	q := &request{Request: r, c: c, o: o, out: w}
	if err := q.serve(); err != nil {
		q.fail(err)
	}
}

func (q *request) serve() error {
	segments := strings.Split(strings.Trim(q.URL.Path, "/"), "/")
	switch {
	case segments[0] == "api" && len(segments) > 2:
		return q.resource(apischema.GroupVersion{Version: segments[1]}, segments[2:])
	case segments[0] == "apis" && len(segments) > 3:
		return q.resource(apischema.GroupVersion{Group: segments[1], Version: segments[2]}, segments[3:])
	}
	return q.document(segments)
}

// resource serves what is behind /api/v1/ or /apis/<group>/<version>/.
func (q *request) resource(gv apischema.GroupVersion, segments []string) error {
	p := place{}
	if segments[0] == "namespaces" && len(segments) > 2 && !isNamespacePart(segments[2]) {
		p.namespace, segments = segments[1], segments[2:]
	}
	p.gvr = gv.WithResource(segments[0])
	if len(segments) > 1 {
		p.name = segments[1]
	}
	if len(segments) > 2 {
		p.sub = segments[2]
	}
	if len(segments) > 3 {
		return errNoPath
	}
	p.v = q.c.Catalog().Resource(p.gvr)
	q.path = p
	if p.v == nil {
		return q.review()
	}
	if p.v.Namespaced != (p.namespace != "") && (p.name != "" || !p.v.Namespaced || q.Method == http.MethodPost) {
		return errNoPath
	}
	return q.verb()
}

// isNamespacePart says whether a segment behind a namespace's name is a part of the namespace itself.
func isNamespacePart(segment string) bool { return segment == "status" || segment == "finalize" }

// errNoPath is the answer to paths that lead nowhere: not a Status.
var errNoPath = errors.New("404 page not found")

func (q *request) verb() error {
	if q.path.sub != "" {
		return q.subresource()
	}
	single := q.path.name != ""
	switch q.Method {
	case http.MethodGet:
		if single {
			return q.get()
		}
		if isTrue(q.URL.Query().Get("watch")) {
			return q.watch()
		}
		return q.list()
	case http.MethodPost:
		if !single {
			return q.create()
		}
	case http.MethodPut:
		if single {
			return q.update(schema.Main)
		}
	case http.MethodPatch:
		if single {
			return q.patch(schema.Main)
		}
	case http.MethodDelete:
		if single {
			return q.delete()
		}
		if q.path.v.Namespaced && q.path.namespace == "" {
			break
		}
		return q.deleteCollection()
	}
	return apierrors.NewMethodNotSupported(q.path.v.GroupResource(), q.Method)
}

func (q *request) subresource() error {
	switch {
	case q.path.sub == "status" && q.path.v.Status:
		switch q.Method {
		case http.MethodGet:
			return q.get()
		case http.MethodPut:
			return q.update(schema.Status)
		case http.MethodPatch:
			return q.patch(schema.Status)
		}
		return apierrors.NewMethodNotSupported(q.path.v.GroupResource(), q.Method)
	case q.path.sub == "token" && q.path.gvr.Resource == "serviceaccounts" && q.Method == http.MethodPost:
		return q.token()
	}
	return errNoPath
}

func isTrue(s string) bool { return s == "true" || s == "1" }

// fail answers an error.
func (q *request) fail(err error) {
	var status apierrors.APIStatus
	switch {
	case errors.Is(err, errNoPath):
		http.Error(q.out, errNoPath.Error(), http.StatusNotFound)
		return
	case !errors.As(err, &status):
		status = &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError, Message: err.Error(),
		}}
	}
	WriteStatus(q.out, q.Request, status.Status())
}

// Content types of answers.
const (
	jsonType     = "application/json"
	protobufType = "application/vnd.kubernetes.protobuf"
)

// wantsProtobuf says whether a client prefers protobuf. It gets that for the metadata of one object, and JSON for all else.
func wantsProtobuf(r *http.Request) bool {
	return strings.HasPrefix(r.Header.Get("Accept"), protobufType)
}

// wantsProtobufStatus says whether a client prefers protobuf for what it does not want as something else.
func wantsProtobufStatus(r *http.Request) bool {
	for _, form := range strings.Split(r.Header.Get("Accept"), ",") {
		if !strings.Contains(form, "as=") {
			return strings.HasPrefix(strings.TrimSpace(form), protobufType)
		}
	}
	return false
}

// WriteStatus answers a request with a Status of its code.
func WriteStatus(w http.ResponseWriter, r *http.Request, s metav1.Status) {
	s.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	code := int(s.Code)
	if s.Status == metav1.StatusSuccess {
		s.Code = 0
	}
	contentType, body, err := encodeStatus(r, &s)
	if err != nil {
		http.Error(w, fmt.Sprint(err), http.StatusInternalServerError)
		return
	}
	if s.Details != nil && s.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(s.Details.RetryAfterSeconds))
	}
	answer(w, code, contentType, body)
}

func encodeStatus(r *http.Request, s *metav1.Status) (contentType string, _ []byte, err error) {
	protobuf := wantsProtobufStatus(r)
	if s.Status == metav1.StatusSuccess { // in the place of an object
		protobuf = wantsProtobuf(r)
	}
	if !protobuf {
		out, err := json.Marshal(s)
		return jsonType, out, err
	}
	raw, err := s.Marshal()
	if err != nil {
		return "", nil, err
	}
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: s.APIVersion, Kind: s.Kind}, Raw: raw}
	out, err := envelope.Marshal()
	return protobufType, append([]byte(content.ProtobufPrefix), out...), err
}

func answer(w http.ResponseWriter, code int, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(code)
	_, _ = w.Write(body) // the client is gone
}

func (q *request) json(code int, body any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return err
	}
	answer(q.out, code, jsonType, encoded)
	return nil
}
