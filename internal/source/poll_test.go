package source

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// moving is a source whose content changes, and which counts what it is asked.
type moving struct {
	content          string
	down             bool
	fetches, checked atomic.Int32
}

var _ Checker = (*moving)(nil)

func (m *moving) Fetch(ctx context.Context, ref Ref) (*Tree, error) {
	m.fetches.Add(1)
	if m.down {
		return nil, refuse(ErrUnavailable, "", "is down")
	}
	return Unpack(ctx, ref, []byte(m.content), Limits{})
}

func (m *moving) Current(_ context.Context, _ Ref, t *Tree) (bool, error) {
	m.checked.Add(1)
	if m.down {
		return false, refuse(ErrUnavailable, "", "is down")
	}
	return t.Digest == BytesDigest([]byte(m.content)), nil
}

const pollInterval = 5 * time.Minute

func TestPolled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &moving{content: "a: 1\n"}
		p := Polled(m, 1<<20, pollInterval)
		steps := []struct {
			name             string
			wait             time.Duration
			content          string
			down             bool
			want             string
			fetches, checked int32 // in all
		}{
			{name: "first", want: "a: 1\n", fetches: 1},
			{name: "soon after", wait: pollInterval / 2, content: "a: 2\n", want: "a: 1\n", fetches: 1},
			{name: "when due", wait: pollInterval, want: "a: 2\n", fetches: 2, checked: 1},
			{name: "when due and unchanged", wait: 2 * pollInterval, want: "a: 2\n", fetches: 2, checked: 2},
			{name: "while the server is down", wait: 2 * pollInterval, down: true, want: "a: 2\n", fetches: 2, checked: 3},
			{name: "just after that", wait: time.Second, down: true, want: "a: 2\n", fetches: 2, checked: 3},
			{name: "when it is up again, sooner than the interval", wait: pollInterval / 3, content: "a: 3\n", want: "a: 3\n", fetches: 3, checked: 4},
		}
		for _, s := range steps {
			time.Sleep(s.wait) // virtual
			if s.content != "" {
				m.content = s.content
			}
			m.down = s.down
			tree, err := p.Fetch(t.Context(), urlRef(Manifests, "https://example.com/x.yaml"))
			if err != nil || string(tree.Files[0].Data) != s.want {
				t.Fatalf("%s: %+v, %v", s.name, tree, err)
			}
			if f, c := m.fetches.Load(), m.checked.Load(); f != s.fetches || c != s.checked {
				t.Errorf("%s: %d fetches and %d checks, want %d and %d", s.name, f, c, s.fetches, s.checked)
			}
		}
	})
}

// The fleet asks once per interval, however many runtimes there are, and not all references at the same time.
func TestPolledIsAskedOnceAndWithJitter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &moving{content: "a: 1\n"}
		p := Polled(m, 1<<20, pollInterval)
		ref := func(i int) Ref { return urlRef(Manifests, fmt.Sprintf("https://example.com/%d.yaml", i)) }
		fetchAll := func(n int) {
			var all sync.WaitGroup
			for i := range n {
				all.Go(func() {
					if _, err := p.Fetch(t.Context(), ref(i%10)); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
		}
		fetchAll(1000)
		if n := m.fetches.Load(); n != 10 {
			t.Errorf("%d fetches, want 10", n)
		}
		time.Sleep(pollInterval) // virtual: some are due, some are not
		fetchAll(1000)
		if n := m.checked.Load(); n == 0 || n == 10 {
			t.Errorf("%d of 10 references were due at the same moment", n)
		}
		time.Sleep(2 * pollInterval)
		m.checked.Store(0)
		fetchAll(1000)
		if n := m.checked.Load(); n != 10 {
			t.Errorf("%d checks, want 10", n)
		}
	})
}

func TestPolledErrors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &moving{down: true}
		p := Polled(m, 1<<20, pollInterval)
		ref := urlRef(Manifests, "https://example.com/x.yaml")
		_, err := p.Fetch(t.Context(), ref)
		wantError(t, err, ErrUnavailable, "is down")
		m.down, m.content = false, "a: 1\n"
		if _, err := p.Fetch(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
		m.content = "" // empty: refused, which nobody hides
		time.Sleep(2 * pollInterval)
		_, err = p.Fetch(t.Context(), ref)
		wantError(t, err, ErrInvalid, "source is empty")
	})
}

// What cannot move is never asked for again; others do not get what somebody's credentials brought.
func TestPolledKeys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &moving{content: "a: 1\n"}
		commit := Ref{Kind: Manifests, SourceRef: v1beta2.SourceRef{Git: &v1beta2.GitSource{URL: "https://example.com/r", Ref: "0123456789012345678901234567890123456789"}}}
		pinned := Ref{Kind: Manifests, SourceRef: v1beta2.SourceRef{OCI: &v1beta2.OCISource{URL: "oci://example.com/r", Digest: BytesDigest(nil)}}}
		url := urlRef(Manifests, "https://example.com/x")
		mine := url
		mine.CABundle = "mine"
		for _, p := range []Fetcher{Polled(m, 1<<20, pollInterval), Cached(m, 1<<20)} {
			for _, ref := range []Ref{commit, pinned} {
				m.fetches.Store(0)
				for range 3 {
					time.Sleep(10 * pollInterval)
					if _, err := p.Fetch(t.Context(), ref); err != nil {
						t.Fatal(err)
					}
				}
				if m.fetches.Load() != 1 || m.checked.Load() != 0 {
					t.Errorf("%s: %d fetches, %d checks", ref, m.fetches.Load(), m.checked.Load())
				}
			}
		}
		p := Polled(m, 1<<20, pollInterval)
		m.fetches.Store(0)
		for _, ref := range []Ref{url, mine, url.with("me"), url.with("you"), url} {
			if _, err := p.Fetch(t.Context(), ref); err != nil {
				t.Fatal(err)
			}
		}
		if m.fetches.Load() != 4 {
			t.Errorf("%d fetches, want 4", m.fetches.Load())
		}
	})
}

func TestGate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(2, 0)
		var inside, most atomic.Int32
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				leave, err := g.enter(t.Context(), "example.com")
				if err != nil {
					t.Error(err)
					return
				}
				most.Store(max(most.Load(), inside.Add(1)))
				time.Sleep(time.Second) // virtual
				inside.Add(-1)
				leave()
			})
		}
		all.Wait()
		if most.Load() != 2 || len(g.lanes) != 0 {
			t.Errorf("%d at the same time, %d lanes are left", most.Load(), len(g.lanes))
		}
	})
}

func TestGateWaitIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := New(Options{PerHost: 1, Timeout: time.Second})
		release := make(chan struct{})
		m.Register("slow", FetcherFunc(func(ctx context.Context, ref Ref) (*Tree, error) {
			<-release
			return Unpack(ctx, ref, []byte("a: 1\n"), Limits{})
		}))
		ref := urlRef(Manifests, "slow://example.com/x")
		var first sync.WaitGroup
		first.Go(func() { _, _ = m.Fetch(t.Context(), ref) })
		synctest.Wait()
		_, err := m.Fetch(t.Context(), ref)
		wantError(t, err, ErrUnavailable, "waited too long for the 1 other fetches from this host")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("enough"))
		_, err = m.Fetch(ctx, ref)
		wantError(t, err, ErrUnavailable, "enough")
		if _, err := m.Fetch(t.Context(), urlRef(Manifests, "https://")); err == nil {
			t.Error("no error")
		}
		close(release)
		first.Wait()
		if len(m.gate.lanes) != 0 {
			t.Errorf("%d lanes are left", len(m.gate.lanes))
		}
	})
}
