package source

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// digestRef is a reference to manifests that are known by their digest.
func digestRef(url, content string) Ref {
	ref := urlRef(Manifests, url)
	ref.Digest = BytesDigest([]byte(content))
	return ref
}

// counted is a Fetcher that answers the url as content, and counts.
func counted(n *atomic.Int32) Fetcher {
	return FetcherFunc(func(ctx context.Context, ref Ref) (*Tree, error) {
		n.Add(1)
		return Unpack(ctx, ref, []byte(ref.URL), Limits{})
	})
}

func TestCachedSharesOneDownload(t *testing.T) {
	t.Parallel()
	const waiters = 1000
	var requests atomic.Int32
	arrived, release := make(chan struct{}), make(chan struct{})
	srv := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1) == 1 {
			close(arrived)
		}
		<-release
		_, _ = w.Write([]byte("a: 1\n"))
	})
	c := Cached(New(Options{}), 1<<20).(*cache)
	ref := digestRef(srv.URL, "a: 1\n")
	var all sync.WaitGroup
	trees := make([]*Tree, waiters)
	for i := range waiters {
		all.Go(func() {
			tree, err := c.Fetch(t.Context(), ref)
			if err != nil {
				t.Error(err)
			}
			trees[i] = tree
		})
	}
	<-arrived
	close(release)
	all.Wait()
	if requests.Load() != 1 {
		t.Errorf("%d requests, want 1", requests.Load())
	}
	for _, tree := range trees {
		if tree == nil || tree != trees[0] {
			t.Fatal("waiters got different trees")
		}
	}
	if _, err := c.Fetch(t.Context(), ref); err != nil || requests.Load() != 1 || len(c.flights) != 0 {
		t.Errorf("later: %v, %d requests, %d flights", err, requests.Load(), len(c.flights))
	}
}

func TestCachedSharesOneFlight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int32
		release := make(chan struct{})
		c := Cached(FetcherFunc(func(ctx context.Context, ref Ref) (*Tree, error) {
			n.Add(1)
			<-release
			return Unpack(ctx, ref, []byte("a: 1\n"), Limits{})
		}), 0).(*cache) // nothing is kept, so only the flight can be shared
		var all sync.WaitGroup
		for range 1000 {
			all.Go(func() {
				if _, err := c.Fetch(t.Context(), urlRef(Manifests, "https://example.com/x.yaml")); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait() // all of them wait
		close(release)
		all.Wait()
		if n.Load() != 1 || len(c.flights) != 0 {
			t.Errorf("%d fetches, %d flights left", n.Load(), len(c.flights))
		}
	})
}

func TestCachedCancelledWaiter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release, ended := make(chan struct{}), make(chan error, 1)
		c := Cached(FetcherFunc(func(ctx context.Context, ref Ref) (*Tree, error) {
			select {
			case <-release:
				return Unpack(ctx, ref, []byte("a: 1\n"), Limits{})
			case <-ctx.Done():
				ended <- context.Cause(ctx)
				return nil, context.Cause(ctx)
			}
		}), 1<<20)
		first, leave := context.WithCancel(t.Context())
		wait := func(ctx context.Context) chan error {
			result := make(chan error, 1)
			go func() {
				_, err := c.Fetch(ctx, urlRef(Manifests, "https://example.com/x.yaml"))
				result <- err
			}()
			synctest.Wait()
			return result
		}
		impatient, patient := wait(first), wait(t.Context())
		leave()
		wantError(t, <-impatient, context.Canceled)
		close(release)
		if err := <-patient; err != nil {
			t.Errorf("the other waiter got %v", err)
		}

		release = make(chan struct{})
		last, leave := context.WithCancel(t.Context())
		alone := wait(last)
		leave()
		wantError(t, <-alone, context.Canceled)
		wantError(t, <-ended, errAbandoned)
		again := wait(t.Context())
		close(release)
		if err := <-again; err != nil {
			t.Errorf("who came later got %v", err)
		}
	})
}

func TestCachedIsBounded(t *testing.T) {
	t.Parallel()
	var n atomic.Int32
	content := func(i int) string { return fmt.Sprintf("https://example.com/%d/%s", i, strings.Repeat("x", 900)) }
	c := Cached(counted(&n), 3000).(*cache)
	get := func(i int) {
		t.Helper()
		if _, err := c.Fetch(t.Context(), digestRef(content(i), content(i))); err != nil {
			t.Fatal(err)
		}
		if c.bytes > c.max || len(c.kept) != c.order.Len() {
			t.Fatalf("%d bytes, %d kept, %d ordered", c.bytes, len(c.kept), c.order.Len())
		}
	}
	for _, i := range []int{0, 1, 0, 2, 3} { // 1 is the least recently used when room is needed, then 0
		get(i)
	}
	before := n.Load()
	get(3)
	get(2)
	if n.Load() != before {
		t.Errorf("what was used last was not kept")
	}
	get(1)
	if n.Load() != before+1 {
		t.Errorf("what was used least recently was kept")
	}
	large := strings.Repeat("x", 4000)
	if _, err := c.Fetch(t.Context(), digestRef(large, large)); err != nil || len(c.kept) == 0 {
		t.Errorf("one large tree: %v, %d kept", err, len(c.kept))
	}
}

func TestCachedKeys(t *testing.T) {
	t.Parallel()
	var n atomic.Int32
	same := FetcherFunc(func(ctx context.Context, ref Ref) (*Tree, error) {
		n.Add(1)
		return Unpack(ctx, ref, packFiles(t, "a/kustomization.yaml", "", "b/kustomization.yaml", ""), Limits{})
	})
	c := Cached(same, 1<<20)
	ref := func(kind Kind, url, path string) Ref {
		r := urlRef(kind, url)
		r.Path, r.Digest = path, BytesDigest(packFiles(t, "a/kustomization.yaml", "", "b/kustomization.yaml", ""))
		return r
	}
	noDigest := urlRef(Manifests, "https://example.com")
	steps := []struct {
		ref      Ref
		requests int32
	}{
		{ref(Kustomize, "https://example.com/1", "a"), 1},
		{ref(Kustomize, "https://example.com/2", "a"), 1}, // the same content from another place
		{ref(Kustomize, "https://example.com/1", "b"), 2},
		{ref(Manifests, "https://example.com/1", "a"), 3},
		{noDigest, 4},
		{noDigest, 5},
	}
	for i, s := range steps {
		if _, err := c.Fetch(t.Context(), s.ref); err != nil || n.Load() != s.requests {
			t.Errorf("step %d: %v, %d requests, want %d", i, err, n.Load(), s.requests)
		}
	}
}

func TestCachedKeepsNoErrorsAndNoPaths(t *testing.T) {
	t.Parallel()
	n := 0
	c := Cached(FetcherFunc(func(context.Context, Ref) (*Tree, error) {
		n++
		return nil, errors.New("not today")
	}), 1<<20)
	local := pathRef(Manifests, "x")
	local.Digest = BytesDigest(nil)
	for _, ref := range []Ref{digestRef("https://example.com", ""), local} {
		n = 0
		for range 2 {
			if _, err := c.Fetch(t.Context(), ref); err == nil {
				t.Error("no error")
			}
		}
		if n != 2 {
			t.Errorf("%d fetches, want 2", n)
		}
	}
}
