package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kyma-project/mothership/internal/cluster"
)

// TestInTurn: what is asked in turn goes over one connection of HTTP/1.1, all else over one of HTTP/2, and closing closes both.
func TestInTurn(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := map[string]map[string]int{} // requests by protocol and connection
	g := faulty(t, Options{}, func(n int, w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		if seen[r.Proto] == nil {
			seen[r.Proto] = map[string]int{}
		}
		seen[r.Proto][r.RemoteAddr]++
		mu.Unlock()
		if r.Header.Get("Authorization") != "Bearer "+token {
			t.Errorf("%s: no credentials", r.Proto)
		}
		says(200, pod)(n, w, r)
	})
	for range 3 {
		for _, ctx := range []context.Context{t.Context(), cluster.InTurn(t.Context())} {
			if err := g.Get(ctx, pods, "n", "p", new(metav1.PartialObjectMetadata)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		for at, n := range seen[proto] {
			if n != 3 || len(seen[proto]) != 1 {
				t.Errorf("%s: %d requests over %s, one of %d connections", proto, n, at, len(seen[proto]))
			}
		}
	}
	if len(seen) != 2 {
		t.Errorf("protocols: %v", seen)
	}
	g.Close()
	g.awaitNoConnections(t)
}

// TestInTurnOverHTTP2: a server that speaks no HTTP/1.1 is spoken to over HTTP/2, and asked only once.
func TestInTurnOverHTTP2(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	protos, hellos := map[string]int{}, 0
	g := faulty(t, Options{}, func(n int, w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		protos[r.Proto]++
		mu.Unlock()
		if body, err := io.ReadAll(r.Body); err != nil || string(body) != "{}" {
			t.Errorf("the body is %q, %v", body, err)
		}
		says(200, pod)(n, w, r)
	})
	g.server.TLS.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		mu.Lock()
		defer mu.Unlock()
		hellos++
		only := g.server.TLS.Clone()
		only.GetConfigForClient, only.NextProtos = nil, []string{"h2"}
		if !slices.Contains(hello.SupportedProtos, "h2") { // to which a server of Go would speak HTTP/1.1 without saying so
			only.NextProtos = []string{"other"}
		}
		return only, nil
	}
	for range 2 {
		err := g.Apply(cluster.InTurn(t.Context()), pods, "n", "p", []byte("{}"), ApplyOptions{Manager: "m"}, new(metav1.PartialObjectMetadata))
		if err != nil {
			t.Fatal(err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff(map[string]int{"HTTP/2.0": 2}, protos); diff != "" || hellos != 2 {
		t.Errorf("%d connections, protocols (-want +got):\n%s", hellos, diff)
	}
}

// wire is an object as Kubernetes' protobuf.
func wire(t testing.TB, kind string, object interface{ Marshal() ([]byte, error) }) string {
	t.Helper()
	raw, err := object.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: kind}, Raw: raw}
	out, err := envelope.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return string(protobufPrefix) + string(out)
}

const isWire = "Content-Type: application/vnd.kubernetes.protobuf;as=PartialObjectMetadata"

func TestProtobuf(t *testing.T) {
	t.Parallel()
	meta := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p", Labels: map[string]string{"a": "b"}}}
	huge := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("x", maxWatchEvent)}}
	good := wire(t, "PartialObjectMetadata", meta)
	encoded := runtime.Unknown{TypeMeta: runtime.TypeMeta{Kind: "PartialObjectMetadata"}, Raw: []byte("x"), ContentEncoding: "gzip"}
	gzipped, err := encoded.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	refused := func(code int32, reason metav1.StatusReason, message string) string {
		return wire(t, "Status", &metav1.Status{Status: "Failure", Code: code, Reason: reason, Message: message})
	}
	for name, tc := range map[string]struct {
		answer answer
		want   error
		words  string
	}{
		"Metadata":     {says(200, good, isWire), nil, ""},
		"OtherKind":    {says(200, wire(t, "Pod", meta), isWire), ErrUnexpected, "cannot be decoded"},
		"Encoded":      {says(200, string(protobufPrefix)+string(gzipped), isWire), ErrUnexpected, "cannot be decoded"},
		"TooLarge":     {says(200, wire(t, "PartialObjectMetadata", huge), isWire), ErrTooLarge, "answer too large"},
		"NoPrefix":     {says(200, good[4:], isWire), ErrUnexpected, "not Kubernetes' protobuf"},
		"JSONInside":   {says(200, pod, isWire), ErrUnexpected, "not Kubernetes' protobuf"},
		"NoName":       {says(200, wire(t, "PartialObjectMetadata", &metav1.PartialObjectMetadata{}), isWire), ErrUnexpected, "it is no object"},
		"CutShort":     {says(200, good[:len(good)-9], isWire), ErrTruncated, "truncated answer"},
		"Forbidden":    {says(403, refused(403, "Forbidden", "not you"), isWire), ErrForbidden, "403 forbidden: not you"},
		"EchoedToken":  {says(403, refused(403, "Forbidden", "no: "+token+" or Bearer abcdefgh12345"), isWire), ErrForbidden, "no: [redacted] or Bearer [redacted]"},
		"NotFound":     {says(404, refused(404, "NotFound", "no such pod"), isWire), ErrNotFound, "no such pod"},
		"BrokenStatus": {says(403, string(protobufPrefix)+"nonsense", isWire), ErrForbidden, "not a Kubernetes Status"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := faulty(t, Options{}, tc.answer)
			got := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "before", Annotations: map[string]string{"old": "x"}}}
			err := g.Get(t.Context(), pods, "n", "p", &got)
			if tc.want == nil {
				want := metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: meta.ObjectMeta}
				if diff := cmp.Diff(want, got); err != nil || diff != "" {
					t.Errorf("error %v (-want +got):\n%s", err, diff)
				}
				return
			}
			if !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.words) {
				t.Errorf("error = %v, want %v with %q", err, tc.want, tc.words)
			}
			if err != nil && strings.Contains(err.Error(), token) {
				t.Error("the error has the token")
			}
		})
	}
}

// What a Status in protobuf says of a Secret's values is kept back, as that in JSON is.
func TestProtobufOfSecrets(t *testing.T) {
	t.Parallel()
	s := wire(t, "Status", &metav1.Status{Status: "Failure", Code: 422, Reason: "Invalid", Message: `data.key: Invalid value: "hunter2"`})
	g := faulty(t, Options{}, says(422, s, isWire))
	secrets := Resource{GroupVersionResource: pods.GroupVersionResource, Kind: "Secret", Namespaced: true}
	secrets.Resource = "secrets"
	err := g.Apply(t.Context(), secrets, "n", "p", []byte(`{}`), ApplyOptions{Manager: "m"}, new(metav1.PartialObjectMetadata))
	if !errors.Is(err, ErrInvalid) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("error = %v", err)
	}
}

// FuzzProtobuf: whatever a server sends is decoded or refused, and what is decoded says the same when it is encoded again.
func FuzzProtobuf(f *testing.F) {
	f.Add([]byte(wire(f, "PartialObjectMetadata", &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{"a": "b"}}})))
	f.Add([]byte(wire(f, "Status", &metav1.Status{Status: "Failure", Reason: "Invalid", Details: &metav1.StatusDetails{Name: "p"}})))
	f.Fuzz(func(t *testing.T, data []byte) {
		_ = statusJSON(data, nil)
		var m, again metav1.PartialObjectMetadata
		if unmarshalProtobuf(data, "PartialObjectMetadata", &m) != nil {
			return
		}
		if err := unmarshalProtobuf([]byte(wire(t, "PartialObjectMetadata", &m)), "PartialObjectMetadata", &again); err != nil {
			t.Fatalf("encoded again it is refused: %v", err)
		}
		if diff := cmp.Diff(m, again); diff != "" {
			t.Errorf("encoded again (-want +got):\n%s", diff)
		}
	})
}
