package poll

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/source"
)

var (
	moving = source.Ref{Kind: source.Manifests, SourceRef: v1beta2.SourceRef{URL: "https://example.com/a.yaml"}}
	fixed  = source.Ref{Kind: source.Manifests, SourceRef: v1beta2.SourceRef{URL: "https://example.com/b.yaml", Digest: source.BytesDigest(nil)}}
	denied = &source.Error{Reason: source.ErrDenied, Problem: "no"}
	down   = &source.Error{Reason: source.ErrUnavailable, Problem: "down"}
)

// failingFetcher fails as it is told, or gives an empty tree.
func failingFetcher(err *error) source.Fetcher {
	return source.FetcherFunc(func(context.Context, source.Ref) (*source.Tree, error) {
		if *err == nil {
			return &source.Tree{}, nil
		}
		return nil, *err
	})
}

func TestWhatIsPolled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var err error = denied
		c := New(Options{Sources: failingFetcher(&err), Interval: time.Minute})
		if _, got := c.Fetch(t.Context(), fixed); !errors.Is(got, source.ErrDenied) {
			t.Fatal(got)
		}
		used := map[string]source.Ref{moving.Key(): moving, fixed.Key(): fixed}
		if due := c.due(used, time.Now()); len(due) != 0 || len(c.watched) != 2 {
			t.Errorf("at once: %d are due of %d", len(due), len(c.watched))
		}
		time.Sleep(72 * time.Second) // virtual: the interval and a fifth
		if due := c.due(used, time.Now()); len(due) != 2 {
			t.Errorf("after the interval: %d are due, want 2", len(due))
		}
		if due := c.due(used, time.Now()); len(due) != 0 {
			t.Errorf("%d are polled twice at the same time", len(due))
		}
		c.learn(fixed.Key(), &source.Tree{Digest: fixed.Digest}, nil)
		c.learn(moving.Key(), &source.Tree{}, nil)
		for key := range used {
			c.polled(key)
		}
		if c.due(used, time.Now()); c.watched[fixed.Key()] != nil || c.watched[moving.Key()] == nil {
			t.Error("what is mended and does not move is not forgotten, or more than that")
		}
		if c.due(nil, time.Now()); len(c.watched) != 0 || c.busy != 0 {
			t.Errorf("%d that nobody uses are left, %d are busy", len(c.watched), c.busy)
		}
		err = down
		if _, _ = c.Fetch(t.Context(), fixed); len(c.watched) != 0 {
			t.Error("what is unavailable is polled: whoever needs it tries again")
		}
	})
}

func TestNews(t *testing.T) {
	t.Parallel()
	c := New(Options{})
	c.watched["x"] = &watched{ref: moving}
	for i, step := range []struct {
		digest string
		err    error
		news   bool
	}{
		{"a", nil, true}, {"a", nil, false}, {"b", nil, true}, {"", down, false}, {"b", nil, false}, {"", denied, true}, {"", denied, false},
		{"", down, false}, {"b", nil, true}, {"b", nil, false},
	} {
		if got := c.learn("x", &source.Tree{Digest: step.digest}, step.err); got != step.news {
			t.Errorf("step %d: news is %t, want %t", i, got, step.news)
		}
	}
}

// What a module met with between two polls may be in its status, and that the source is otherwise now is told by the next poll alone.
func TestBetweenPolls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var err error = denied
		c := New(Options{Sources: failingFetcher(&err), Interval: time.Minute})
		used := map[string]source.Ref{moving.Key(): moving}
		good := &source.Tree{Digest: "a"}
		polls := func(when string, tree *source.Tree, err error, news bool) {
			t.Helper()
			if due := c.due(used, time.Now()); len(due) != 1 {
				t.Fatalf("%s: %d are due, want 1", when, len(due))
			}
			if got := c.learn(moving.Key(), tree, err); got != news {
				t.Errorf("%s: news is %t, want %t", when, got, news)
			}
			c.polled(moving.Key())
		}
		interval := func() { time.Sleep(72 * time.Second) } // virtual, and a fifth
		fails := func() {
			if _, got := c.Fetch(t.Context(), moving); !errors.Is(got, source.ErrDenied) {
				t.Fatal(got)
			}
		}
		fails()
		polls("first of all", good, nil, true)
		fails()
		if due := c.due(used, time.Now()); len(due) != 0 {
			t.Error("it is polled early twice in an interval")
		}
		interval()
		polls("it failed and is well again", good, nil, true)
		interval()
		polls("nothing happened since", good, nil, false)
		fails()
		polls("it failed and its server is down", nil, down, false)
		interval()
		polls("its server is back", good, nil, true)
		interval()
		c.due(used, time.Now())
		c.learn(moving.Key(), good, nil)
		fails() // after the answer, before the poll has ended
		c.polled(moving.Key())
		polls("it failed during a poll", good, nil, true)
		interval()
		polls("it fails", nil, denied, true)
		fails()
		if due := c.due(used, time.Now()); len(due) != 0 {
			t.Error("what is known to fail is polled at once")
		}
		err = nil
		if _, err := c.Fetch(t.Context(), moving); err != nil {
			t.Fatal(err)
		}
		err = denied
		polls("it was well and fails again", nil, denied, true)
	})
}

// What does not move is forgotten once it is well, but not while a module says otherwise, or before it could be known who uses it.
func TestFixedInDoubt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var err error = denied
		c := New(Options{Sources: failingFetcher(&err), Interval: time.Minute})
		used := map[string]source.Ref{fixed.Key(): fixed}
		asked := time.Now()
		time.Sleep(time.Second)
		_, _ = c.Fetch(t.Context(), fixed)
		if c.due(nil, asked); c.watched[fixed.Key()] == nil {
			t.Fatal("what failed while it was asked who uses it is forgotten")
		}
		time.Sleep(72 * time.Second)
		c.due(used, time.Now())
		c.learn(fixed.Key(), &source.Tree{Digest: fixed.Digest}, nil)
		_, _ = c.Fetch(t.Context(), fixed)
		c.polled(fixed.Key())
		if due := c.due(used, time.Now()); len(due) != 1 {
			t.Fatalf("a module met with a failure since, and %d are due", len(due))
		}
		if !c.learn(fixed.Key(), &source.Tree{Digest: fixed.Digest}, nil) {
			t.Error("that it is well is no news to who met with a failure")
		}
		c.polled(fixed.Key())
		if c.due(used, time.Now()); c.watched[fixed.Key()] != nil {
			t.Error("what is well and does not move is not forgotten")
		}
	})
}
