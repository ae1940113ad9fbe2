package render

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
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
	i := isolated(t, IsolatedOptions{Processes: 1, Timeout: 5 * time.Second, Memory: 256 << 20})
	for template, want := range map[string]error{endless: ErrDeadline, huge: ErrMemory} {
		mustRenderIsolated(t, i, withValue(1))
		before := processes(i)
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
	mustRenderIsolated(t, i, withValue(2))
	never := isolated(t, IsolatedOptions{Idle: -1})
	mustRenderIsolated(t, never, withValue(3))
	if got := processes(never); len(got) != 0 {
		t.Errorf("processes that are not to be kept: %v", got)
	}
}

func TestCloseEndsAll(t *testing.T) {
	t.Parallel()
	i := isolated(t, IsolatedOptions{Timeout: time.Minute})
	mustRenderIsolated(t, i, withValue(1))
	under := make(chan error)
	go func() {
		_, err := i.Render(context.Background(), templateRequest(endless))
		under <- err
	}()
	for busy := false; !busy; { // it has begun, with the process that was idle
		i.pool.mu.Lock()
		busy = len(i.pool.idle) == 0
		i.pool.mu.Unlock()
	}
	pids := processes(i)
	i.Close()
	if err := <-under; err == nil {
		t.Error("a rendering went on after Close")
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
}

// parentMain renders in a child, prints its process ID, and waits.
func parentMain() int {
	i := Isolated(IsolatedOptions{Command: []string{os.Args[0], childArg}})
	if _, err := i.Render(context.Background(), withValue(1)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for pid := range processes(i) {
		fmt.Println(pid)
	}
	_, _ = os.Stdin.Read(make([]byte, 1))
	return 0
}

// TestChildrenDieWithTheirParent: an idle child does not outlive a parent that was killed.
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
	for deadline := time.Now().Add(time.Minute); alive(child); {
		if time.Now().After(deadline) {
			t.Fatal("the child lives on")
		}
		runtime.Gosched()
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

// TestTurnsAreFair: a source whose renderings take long has had all places; each other waits for one of them to end, and then has
// its share.
func TestTurnsAreFair(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns(4)
		took := map[string]time.Duration{}
		var mu sync.Mutex
		var all sync.WaitGroup
		render := func(source string, d time.Duration) {
			all.Go(func() {
				if err := turns.begin(t.Context(), source); err != nil {
					t.Error(err)
				}
				time.Sleep(d)
				turns.end(source)
				mu.Lock()
				defer mu.Unlock()
				took[source] = max(took[source], time.Duration(time.Now().UnixNano()))
			})
		}
		start := time.Duration(time.Now().UnixNano())
		for range 100 {
			render("slow", 20*time.Second)
		}
		synctest.Wait()
		for range 100 {
			render("quick", 10*time.Millisecond)
			render("other", 10*time.Millisecond)
		}
		all.Wait()
		// 20 s until the first slow one ends; the quick ones take 100 times 10 ms with one or two places.
		for _, source := range []string{"quick", "other"} {
			if d := took[source] - start; d > 22*time.Second {
				t.Errorf("%s was done after %s", source, d)
			}
		}
		if d := took["slow"] - start; d > 21*25*time.Second {
			t.Errorf("slow was done after %s: places were left free", d)
		}
		if turns.free != 4 || len(turns.running) != 0 || len(turns.waiting) != 0 {
			t.Errorf("in the end: %+v", turns)
		}
	})
}

// TestTurnGivenUp: who gives up waiting neither keeps a place nor loses one.
func TestTurnGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns(1)
		if err := turns.begin(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := turns.begin(ctx, "b"); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		turns.end("a")
		if err := turns.begin(ctx, "b"); err == nil {
			t.Fatal("a turn for nobody")
		}
		if err := turns.begin(t.Context(), "b"); err != nil {
			t.Fatal(err)
		}
		turns.end("b")
		if turns.free != 1 || len(turns.running) != 0 || len(turns.waiting) != 0 {
			t.Errorf("in the end: %+v", turns)
		}
	})
}
