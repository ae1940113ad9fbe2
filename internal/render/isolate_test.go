package render

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kyma-project/mothership/internal/kind"
)

func TestIsolatedIsTheSame(t *testing.T) {
	t.Parallel()
	r := featureRequest()
	r.Values = map[string]any{"gone": nil, "replicas": int64(3), "big": 1e6, "list": []any{true, "x", 1.5, nil}}
	want := mustRender(t, r)
	got, err := isolated(t, IsolatedOptions{}).Render(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	random := perRuntime(callChart(impureCalls["genSignedCert"]), "uid")
	got, err = isolated(t, IsolatedOptions{}).Render(context.Background(), random)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(mustRender(t, random), got); diff != "" {
		t.Error(diff)
	}
}

func TestIsolatedAsksForScopes(t *testing.T) {
	t.Parallel()
	r := request(Manifests, "-- a.yaml --\n"+configMap("a")+"---\napiVersion: example.com/v1\nkind: Thing\nmetadata: {name: t}\n---\napiVersion: example.com/v1\nkind: Other\nmetadata: {name: o}\n")
	r.ScopeOf = func(gk schema.GroupKind) kind.Scope {
		if gk == (schema.GroupKind{Group: "example.com", Kind: "Thing"}) {
			return kind.ScopeNamespaced
		}
		return kind.ScopeCluster
	}
	got, err := isolated(t, IsolatedOptions{}).Render(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(mustRender(t, r), got); diff != "" {
		t.Error(diff)
	}
	want := []string{"ConfigMap demo-system/a", "Other.example.com o", "Thing.example.com demo-system/t"}
	if diff := cmp.Diff(want, refs(got)); diff != "" {
		t.Error(diff)
	}
}

func TestIsolatedErrorsAreTheSame(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]Request{
		"Several": request(Manifests, "-- a.yaml --\na: 1\na: 2\n---\n- x\n"),
		"Random":  request(Chart, callChart("uuidv4")),
		"Empty":   request(Manifests, "-- a.yaml --\n# nothing\n"),
		"Objects": request(Manifests, "-- a.yaml --\nkind: A\n---\napiVersion: v1\nkind: B\n"),
		"Remote":  request(Kustomize, "-- kustomization.yaml --\nresources: ['https://example.com/x']\n"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, want := New(Options{}).Render(context.Background(), r)
			_, got := isolated(t, IsolatedOptions{}).Render(context.Background(), r)
			if got == nil || want == nil || got.Error() != want.Error() {
				t.Errorf("%v, want %v", got, want)
			}
			if !errors.Is(got, sentinelOf(want)) {
				t.Errorf("%v is not %v", got, sentinelOf(want))
			}
		})
	}
}

const (
	// endless would take days, without much memory.
	endless = "{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}"
	// greedy doubles a string forty times.
	greedy = `{{ $s := "xxxxxxxxxxxxxxxx" }}{{ range until 40 }}{{ $s = printf "%s%s" $s $s }}{{ end }}{{ len $s }}`
	// huge asks for 16 GB at once.
	huge = "{{ range until 2000000000 }}{{ end }}"
	// deep calls itself without `include`, whose depth Helm bounds.
	deep = `{{ define "r" }}{{ template "r" . }}{{ end }}{{ template "r" . }}`
)

func templateRequest(template string) Request {
	return request(Chart, chartYAML+"-- templates/a.yaml --\n"+template+"\n")
}

func TestIsolatedIsKilledAtTheDeadline(t *testing.T) {
	t.Parallel()
	start := time.Now()
	_, err := isolated(t, IsolatedOptions{Timeout: 500 * time.Millisecond}).Render(context.Background(), templateRequest(endless))
	wantError(t, err, ErrDeadline, `module "demo": rendering chart "demo" took more than 500ms: does a template loop?`)
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestIsolatedIsCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := isolated(t, IsolatedOptions{}).Render(ctx, templateRequest(endless))
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestIsolatedIsBoundedInMemory(t *testing.T) {
	t.Parallel()
	for name, template := range map[string]string{"Greedy": greedy, "Huge": huge} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := isolated(t, IsolatedOptions{Memory: 256 << 20, Timeout: time.Minute}).Render(context.Background(), templateRequest(template))
			wantError(t, err, ErrMemory, `rendering chart "demo" took more than 256 MiB of memory`)
		})
	}
}

func TestRecursionEnds(t *testing.T) {
	t.Parallel()
	_, err := isolated(t, IsolatedOptions{Timeout: time.Minute}).Render(context.Background(), templateRequest(deep))
	if !errors.Is(err, ErrTemplate) && !errors.Is(err, ErrMemory) {
		t.Error(err)
	}
}

func TestIsolatedCrash(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		command []string
		text    string
	}{
		"NoCommand":   {nil, "no command is configured"},
		"NotFound":    {[]string{"/does/not/exist"}, "starting the rendering process"},
		"SaysNothing": {[]string{"/bin/true"}, "ended without an answer"},
		"Fails":       {[]string{"/bin/sh", "-c", "echo broken >&2; exit 7"}, "(exit status 7): broken"},
		"Garbage":     {[]string{"/bin/sh", "-c", "cat >/dev/null & echo BBBBBBBBBBBBBBB"}, "ended without an answer"},
		"Killed":      {[]string{"/bin/sh", "-c", "kill -9 $$"}, "ended without an answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Isolated(IsolatedOptions{Command: tc.command}).Render(context.Background(), templateRequest("a: 1"))
			if err == nil || !strings.Contains(err.Error(), tc.text) {
				t.Fatalf("%v", err)
			}
			if tc.command != nil && !errors.Is(err, ErrCrash) {
				t.Errorf("%v is not ErrCrash", err)
			}
		})
	}
}

func TestIsolatedHasNoEnvironment(t *testing.T) {
	t.Parallel()
	_, err := Isolated(IsolatedOptions{Command: []string{"/usr/bin/env"}}).Render(context.Background(), templateRequest("a: 1"))
	wantError(t, err, ErrCrash, "ended without an answer")
}

func TestInProcessDeadline(t *testing.T) {
	t.Parallel()
	short := "{{ range until 3000 }}{{ range until 3000 }}{{ end }}{{ end }}" // it runs on for some seconds at most
	_, err := New(Options{Timeout: 10 * time.Millisecond}).Render(context.Background(), templateRequest(short))
	wantError(t, err, ErrDeadline, "took more than 10ms")
	ctx, cancel := context.WithCancelCause(context.Background())
	cause := errors.New("no longer needed")
	cancel(cause)
	_, err = New(Options{}).Render(ctx, templateRequest(short))
	if !errors.Is(err, cause) {
		t.Error(err)
	}
}

func TestFrames(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	there, here := newWire(nil, &b), newWire(&b, nil)
	var sizes []int
	for _, problem := range []string{"x", strings.Repeat("y", 2*keepBuffer), "z"} {
		if err := there.send(frameErrors, []wireError{{Problem: problem}}); err != nil {
			t.Fatal(err)
		}
		whole := bytes.Clone(b.Bytes())
		sizes = append(sizes, len(whole))
		if len(whole) < keepBuffer {
			for n := range whole {
				if _, err := newWire(bytes.NewReader(whole[:n]), nil).receive(); err == nil {
					t.Fatalf("a frame cut at %d is accepted", n)
				}
			}
		}
		var errs []wireError
		if frame, err := here.receive(); err != nil || frame != frameErrors {
			t.Fatalf("frame %q, %v", frame, err)
		}
		if err := here.decode(&errs); err != nil || len(errs) != 1 || errs[0].Problem != problem {
			t.Fatalf("%v, %v", errs, err)
		}
	}
	if sizes[2] >= sizes[0] {
		t.Errorf("types are described again: %d bytes and %d", sizes[0], sizes[2])
	}
	if _, err := newWire(strings.NewReader("B\xff\xff\xff\xff"), nil).receive(); err == nil {
		t.Error("a frame of 4 GiB is accepted")
	}
}

func TestChildRefusesGarbage(t *testing.T) {
	t.Parallel()
	cmd := func(input string) int {
		command := isolated(t, IsolatedOptions{}).pool.command
		c := exec.Command(command[0], command[1:]...)
		c.Stdin = strings.NewReader(input)
		_ = c.Run()
		return c.ProcessState.ExitCode()
	}
	for _, input := range []string{"", "Q", "B\x00\x00\x00\x01x", "Q\x00\x00\x00\x01x"} {
		if code := cmd(input); code != exitProtocol {
			t.Errorf("%q: exit code %d", input, code)
		}
	}
}

func TestInProcessGivesUpWhatEatsMemory(t *testing.T) {
	// Not parallel: the memory of the whole process is watched. The template holds 300 MiB in the end, and then ends.
	eater := tree("-- Chart.yaml --\napiVersion: v2\nname: eater\nversion: 1.0.0\n-- templates/eater.yaml --\n" + `{{ $s := dict "v" "0123456789" }}{{ range until 20 }}{{ $_ := set $s "v" (print $s.v $s.v) }}{{ end }}{{ range until 30 }}{{ $_ := set $s (print .) (print $s.v .) }}{{ end }}
`)
	r := New(Options{Memory: 64 << 20, Timeout: time.Minute})
	_, err := r.Render(t.Context(), Request{Tree: eater, Kind: Chart, Module: "eater", Namespace: "n"})
	if !errors.Is(err, ErrMemory) {
		t.Fatalf("error = %v, want ErrMemory", err)
	}
	if want := "took more than 64 MiB of memory"; !strings.Contains(err.Error(), want) {
		t.Errorf("error = %v, want %q in it", err, want)
	}
}
