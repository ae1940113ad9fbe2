package statedir_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kyma-project/mothership/internal/infra/local"
	"github.com/kyma-project/mothership/internal/statedir"
)

// holder is how this test binary is told to hold a folder until its stdin ends.
const holder = "STATEDIR_HOLD"

func TestMain(m *testing.M) {
	dir := os.Getenv(holder)
	if dir == "" {
		os.Exit(m.Run())
	}
	if _, err := statedir.Open(dir); err != nil {
		os.Exit(1)
	}
	os.Stdout.WriteString("open")
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// hold has another process open a folder, in which it ignores nothing, and returns when it has.
func hold(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), holder+"="+dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	if word, err := io.ReadAll(io.LimitReader(out, 4)); string(word) != "open" {
		t.Fatalf("it says %q, %v", word, err)
	}
	return cmd
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestDefault(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		env  map[string]string
		want string
	}{
		{map[string]string{"XDG_STATE_HOME": "/state", "HOME": "/home/me"}, "/state/mothership"},
		{map[string]string{"XDG_STATE_HOME": "relative", "HOME": "/home/me"}, "/home/me/.local/state/mothership"},
		{map[string]string{"HOME": "/home/me"}, "/home/me/.local/state/mothership"},
	} {
		if got, err := statedir.Default(func(key string) string { return c.env[key] }); err != nil || got != c.want {
			t.Errorf("%v: %s, %v; want %s", c.env, got, err, c.want)
		}
	}
	if _, err := statedir.Default(func(string) string { return "" }); err == nil {
		t.Error("without any variable there is a folder")
	}
}

func TestOneUserAtATime(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "state")
	if pid := statedir.Running(dir); pid != 0 {
		t.Errorf("before there is a folder, process %d uses it", pid)
	}
	cmd := hold(t, dir)
	if pid := statedir.Running(dir); pid != cmd.Process.Pid {
		t.Errorf("process %d uses it, want %d", pid, cmd.Process.Pid)
	}
	for name, err := range map[string]error{"Open": func() error { _, err := statedir.Open(dir); return err }(), "Check": statedir.Check(dir)} {
		if !errors.Is(err, statedir.ErrInUse) {
			t.Errorf("%s while it is in use: %v", name, err)
		}
	}
	if _, _, err := statedir.Remove(dir); !errors.Is(err, statedir.ErrInUse) {
		t.Errorf("Remove while it is in use: %v", err)
	}
	if pid, killed, err := statedir.Stop(t.Context(), dir, time.Minute); pid != cmd.Process.Pid || killed || err != nil {
		t.Errorf("Stop: %d, %v, %v", pid, killed, err)
	}
	if pid, _, err := statedir.Stop(t.Context(), dir, time.Minute); pid != 0 || err != nil {
		t.Errorf("Stop again: %d, %v", pid, err)
	}
	f, err := statedir.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if pid := statedir.Running(dir); pid != os.Getpid() {
		t.Errorf("process %d uses it, want this one", pid)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if pid := statedir.Running(dir); pid != 0 {
		t.Errorf("after Close, process %d uses it", pid)
	}
}

// TestStrangersAreNotStopped has a pid file that names a process which came later.
func TestStrangersAreNotStopped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := statedir.Check(dir); err != nil {
		t.Fatal(err)
	}
	stranger := exec.CommandContext(t.Context(), "sleep", "60")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stranger.Process.Kill()
		_ = stranger.Wait()
	})
	file := filepath.Join(dir, "mothership.pid")
	if err := local.WritePID(file, stranger.Process.Pid); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(data[:len(data)-1], '9', '\n'), 0o600); err != nil { // started later
		t.Fatal(err)
	}
	if pid, _, err := statedir.Stop(t.Context(), dir, time.Second); pid != 0 || err != nil {
		t.Errorf("Stop: %d, %v", pid, err)
	}
	if err := stranger.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the stranger is gone: %v", err)
	}
	for _, text := range []string{"", "1 init 0\n", "no number\n", "999999999 x 1\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if pid, _, err := statedir.Stop(t.Context(), dir, time.Second); pid != 0 || err != nil {
			t.Errorf("Stop with a pid file %q: %d, %v", text, pid, err)
		}
	}
}

func TestStopKillsWhatDoesNotEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := statedir.Check(dir); err != nil {
		t.Fatal(err)
	}
	deaf := exec.CommandContext(t.Context(), "sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 1; done")
	out, err := deaf.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := deaf.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	if err := local.WritePID(filepath.Join(dir, "mothership.pid"), deaf.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if pid, killed, err := statedir.Stop(t.Context(), dir, 50*time.Millisecond); pid != deaf.Process.Pid || !killed || err != nil {
		t.Errorf("Stop: %d, %v, %v", pid, killed, err)
	}
	_ = deaf.Wait()
}

func TestForeignFoldersAreLeftAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "etcd", "data"))
	if _, err := statedir.Open(dir); !errors.Is(err, statedir.ErrForeign) {
		t.Errorf("Open: %v", err)
	}
	if _, _, err := statedir.Stop(t.Context(), dir, time.Second); !errors.Is(err, statedir.ErrForeign) {
		t.Errorf("Stop: %v", err)
	}
	if _, _, err := statedir.Remove(dir); !errors.Is(err, statedir.ErrForeign) {
		t.Errorf("Remove: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "etcd", "data")); err != nil {
		t.Error(err)
	}
}

func TestRemove(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	if removed, left, err := statedir.Remove(dir); removed || left != nil || err != nil {
		t.Errorf("of nothing: %v, %v, %v", removed, left, err)
	}
	if err := statedir.Check(dir); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "etcd", "data"))
	write(t, filepath.Join(dir, "notes.txt"))
	child := exec.CommandContext(t.Context(), "sleep", "60") // as a killed control plane leaves one
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "runtimes", "uid"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := local.WritePID(filepath.Join(dir, "runtimes", "uid", "kube-apiserver.pid"), child.Process.Pid); err != nil {
		t.Fatal(err)
	}
	removed, left, err := statedir.Remove(dir)
	if !removed || err != nil || !cmp.Equal(left, []string{"notes.txt"}) {
		t.Errorf("%v, %v, %v", removed, left, err)
	}
	if err := child.Wait(); err == nil {
		t.Error("what was left running ended by itself")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("there are %v, %v; want only what is not ours", entries, err)
	}
}

func TestLastError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const before, after = "error: of the start before\n", "{\"level\":\"info\"}\nerror: no port\n  more of it\nhint: try again\n"
	if err := os.WriteFile(filepath.Join(dir, statedir.Log), []byte(before+after), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := statedir.LastError(dir, int64(len(before)), "error: ", "hint: ")
	if err != nil || !cmp.Equal(got, []string{"error: no port", "hint: try again"}) {
		t.Errorf("%q, %v", got, err)
	}
}
