package informer

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// kyma is one with all kinds of fields, as the API server sends it.
const kyma = `{"apiVersion":"operator.kyma-project.io/v1beta2","kind":"Kyma","metadata":{"name":"eu-1","namespace":"kcp-system",
"uid":"u-1","resourceVersion":"17","generation":3,"creationTimestamp":"2026-11-21T10:00:00Z","labels":{"a":"b"},
"finalizers":["operator.kyma-project.io/mothership"],
"managedFields":[{"manager":"kubectl","operation":"Apply","fieldsV1":{"f:spec":{"f:channel":{}}}}]},
"spec":{"channel":"regular","modules":[{"name":"istio","managed":true,"customResourcePolicy":"CreateAndDelete","values":{"a":[1,2.5,"x"],"b":null}}]},
"status":{"state":"Ready","observedGeneration":3,"runtimeUID":"r-1","modulesReady":"1/1",
"conditions":[{"type":"Ready","status":"True","reason":"AllModulesReady","message":"1 of 1 modules are ready","lastTransitionTime":"2026-11-21T10:00:01Z"}],
"modules":[{"name":"istio","namespace":"kyma-system","version":"1.0.0","channel":"regular","state":"Ready","inputDigest":"i","bundleDigest":"b","lastTransitionTime":"2026-11-21T10:00:02Z"}]}}`

func events(t *testing.T, body string) []watch.Event {
	t.Helper()
	w := start[v1beta2.Kyma](io.NopCloser(strings.NewReader(body)), func() {})
	defer w.Stop()
	var out []watch.Event
	for e := range w.ResultChan() {
		out = append(out, e)
	}
	return out
}

// What is decoded is what client-go decodes, without managed fields.
func TestSameAsTheUsualDecoder(t *testing.T) {
	t.Parallel()
	var want v1beta2.Kyma
	if err := json.Unmarshal([]byte(kyma), &want); err != nil {
		t.Fatal(err)
	}
	want.ManagedFields = nil
	for name, body := range map[string]string{
		"as the server sends it": `{"type":"MODIFIED","object":` + kyma + "}\n",
		"the other way round":    `{"object":` + kyma + `,"more":{"x":1},"type":"MODIFIED"}`,
	} {
		got := events(t, body)
		if len(got) != 1 || got[0].Type != watch.Modified {
			t.Fatalf("%s: %v", name, got)
		}
		if diff := cmp.Diff(runtime.Object(&want), got[0].Object); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestStream(t *testing.T) {
	t.Parallel()
	bookmark := `{"type":"BOOKMARK","object":{"kind":"Kyma","metadata":{"resourceVersion":"20","annotations":{"k8s.io/initial-events-end":"true"}}}}`
	expired := `{"type":"ERROR","object":{"kind":"Status","status":"Failure","reason":"Expired","code":410,"message":"too old"}}`
	for name, c := range map[string]struct {
		body string
		want string
	}{
		"events":        {`{"type":"ADDED","object":` + kyma + "}\n" + bookmark + "\n" + expired, "ADDED 17, BOOKMARK 20, ERROR Expired"},
		"ends early":    {`{"type":"ADDED","object":` + kyma + "}\n" + `{"type":"MODIFIED","object":{"metadata":{"na`, "ADDED 17"},
		"ends at once":  {"", ""},
		"no JSON":       {"<html>", "ERROR InternalError"},
		"a list":        {"[1]", "ERROR InternalError"},
		"unknown type":  {`{"type":"GONE","object":{}}`, "ERROR InternalError"},
		"no object":     {`{"type":"ADDED"}`, "ERROR InternalError"},
		"another shape": {`{"type":"ADDED","object":{"spec":"x"}}`, "ERROR InternalError"},
	} {
		var got []string
		for _, e := range events(t, c.body) {
			switch o := e.Object.(type) {
			case *v1beta2.Kyma:
				got = append(got, fmt.Sprintf("%s %s", e.Type, o.ResourceVersion))
			case *metav1.Status:
				got = append(got, fmt.Sprintf("%s %s", e.Type, o.Reason))
			}
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: %s, want %s", name, text, c.want)
		}
	}
}

// Stop ends a watch that nobody reads, and the one who decodes.
func TestStop(t *testing.T) {
	t.Parallel()
	read, write := io.Pipe()
	w := start[v1beta2.Kyma](read, func() { _ = read.Close() })
	go func() { _, _ = io.WriteString(write, `{"type":"ADDED","object":`+kyma+"}\n") }()
	w.Stop()
	w.Stop()
	for range w.ResultChan() { // closed, after one event at most
	}
}

// FuzzNext: whatever comes, decoding ends with an event or an error.
func FuzzNext(f *testing.F) {
	f.Add(`{"type":"ADDED","object":` + kyma + `}`)
	f.Add(`{"object":{},"type":"ERROR"}`)
	f.Add(`{"type":"ADDED","object":{"metadata":{"managedFields":[{}]}}}`)
	f.Fuzz(func(t *testing.T, body string) {
		for _, e := range events(t, body) {
			if e.Object == nil {
				t.Errorf("an event without an object: %v", e)
			}
		}
	})
}

func BenchmarkNext(b *testing.B) {
	body := `{"type":"MODIFIED","object":` + kyma + "}\n"
	b.Run("OnePass", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			w := start[v1beta2.Kyma](io.NopCloser(strings.NewReader(body)), func() {})
			for range w.ResultChan() {
			}
		}
	})
	b.Run("EncodingJSON", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var e struct {
				Type   string
				Object json.RawMessage
			}
			var k v1beta2.Kyma
			if err := json.Unmarshal([]byte(body), &e); err != nil {
				b.Fatal(err)
			}
			if err := json.Unmarshal(e.Object, &k); err != nil {
				b.Fatal(err)
			}
		}
	})
}
