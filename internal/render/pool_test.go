package render

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// processes are those of a renderer, by their process IDs, with the number of their renderings.
func processes(i *IsolatedRenderer) map[int]int {
	i.pool.mu.Lock()
	defer i.pool.mu.Unlock()
	out := map[int]int{}
	for p := range i.pool.all {
		out[p.pid] = p.served
	}
	return out
}

func withValue(n int) Request {
	r := request(Chart, chartYAML+"-- templates/a.yaml --\n"+configMap("a")+"data: {n: '{{ .Values.n }}'}\n")
	r.Values = map[string]any{"n": int64(n)}
	return r
}

func mustRenderIsolated(t *testing.T, i *IsolatedRenderer, r Request) {
	t.Helper()
	got, err := i.Render(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(mustRender(t, r), got); diff != "" {
		t.Error(diff)
	}
}

func TestProcessRendersAgain(t *testing.T) {
	t.Parallel()
	i := isolated(t, IsolatedOptions{})
	for n := range 20 {
		mustRenderIsolated(t, i, withValue(n))
		if _, err := i.Render(t.Context(), templateRequest("a: {{ fail \"no\" }}")); !errors.Is(err, ErrTemplate) {
			t.Fatal(err) // an answer too
		}
	}
	if got := processes(i); len(got) != 1 {
		t.Fatalf("processes with their renderings: %v", got)
	}
	for _, served := range processes(i) {
		if served != 40 {
			t.Errorf("%d renderings of 40", served)
		}
	}
}

func TestProcessesAreBounded(t *testing.T) {
	t.Parallel()
	i := isolated(t, IsolatedOptions{Processes: 3})
	var all sync.WaitGroup
	for n := range 60 {
		all.Go(func() {
			got, err := i.Render(t.Context(), withValue(n))
			if err != nil || got.Digest != mustRender(t, withValue(n)).Digest {
				t.Errorf("value %d: %v, %v", n, got, err)
			}
		})
	}
	all.Wait()
	if got := processes(i); len(got) > 3 {
		t.Errorf("processes with their renderings: %v", got)
	}
}

// TestProcessThatFailedIsGone: neither a loop nor a glutton leaves a process behind, and who renders next notices nothing.
func TestProcessThatFailedIsGone(t *testing.T) {
	t.Parallel()
	i := isolated(t, IsolatedOptions{Processes: 1, Timeout: 5 * time.Second})
	for template, want := range map[string]error{endless: ErrDeadline, huge: ErrMemory} {
		mustRenderIsolated(t, i, withValue(1))
		before := processes(i)
		if len(before) != 1 {
			t.Fatalf("processes with their renderings: %v", before)
		}
		if _, err := i.Render(t.Context(), templateRequest(template)); !errors.Is(err, want) {
			t.Fatalf("error = %v, want %v", err, want)
		}
		if got := processes(i); len(got) != 0 {
			t.Errorf("processes after %v: %v", want, got)
		}
		for pid := range before {
			if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
				t.Errorf("process %d: %v", pid, err)
			}
		}
		mustRenderIsolated(t, i, withValue(2))
	}
}

// TestNobodyPaysForThoseBefore: a process that dies of what it did before is nobody's error.
func TestNobodyPaysForThoseBefore(t *testing.T) {
	t.Parallel()
	i := isolated(t, IsolatedOptions{})
	for n := range 10 {
		mustRenderIsolated(t, i, withValue(n))
		for pid := range processes(i) {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		mustRenderIsolated(t, i, withValue(n+100)) // whether its end was noticed by then or not
	}
}

// TestErrorsAreOfOneRendering: what one rendering wrote to standard error is in no other's message.
func TestErrorsAreOfOneRendering(t *testing.T) {
	t.Parallel()
	// The first process renders, the second ends.
	script := `if test -e "$0"; then echo what the second said >&2; exit 7; fi; : >"$0"; echo a secret of the first >&2; exec "$@"`
	child := isolated(t, IsolatedOptions{}).pool.command
	i := Isolated(IsolatedOptions{Command: append([]string{"/bin/sh", "-c", script, filepath.Join(t.TempDir(), "begun")}, child...)})
	t.Cleanup(i.Close)
	mustRenderIsolated(t, i, withValue(1))
	for pid := range processes(i) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	_, err := i.Render(t.Context(), withValue(2))
	wantError(t, err, ErrCrash, "ended without an answer (exit status 7): what the second said")
	if strings.Contains(err.Error(), "first") {
		t.Error(err)
	}
}

func TestProcessIsReplaced(t *testing.T) {
	t.Parallel()
	i := isolated(t, IsolatedOptions{})
	for name, age := range map[string]func(*process){
		"holds much memory":  func(p *process) { p.memory = i.pool.memory/4 + 1 },
		"has rendered often": func(p *process) { p.served = maxServed },
	} {
		mustRenderIsolated(t, i, withValue(1))
		p, err := i.pool.take(false)
		if err != nil {
			t.Fatal(err)
		}
		if p.served == 0 || p.memory < 1<<20 {
			t.Errorf("a process says that it holds %d bytes after %d renderings", p.memory, p.served)
		}
		age(p)
		i.pool.put(p)
		if got := processes(i); len(got) != 0 {
			t.Errorf("a process that %s is kept: %v", name, got)
		}
	}
}

func TestIdleProcessEnds(t *testing.T) {
	t.Parallel()
	i := isolated(t, IsolatedOptions{Idle: time.Millisecond})
	mustRenderIsolated(t, i, withValue(1))
	i.pool.mu.Lock()
	var ended []chan struct{}
	for p := range i.pool.all {
		ended = append(ended, p.ended)
	}
	i.pool.mu.Unlock()
	for _, e := range ended {
		<-e
	}
	i.pool.mu.Lock()
	if len(i.pool.idle) != 0 {
		t.Errorf("%d processes are idle", len(i.pool.idle))
	}
	i.pool.mu.Unlock()
	mustRenderIsolated(t, i, withValue(2))
	never := isolated(t, IsolatedOptions{Idle: -1})
	mustRenderIsolated(t, never, withValue(3))
	if got := processes(never); len(got) != 0 {
		t.Errorf("processes that are not to be kept: %v", got)
	}
}

// TestCloseEndsAll: what is idle and what is under way, in a process that has rendered before and in a new one.
func TestCloseEndsAll(t *testing.T) {
	t.Parallel()
	for name, warm := range map[string]bool{"Served": true, "New": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := isolated(t, IsolatedOptions{Timeout: time.Minute})
			if warm {
				mustRenderIsolated(t, i, withValue(1))
			}
			under := make(chan error)
			go func() {
				_, err := i.Render(context.Background(), templateRequest(endless))
				under <- err
			}()
			pids := waitForBusy(t, i)
			i.Close()
			if err := <-under; !errors.Is(err, errClosed) {
				t.Errorf("error of what was under way = %v, want %v", err, errClosed)
			}
			for pid := range pids {
				if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
					t.Errorf("process %d: %v", pid, err)
				}
			}
			if _, err := i.Render(t.Context(), withValue(2)); !errors.Is(err, errClosed) {
				t.Errorf("error = %v, want %v", err, errClosed)
			}
			if got := processes(i); len(got) != 0 {
				t.Errorf("processes after Close: %v", got)
			}
			i.Close()
		})
	}
}

// waitForBusy waits until there are processes and none is idle.
func waitForBusy(t *testing.T, i *IsolatedRenderer) map[int]int {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; runtime.Gosched() {
		i.pool.mu.Lock()
		busy := len(i.pool.idle) == 0 && len(i.pool.all) > 0
		i.pool.mu.Unlock()
		if busy {
			return processes(i)
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing is under way")
		}
	}
}

// TestSourceThatLoopsIsRefused: after some failures in a row it costs nothing any more, whatever its values are, and others go on.
func TestSourceThatLoopsIsRefused(t *testing.T) {
	t.Parallel()
	i := isolated(t, IsolatedOptions{Timeout: 300 * time.Millisecond, Processes: 1})
	const most = "took more than 300ms: does a template loop?"
	ofValues := func(loop string, n int) Request {
		r := templateRequest(configMap("a") + "{{ if .Values.loop }}" + endless + "{{ end }}")
		r.Module, r.Values = fmt.Sprint("m", n), map[string]any{"loop": loop, "n": int64(n)}
		return r
	}
	render := func(r Request) error {
		_, err := i.Render(t.Context(), r)
		return err
	}
	// The same values: they are refused, others are not.
	for range maxStrikes {
		wantError(t, render(ofValues("yes", 0)), ErrDeadline, most)
	}
	began := i.turns.begun
	wantError(t, render(ofValues("yes", 0)), ErrDeadline, `module "m0": rendering chart "m0" `+most+" It did so 3 times in a row or more: it is tried again within 10m0s.")
	if i.turns.begun != began {
		t.Error("a rendering that is refused has begun")
	}
	if err := render(ofValues("", 1)); err != nil {
		t.Fatal(err)
	}
	// Different ones: the source is refused, whatever the values.
	for n := range maxStrikes {
		wantError(t, render(ofValues("yes", 2+n)), ErrDeadline, most)
	}
	wantError(t, render(ofValues("", 9)), ErrDeadline, `module "m9": rendering chart "m9" `+most+" 3 renderings of this source with different values did so in a row: it is tried again within 10m0s.")
	if err := render(withValue(1)); err != nil {
		t.Errorf("another source: %v", err)
	}
}

// TestGivenUpWhileWaiting: who gives up waiting for a process is told so, and costs nobody anything.
func TestGivenUpWhileWaiting(t *testing.T) {
	t.Parallel()
	i := isolated(t, IsolatedOptions{Timeout: time.Minute, Processes: 1})
	busy, stop := context.WithCancel(t.Context())
	under := make(chan error)
	go func() {
		_, err := i.Render(busy, templateRequest(endless))
		under <- err
	}()
	waitForBusy(t, i)
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := i.Render(short, withValue(1))
	wantError(t, err, ErrDeadline, `rendering chart "demo" was not done in time`)
	stop()
	if err := <-under; !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want %v", err, context.Canceled)
	}
	mustRenderIsolated(t, i, withValue(2))
	if len(i.turns.sources) != 0 || i.turns.free != 1 {
		t.Errorf("in the end: %+v", i.turns)
	}
}

// TestPanicEndsTheProcess: what kustomize panics about is an error, and the process that did so renders nothing else.
func TestPanicEndsTheProcess(t *testing.T) {
	t.Parallel()
	i := isolated(t, IsolatedOptions{Processes: 1})
	broken := request(Kustomize, "-- kustomization.yaml --\nopenapi: {path: schema.json}\nresources: [a.yaml]\npatches: [{path: p.yaml}]\n-- schema.json --\nno JSON\n-- a.yaml --\n"+
		deployment("a", "b")+"-- p.yaml --\n"+deployment("b"))
	mustRenderIsolated(t, i, withValue(1))
	_, err := i.Render(t.Context(), broken)
	wantError(t, err, ErrCrash, "failed in an unforeseen way")
	if got := processes(i); len(got) != 0 {
		t.Errorf("processes: %v", got)
	}
	mustRenderIsolated(t, i, withValue(2))
}

// deployment has containers.
func deployment(containers ...string) string {
	out := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  template:\n    spec:\n      containers:\n"
	for _, c := range containers {
		out += "      - {name: " + c + ", image: " + c + "}\n"
	}
	return out
}

// TestNothingStays: a kustomization that redefines how Deployments are merged does so for itself and for nobody who renders after it.
func TestNothingStays(t *testing.T) {
	t.Parallel()
	victim := request(Kustomize, "-- kustomization.yaml --\nresources: [a.yaml]\npatches: [{path: p.yaml}]\n-- a.yaml --\n"+deployment("a", "b")+"-- p.yaml --\n"+deployment("b"))
	hostile := request(Kustomize, "-- kustomization.yaml --\nopenapi: {path: schema.json}\nresources: [a.yaml]\npatches: [{path: p.yaml}]\n-- a.yaml --\n"+deployment("a", "b")+"-- p.yaml --\n"+
		deployment("b")+`-- schema.json --
{"definitions": {"v1.Deployment": {"type": "object", "x-kubernetes-group-version-kind": [{"group": "apps", "kind": "Deployment", "version": "v1"}],
"properties": {"spec": {"type": "object"}}}}}
`)
	for name, r := range map[string]Renderer{"Isolated": isolated(t, IsolatedOptions{Processes: 1}), "InProcess": New(Options{})} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			render := func(q Request) string {
				b, err := r.Render(t.Context(), q)
				if err != nil {
					t.Fatal(err)
				}
				return string(b.Objects[0].Bytes)
			}
			before := render(victim)
			if changed := render(hostile); changed == before {
				t.Fatal("the schema changes nothing: this test shows nothing")
			}
			if after := render(victim); after != before {
				t.Errorf("another kustomization changed\n%s\nto\n%s", before, after)
			}
			if i, ok := r.(*IsolatedRenderer); ok && !slices.Equal(slices.Collect(maps.Values(processes(i))), []int{3}) {
				t.Errorf("not one process has rendered all: %v", processes(i))
			}
		})
	}
}

// parentMain renders without end in a child, prints its process ID, and waits.
func parentMain() int {
	i := Isolated(IsolatedOptions{Command: []string{os.Args[0], childArg}, Timeout: time.Hour})
	go func() { _, _ = i.Render(context.Background(), templateRequest(endless)) }()
	for {
		for pid := range processes(i) {
			fmt.Println(pid)
			_, _ = os.Stdin.Read(make([]byte, 1))
			return 0
		}
		runtime.Gosched()
	}
}

// TestChildrenDieWithTheirParent: a child that renders does not outlive a parent that was killed.
func TestChildrenDieWithTheirParent(t *testing.T) {
	t.Parallel()
	parent := exec.Command(isolated(t, IsolatedOptions{}).pool.command[0], parentArg)
	stdin, err := parent.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stdin.Close() }()
	stdout, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var child int
	if _, err := fmt.Fscan(stdout, &child); err != nil || syscall.Kill(child, 0) != nil {
		t.Errorf("child process %d: %v", child, err)
	}
	_ = parent.Process.Kill()
	_ = parent.Wait()
	for deadline := time.Now().Add(time.Minute); alive(child); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("the child lives on")
		}
	}
}

// alive says whether a process runs: one that has ended and that nobody has waited for does not.
func alive(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(data), ") ")
	return !strings.HasPrefix(state, "Z")
}
