package controlplane_test

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/source"
)

// pollInterval is short, so that what moves is noticed within a test.
const pollInterval = time.Second

// shelf is a server of files that can change, be lost and be locked.
type shelf struct {
	*httptest.Server
	ca string

	mu     sync.Mutex
	files  map[string]string
	status map[string]int
	gets   map[string]int
}

func newShelf(t *testing.T) *shelf {
	t.Helper()
	s := &shelf{files: map[string]string{}, status: map[string]int{}, gets: map[string]int{}}
	s.Server = httptest.NewTLSServer(s)
	t.Cleanup(s.Close)
	s.ca = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	return s
}

// ServeHTTP answers with an ETag.
func (s *shelf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, status := s.files[r.URL.Path], s.status[r.URL.Path]
	etag := `"` + source.BytesDigest([]byte(text)) + `"`
	w.Header().Set("Etag", etag)
	switch {
	case status != 0:
		w.WriteHeader(status)
	case r.Header.Get("If-None-Match") == etag:
		w.WriteHeader(http.StatusNotModified)
	case r.Method == http.MethodGet:
		s.gets[r.URL.Path]++
		_, _ = io.WriteString(w, text)
	}
}

// put changes a file.
func (s *shelf) put(path, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[path] = text
}

// answer has a path answered with a status; 0 for its file.
func (s *shelf) answer(path string, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status[path] = status
}

// downloads are those of a path.
func (s *shelf) downloads(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gets[path]
}

// from is a source on the shelf.
func (s *shelf) from(path, digest string) func(*v1beta2.ModuleTemplateSpec) {
	return func(t *v1beta2.ModuleTemplateSpec) {
		t.Source = v1beta2.Source{Manifests: &v1beta2.SourceRef{URL: s.URL + path, CABundle: s.ca, Digest: digest}}
	}
}

// What moves reaches the modules that use it, without anybody changing anything in the control plane, and no others.
func TestMovedSource(t *testing.T) {
	t.Parallel()
	s, shelf := newSite(t), newShelf(t)
	text := func(name, v string) string { return configMap(s.mod(name), map[string]string{"v": v}) }
	shelf.put("/moving.yaml", text("moving", "1"))
	shelf.put("/fixed.yaml", text("fixed", "1"))
	s.offers("moving", "1.0.0", shelf.from("/moving.yaml", ""))
	s.offers("fixed", "1.0.0", shelf.from("/fixed.yaml", source.BytesDigest([]byte(text("fixed", "1")))))
	s.join()
	s.wants(s.entry("moving"), s.entry("fixed"))
	s.ready()
	before := s.state("fixed", v1beta2.StateReady)
	if first := s.state("moving", v1beta2.StateReady); first.Revision != source.BytesDigest([]byte(text("moving", "1"))) {
		t.Errorf("revision is %q", first.Revision)
	}
	shelf.put("/moving.yaml", text("moving", "2"))
	shelf.put("/fixed.yaml", text("fixed", "2"))
	s.object("moving", "the new one", func(c *corev1.ConfigMap) bool { return c.Data["v"] == "2" })
	s.module("moving", "ready with the new revision", func(m v1beta2.ModuleStatus) bool {
		return m.State == v1beta2.StateReady && m.Revision == source.BytesDigest([]byte(text("moving", "2")))
	})
	if after := s.state("fixed", v1beta2.StateReady); after.BundleDigest != before.BundleDigest || !after.LastTransitionTime.Equal(&before.LastTransitionTime) {
		t.Errorf("the other module is %+v, it was %+v", after, before)
	}
	if n := shelf.downloads("/fixed.yaml"); n != 1 {
		t.Errorf("%d downloads of what cannot move, want 1", n)
	}
	if n := shelf.downloads("/moving.yaml"); n != 2 {
		t.Errorf("%d downloads of what moved once, want 2", n)
	}
}

// A source that is lost, locked, empty or torn later leaves all as it is, and the status says so until it is mended. One that is down stops nobody.
func TestSourceFailsLater(t *testing.T) {
	t.Parallel()
	s, shelf := newSite(t), newShelf(t)
	good := configMap(s.mod("one"), map[string]string{"v": "1"})
	shelf.put("/one.yaml", good)
	s.offers("one", "1.0.0", shelf.from("/one.yaml", ""))
	s.offers("two", "1.0.0")
	s.join()
	s.wants(s.entry("one"), s.entry("two"))
	s.ready()
	before := s.state("one", v1beta2.StateReady)
	for name, tc := range map[string]struct {
		fail func()
		says string
	}{
		"Locked":  {func() { shelf.answer("/one.yaml", http.StatusForbidden) }, "server answers 403 Forbidden"},
		"Lost":    {func() { shelf.answer("/one.yaml", http.StatusNotFound) }, "server answers 404 Not Found"},
		"Empty":   {func() { shelf.put("/one.yaml", "") }, "source is empty"},
		"WebPage": {func() { shelf.put("/one.yaml", "<html>") }, "this is a web page"},
	} {
		tc.fail()
		warned := s.module("one", name+": says what is wrong with its source", func(m v1beta2.ModuleStatus) bool {
			return m.State == v1beta2.StateWarning && strings.Contains(m.Message, tc.says)
		})
		if !strings.Contains(warned.Message, "what is installed stays; its source cannot be read: ") {
			t.Errorf("%s: message is %q", name, warned.Message)
		}
		if warned.BundleDigest != before.BundleDigest || warned.Revision != before.Revision || !s.has("one") {
			t.Errorf("%s: the last good state is not kept: %+v", name, warned)
		}
		if other := s.state("two", v1beta2.StateReady); other.Message != "" {
			t.Errorf("%s: the other module is %+v", name, other)
		}
		shelf.answer("/one.yaml", 0)
		shelf.put("/one.yaml", good)
		s.state("one", v1beta2.StateReady)
	}
	shelf.answer("/one.yaml", http.StatusServiceUnavailable)
	for _, k := range s.during(3 * pollInterval) {
		t.Errorf("a server is down, and the status is written: %+v", k.Status)
	}
	s.offers("two", "1.1.0")
	s.at("two", "1.1.0")
}

// A source that does not move but could not be had, for a reason that somebody had to mend, is asked for again.
func TestMendedSource(t *testing.T) {
	t.Parallel()
	s, shelf := newSite(t), newShelf(t)
	text := configMap(s.mod("one"), map[string]string{"v": "1"})
	shelf.put("/one.yaml", text)
	shelf.answer("/one.yaml", http.StatusForbidden)
	s.offers("one", "1.0.0", shelf.from("/one.yaml", source.BytesDigest([]byte(text))))
	s.join()
	s.wants(s.entry("one"))
	s.module("one", "in error", func(m v1beta2.ModuleStatus) bool {
		return m.State == v1beta2.StateError && strings.Contains(m.Message, "server answers 403 Forbidden") && m.Revision == ""
	})
	shelf.answer("/one.yaml", 0)
	s.state("one", v1beta2.StateReady)
}
