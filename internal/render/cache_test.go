package render

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kyma-project/mothership/internal/bundle"
	"github.com/kyma-project/mothership/internal/source"
)

// counting renders bundles of size bytes and counts how often.
func counting(n *atomic.Int64, size int) Renderer {
	return Func(func(_ context.Context, r Request) (*bundle.Bundle, error) {
		n.Add(1)
		return &bundle.Bundle{Module: r.Module, Objects: []*bundle.Object{{Bytes: make([]byte, size)}}}, nil
	})
}

func TestCacheRendersOnce(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	c := Cached(counting(&n, 10), 1<<20)
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			module := fmt.Sprintf("m%d", i%4)
			b, err := c.Render(context.Background(), Request{Module: module})
			if err != nil || b.Module != module {
				t.Errorf("%v, %v", b, err)
			}
		})
	}
	wg.Wait()
	if n.Load() != 4 {
		t.Errorf("rendered %d times", n.Load())
	}
}

func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	c := Cached(counting(&n, 1<<20), 3<<20)
	render := func(module string) {
		if _, err := c.Render(context.Background(), Request{Module: module}); err != nil {
			t.Fatal(err)
		}
	}
	render("a")
	render("b")
	render("a") // b is the least recently used one now
	render("c")
	if n.Load() != 3 || c.Bytes() > 3<<20 {
		t.Errorf("rendered %d times, %d bytes kept", n.Load(), c.Bytes())
	}
	render("a")
	render("c")
	if n.Load() != 3 {
		t.Errorf("rendered %d times", n.Load())
	}
	render("b")
	if n.Load() != 4 {
		t.Errorf("rendered %d times", n.Load())
	}
	large := Cached(counting(&n, 10<<20), 3<<20)
	for range 2 {
		if _, err := large.Render(context.Background(), Request{Module: "large"}); err != nil {
			t.Fatal(err)
		}
	}
	if n.Load() != 6 || large.Bytes() != 0 {
		t.Errorf("rendered %d times, %d bytes kept", n.Load(), large.Bytes())
	}
}

func TestCacheKeepsRefusals(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err  error
		want int64
	}{
		"Malformed": {&Error{Err: ErrMalformed}, 1},
		"Values":    {&ValuesError{}, 1},
		"Joined":    {errors.Join(&Error{Err: ErrMalformed}, &Error{Err: ErrMalformed}), 1},
		"Deadline":  {&Error{Err: ErrDeadline}, 2},
		"Memory":    {&Error{Err: ErrMemory}, 2},
		"Crash":     {&Error{Err: ErrCrash}, 2},
		"Unknown":   {errors.New("no command"), 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var n atomic.Int64
			c := Cached(Func(func(context.Context, Request) (*bundle.Bundle, error) { n.Add(1); return nil, tc.err }), 1<<20)
			for range 2 {
				if _, err := c.Render(context.Background(), Request{}); !errors.Is(err, tc.err) {
					t.Error(err)
				}
			}
			if n.Load() != tc.want {
				t.Errorf("rendered %d times", n.Load())
			}
		})
	}
}

func TestCacheCancelsWhenNobodyWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cancelled := make(chan struct{})
		c := Cached(Func(func(ctx context.Context, _ Request) (*bundle.Bundle, error) {
			<-ctx.Done()
			close(cancelled)
			return nil, ctx.Err()
		}), 1<<20)
		var wg sync.WaitGroup
		for i := range 3 {
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i+1)*time.Second)
			defer cancel()
			wg.Go(func() {
				_, err := c.Render(ctx, Request{Module: "m"})
				if !errors.Is(err, ErrDeadline) {
					t.Error(err)
				}
			})
		}
		time.Sleep(2500 * time.Millisecond)
		select {
		case <-cancelled:
			t.Error("cancelled while somebody waits")
		default:
		}
		wg.Wait()
		<-cancelled
	})
}

func TestInputDigest(t *testing.T) {
	t.Parallel()
	base := func() Request {
		return Request{
			Tree: &source.Tree{Digest: "sha256:1", Root: "."}, Kind: Chart, Module: "m", Namespace: "n",
			Values:       map[string]any{"a": int64(1), "b": []any{"x", nil, true}, "c": map[string]any{"d": 1.5}},
			Capabilities: Capabilities{KubeVersion: "v1.36.3", APIVersions: []string{"b/v1", "a/v1"}},
		}
	}
	key := []byte("key")
	want := InputDigest(key, base())
	same := map[string]func(*Request){
		"Patch level":     func(r *Request) { r.Capabilities.KubeVersion = "v1.36.9-gke.1" },
		"Order of APIs":   func(r *Request) { r.Capabilities.APIVersions = []string{"a/v1", "b/v1", "a/v1"} },
		"Int is int64":    func(r *Request) { r.Values["a"] = 1 },
		"Trust":           func(r *Request) { r.Tree.Trusted = true },
		"Secret unused":   func(r *Request) { r.Secret = []byte("secret") },
		"Root left empty": func(r *Request) { r.Tree.Root = "" },
		"Nothing to do":   func(r *Request) { r.PostRender.Pods = true },
	}
	for name, change := range same {
		r := base()
		if change(&r); InputDigest(key, r) != want {
			t.Errorf("%s: another digest", name)
		}
	}
	seen := map[string]string{want: "Base"}
	for name, change := range map[string]func(*Request){
		"Source":     func(r *Request) { r.Tree.Digest = "sha256:2" },
		"Root":       func(r *Request) { r.Tree.Root = "x" },
		"Kind":       func(r *Request) { r.Kind = Manifests },
		"Module":     func(r *Request) { r.Module = "mn" },
		"Namespace":  func(r *Request) { r.Namespace = "x" },
		"Value":      func(r *Request) { r.Values["a"] = int64(2) },
		"Type":       func(r *Request) { r.Values["a"] = 1.0 },
		"Null":       func(r *Request) { r.Values["z"] = nil },
		"NoValues":   func(r *Request) { r.Values = nil },
		"Odd value":  func(r *Request) { r.Values["a"] = struct{ X int }{1} },
		"Odd value2": func(r *Request) { r.Values["a"] = struct{ X int }{2} },
		"Minor":      func(r *Request) { r.Capabilities.KubeVersion = "v1.35.3" },
		"APIs":       func(r *Request) { r.Capabilities.APIVersions = []string{"a/v1"} },
		"Runtime":    func(r *Request) { r.PerRuntime = "uid" },
		"Secret":     func(r *Request) { r.PerRuntime, r.Secret = "uid", []byte("secret") },
		"Scopes":     func(r *Request) { r.ScopeDigest = "x" },
		"PostRender": func(r *Request) { r.PostRender.Labels = map[string]string{"a": "b"} },
		"NoTree":     func(r *Request) { r.Tree = nil },
	} {
		r := base()
		change(&r)
		d := InputDigest(key, r)
		if other, ok := seen[d]; ok {
			t.Errorf("%s has the digest of %s", name, other)
		}
		seen[d] = name
	}
	if InputDigest([]byte("other"), base()) == want {
		t.Error("the key does not matter")
	}
}

func TestValuesRoundTrip(t *testing.T) {
	t.Parallel()
	values := map[string]any{"n": nil, "b": true, "i": int64(-1), "f": 1.0, "s": "\x00é", "l": []any{[]any{}, map[string]any{}}, "m": map[string]any{"k": "v"}}
	data := encodeValues(values)
	got, err := decodeValues(data)
	if err != nil || fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", values) {
		t.Errorf("%#v, %v", got, err)
	}
	for n := range data {
		if _, err := decodeValues(data[:n]); err == nil {
			t.Fatalf("values cut at %d are accepted", n)
		}
	}
}
