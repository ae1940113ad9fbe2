package local_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kyma-project/mothership/internal/infra/local"
	"github.com/kyma-project/mothership/internal/infra/local/localtest"
)

// children returns the command lines of all processes that mention the folder: children do, in their arguments.
func children(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err == nil && bytes.Contains(line, []byte(dir)) { // others come and go meanwhile
			out = append(out, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return out
}

// pinned are descriptors of the children that run from a folder, by name: they tell of their end whoever waits for it.
func pinned(t *testing.T, dir string) map[string]int {
	t.Helper()
	out := map[string]int{}
	for name, file := range map[string]string{
		"etcd": "etcd/etcd.pid", "kube-apiserver": "kube-apiserver.pid", "kube-controller-manager": "kube-controller-manager.pid",
	} {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		var pid int
		if _, err := fmt.Sscan(string(data), &pid); err != nil {
			t.Fatal(err)
		}
		if out[name], err = unix.PidfdOpen(pid, 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(out[name]) })
	}
	return out
}

// ended says whether the process ends within ten seconds.
func ended(t *testing.T, pidfd int) bool {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, int(time.Until(deadline).Milliseconds()))
		if errors.Is(err, unix.EINTR) && time.Now().Before(deadline) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return n == 1
	}
}

// environment is that of the API server.
func environment(t *testing.T, srv *local.Server) string {
	t.Helper()
	line, err := os.ReadFile(filepath.Join(srv.Dir(), "kube-apiserver.pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, _, _ := strings.Cut(string(line), " ")
	env, err := os.ReadFile(filepath.Join("/proc", pid, "environ"))
	if err != nil {
		t.Fatal(err)
	}
	return string(env)
}

func TestCloseLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, dir := range map[string]string{"Temporary": "", "Kept": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := localtest.Start(t, func(o *local.Options) {
				if o.Dir, o.Nodes = dir, true; dir != "" {
					o.GCPercent = local.Frugal
				}
			})
			if env := environment(t, srv); strings.Contains(env, "GOGC=50") != (dir != "") || strings.Contains(env, "PATH=") {
				t.Errorf("environment %q; want GOGC where it is frugal, and nothing of ours", env)
			}
			if running := children(t, srv.Dir()); len(running) != 3 {
				t.Errorf("children %q; want three", running)
			}
			begin := time.Now()
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					if err := srv.Close(); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			t.Logf("closed in %s", time.Since(begin))
			if left := children(t, srv.Dir()); len(left) > 0 {
				t.Errorf("still running: %q", left)
			}
			<-srv.Done()
			if err := srv.Err(); err != nil {
				t.Errorf("after Close: %v", err)
			}
			if _, err := os.Stat(srv.Dir()); (err == nil) != (dir != "") {
				t.Errorf("the state folder: %v", err)
			}
		})
	}
}

func TestFailedStartLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := local.Start(t.Context(), local.Options{Dir: dir, APIServerArgs: []string{"--no-such-flag"}}); err == nil {
		t.Fatal("it started")
	}
	if left := children(t, dir); len(left) > 0 {
		t.Errorf("still running: %q", left)
	}
}

func TestEndOfAChildIsReported(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := localtest.Start(t)
			if err := srv.Err(); err != nil {
				t.Fatalf("while it runs: %v", err)
			}
			if err := unix.PidfdSendSignal(pinned(t, srv.Dir())[name], unix.SIGKILL, nil, 0); err != nil {
				t.Fatal(err)
			}
			<-srv.Done()
			var exit *local.ExitError
			if !errors.As(srv.Err(), &exit) || exit.Name != name || exit.How != "signal: killed" {
				t.Errorf("error %v; want the end of %s", srv.Err(), name)
			}
		})
	}
}

func TestKilledParentLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), childDir+"="+dir)
	parent.Stderr = os.Stderr
	stdin, err := parent.StdinPipe() // it ends by itself when this test does
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the parent said %q: %v", line, err)
	}
	running := pinned(t, dir)
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // it says that it was killed
	for name, fd := range running {
		if !ended(t, fd) {
			t.Errorf("%s outlived its parent", name)
		}
	}
	localtest.Start(t, func(o *local.Options) { o.Dir = dir }) // what it left in the folder is no hindrance
}
