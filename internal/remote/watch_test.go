package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kyma-project/mothership/internal/cluster"
	"github.com/kyma-project/mothership/internal/infra/local/localtest"
)

// line is an event of a Pod, as a server sends it.
func line(kind, name, version string) string {
	return fmt.Sprintf(`{"type":%q,"object":{"kind":"PartialObjectMetadata","metadata":{"name":%q,"namespace":"n","resourceVersion":%q}}}`+"\n", kind, name, version)
}

// failed is an event that reports a Status.
func failed(code int, reason metav1.StatusReason) string {
	return `{"type":"ERROR","object":` + status(code, reason, "because") + "}\n"
}

// story is what a watch saw, as "ADDED a@1 …".
func story(events []WatchEvent) string {
	var out []string
	for _, e := range events {
		name := ""
		if e.Object != nil {
			name = " " + e.Object.Name
		}
		out = append(out, string(e.Type)+name+"@"+e.ResourceVersion)
	}
	return strings.Join(out, ", ")
}

func TestWatchAnswers(t *testing.T) {
	t.Parallel()
	added, bookmark := line("ADDED", "a", "1"), `{"type":"BOOKMARK","object":{"kind":"PartialObjectMetadata","metadata":{"resourceVersion":"7","creationTimestamp":null}}}`+"\n"
	large := strings.Repeat("x", maxWatchEvent)
	for name, tc := range map[string]struct {
		answer answer
		want   error
		story  string
		words  string
	}{
		"EndsInOrder":       {says(200, added+line("MODIFIED", "a", "2")+line("DELETED", "a", "3")), nil, "ADDED a@1, MODIFIED a@2, DELETED a@3", ""},
		"Bookmark":          {says(200, added+bookmark), nil, "ADDED a@1, BOOKMARK@7", ""},
		"Nothing":           {says(200, ""), nil, "", ""},
		"WithoutLineBreaks": {says(200, strings.ReplaceAll(added+bookmark, "\n", "")), nil, "ADDED a@1, BOOKMARK@7", ""},
		"StreamType":        {says(200, added, "Content-Type: application/json;stream=watch"), nil, "ADDED a@1", ""},
		"CutWithinAnEvent":  {says(200, added+added[:40]), ErrTruncated, "ADDED a@1", "watching Pod: truncated answer"},
		"ExpiredAtOnce":     {says(410, status(410, metav1.StatusReasonExpired, "too old")), ErrExpired, "", "watching Pod: 410 expired: too old"},
		"ExpiredLater":      {says(200, added+failed(410, metav1.StatusReasonExpired)), ErrExpired, "ADDED a@1", "watching Pod: 410 expired: because"},
		"GoneLater":         {says(200, failed(410, metav1.StatusReasonGone)), ErrExpired, "", ""},
		"FailedLater":       {says(200, failed(500, metav1.StatusReasonInternalError)), ErrUnavailable, "", "500 unavailable: because"},
		"ForbiddenAtOnce":   {says(403, status(403, "Forbidden", "no")), ErrForbidden, "", ""},
		"KindNotServed":     {says(404, "404 page not found", plain, audited), ErrNoKind, "", ""},
		"Page":              {says(200, "<html>", html), ErrUnexpected, "", ""},
		"NoEvent":           {says(200, `{"type":"PARTY","object":{}}`), ErrUnexpected, "", `"PARTY"`},
		"NoObject":          {says(200, `{"type":"ADDED","object":{"metadata":{}}}`), ErrUnexpected, "", ""},
		"ErrorWithoutWords": {says(200, `{"type":"ERROR","object":{}}`), ErrUnexpected, "", ""},
		"Undecodable":       {says(200, added+"what?"), ErrUnexpected, "ADDED a@1", ""},
		"TooLarge":          {says(200, added+`{"type":"ADDED","object":{"metadata":{"name":"`+large+large+`"}}}`), ErrTooLarge, "ADDED a@1", "more than 4 MiB"},
		"LargeInAll":        {says(200, strings.Repeat(line("ADDED", strings.Repeat("y", 1<<20), "1"), 6)+bookmark), nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := faulty(t, Options{}, tc.answer)
			var events []WatchEvent
			err := g.WatchMeta(t.Context(), pods, WatchOptions{}, func(e WatchEvent) { events = append(events, e) })
			if tc.want == nil && err != nil || !errors.Is(err, tc.want) {
				t.Fatalf("error = %v, want %v", err, tc.want)
			}
			if err != nil && !strings.Contains(err.Error(), tc.words) {
				t.Errorf("message = %q, want %q in it", err, tc.words)
			}
			if name == "LargeInAll" {
				if len(events) != 7 {
					t.Errorf("%d events", len(events))
				}
				return
			}
			if got := story(events); got != tc.story || g.calls != 1 {
				t.Errorf("events = %q in %d requests, want %q in one", got, g.calls, tc.story)
			}
		})
	}
}

func TestWatchIsAskedFor(t *testing.T) {
	t.Parallel()
	asked := make(chan *http.Request, 1)
	g := faulty(t, Options{}, func(n int, w http.ResponseWriter, r *http.Request) {
		asked <- r
		says(200, "")(n, w, r)
	})
	if err := g.WatchMeta(t.Context(), pods, WatchOptions{LabelSelector: "a,b=c", ResourceVersion: "42"}, nil); err != nil {
		t.Fatal(err)
	}
	r := <-asked
	seconds, err := strconv.Atoi(r.FormValue("timeoutSeconds"))
	if err != nil || seconds < 300 || seconds > 600 {
		t.Errorf("timeoutSeconds = %s, %v", r.FormValue("timeoutSeconds"), err)
	}
	want := fmt.Sprintf("/api/v1/pods?allowWatchBookmarks=true&labelSelector=a%%2Cb%%3Dc&resourceVersion=42&timeoutSeconds=%d&watch=true", seconds)
	if got := r.URL.RequestURI(); got != want || r.Header.Get("Accept") != acceptMetaJSON {
		t.Errorf("asked for %q as %q, want %q", got, r.Header.Get("Accept"), want)
	}
	if diff := cmp.Diff(Stats{VerbWatch: 1}, g.Stats()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// begun answers a watch with text and goes on until its sender gives up.
func begun(text string) answer {
	return func(n int, w http.ResponseWriter, r *http.Request) {
		says(200, text)(n, w, r)
		_ = http.NewResponseController(w).Flush()
		hang(n, w, r)
	}
}

func TestStalledWatchEnds(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer  answer
		timeout time.Duration // of a call
		lasts   time.Duration // of the watch, without grace
		events  int
	}{
		"BeforeItBegins": {hang, 50 * time.Millisecond, time.Hour, 0},
		"Afterwards":     {begun(line("ADDED", "a", "1")), time.Minute, 100*time.Millisecond - watchGrace, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := faulty(t, Options{Timeout: tc.timeout}, tc.answer)
			g.watchFor = func() time.Duration { return tc.lasts }
			n := 0
			err := g.WatchMeta(t.Context(), pods, WatchOptions{}, func(WatchEvent) { n++ })
			if !errors.Is(err, ErrTimeout) || n != tc.events {
				t.Errorf("error = %v after %d events, want a timeout after %d", err, n, tc.events)
			}
		})
	}
}

// TestWatchesHoldUpNobody: more watches than slots, for longer than a call may take, beside other calls.
func TestWatchesHoldUpNobody(t *testing.T) {
	t.Parallel()
	for name, http2 := range map[string]bool{"HTTP2": true, "HTTP1": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const watches, timeout = 40, 2 * time.Second
			g := faulty(t, Options{MaxInFlight: 2, Timeout: timeout}, func(n int, w http.ResponseWriter, r *http.Request) {
				if r.FormValue("watch") != "" {
					begun(line("ADDED", "a", "1"))(n, w, r)
					return
				}
				says(200, pod)(n, w, r)
			})
			if !http2 {
				cfg := configOf(g.server)
				cfg.NextProtos = []string{"http/1.1"}
				if err := g.Swap(cfg); err != nil {
					t.Fatal(err)
				}
			}
			ctx, stop := context.WithCancelCause(t.Context())
			started, ended := make(chan struct{}, watches), make(chan error, watches)
			for range watches {
				go func() {
					ended <- g.WatchMeta(ctx, pods, WatchOptions{}, func(WatchEvent) { started <- struct{}{} })
				}()
			}
			for range watches {
				<-started
			}
			later := time.After(timeout + timeout/4)
			for done := false; !done; {
				if err := g.Get(t.Context(), pods, "n", "p", nil); err != nil {
					t.Fatal(err)
				}
				select {
				case <-later:
					done = true
				case err := <-ended:
					t.Fatalf("a watch ended: %v", err)
				case <-time.After(10 * time.Millisecond):
				}
			}
			g.Close() // closes what is idle, and no watch
			if err := g.Get(t.Context(), pods, "n", "p", nil); err != nil {
				t.Fatal(err)
			}
			stop(errStopped)
			for range watches {
				if err := <-ended; !errors.Is(err, errStopped) {
					t.Errorf("error = %v, want the cause of the end of the context", err)
				}
			}
		})
	}
}

// TestWatchOfARealServer goes on where a list and a watch before it have ended.
func TestWatchOfARealServer(t *testing.T) {
	t.Parallel()
	c, ns := realClient(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	configMaps, label := resource(t, c, "v1", "ConfigMap"), map[string]string{"watched": ns}
	for _, name := range []string{"a", "b"} {
		if err := c.Create(ctx, configMaps, ns, configMap(name, nil, label), nil); err != nil {
			t.Fatal(err)
		}
	}
	o := WatchOptions{LabelSelector: "watched=" + ns}
	items, version, err := c.ListMetaVersion(ctx, configMaps, ListOptions{LabelSelector: o.LabelSelector, Limit: 1})
	if err != nil || len(items) != 2 || version == "" {
		t.Fatalf("%d items at %q, %v", len(items), version, err)
	}
	o.ResourceVersion = version
	patch := func(name, text string) {
		t.Helper()
		if err := c.Patch(ctx, configMaps, ns, name, types.MergePatchType, []byte(text), PatchOptions{Manager: "p"}, nil); err != nil {
			t.Fatal(err)
		}
	}
	patch("a", `{"data":{"k":"1"}}`)
	next := follow(ctx, c, configMaps, &o)
	if e := next(); e.Type != cluster.WatchModified || e.Object.Name != "a" || len(e.Object.ManagedFields) == 0 || e.Object.Kind != "ConfigMap" {
		t.Errorf("event: %s %+v", e.Type, e.Object)
	}
	patch("b", `{"metadata":{"labels":null}}`)
	if e := next(); e.Type != cluster.WatchDeleted || e.Object.Name != "b" {
		t.Errorf("without its label: %s %+v", e.Type, e.Object)
	}
	if err := c.Delete(ctx, configMaps, ns, "a", DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if e := next(); e.Type != cluster.WatchDeleted || e.Object.Name != "a" || e.ResourceVersion == "" {
		t.Errorf("deleted: %s %+v", e.Type, e.Object)
	}
	c.watchFor = func() time.Duration { return time.Second }
	ending := newClient(t, localtest.Server(t).Config(), Options{})
	ending.watchFor = func() time.Duration { return time.Second }
	if err := ending.WatchMeta(ctx, configMaps, o, func(WatchEvent) {}); err != nil {
		t.Errorf("the server ended it in time: %v", err)
	}
}

// follow watches in the background; what it returns gives the next event that is no bookmark.
func follow(ctx context.Context, c *Client, r Resource, o *WatchOptions) func() WatchEvent {
	events := make(chan WatchEvent, 100)
	go func() {
		defer close(events)
		_ = c.WatchMeta(ctx, r, *o, func(e WatchEvent) { events <- e })
	}()
	return func() WatchEvent {
		for e := range events {
			o.ResourceVersion = e.ResourceVersion
			if e.Type != cluster.WatchBookmark {
				return e
			}
		}
		return WatchEvent{}
	}
}
