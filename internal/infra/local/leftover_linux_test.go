package local

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// sleeper starts a process that does nothing until its stdin ends.
func sleeper(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("cat")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		_ = cmd.Wait()
	})
	return cmd
}

func TestReap(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		content func(pid int) string // of the pid file
		killed  bool
	}{
		"Leftover":     {func(pid int) string { return pidLine(pid) }, true},
		"PidUsedAgain": {func(pid int) string { return strings.Replace(pidLine(pid), "cat ", "etcd ", 1) }, false},
		"Torn":         {func(pid int) string { return "12" }, false},
		"Empty":        {func(int) string { return "" }, false},
		"Gone":         {func(int) string { return "4194305 cat 1" }, false}, // beyond the highest pid
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			process := sleeper(t).Process
			file := filepath.Join(t.TempDir(), "child.pid")
			if err := os.WriteFile(file, []byte(test.content(process.Pid)), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := reap(file, "child"); err != nil {
				t.Fatal(err)
			}
			if killed := identity(process.Pid) == ""; killed != test.killed {
				t.Errorf("killed: %t; want %t", killed, test.killed)
			}
			if _, err := os.Stat(file); !os.IsNotExist(err) {
				t.Errorf("the pid file is still there: %v", err)
			}
		})
	}
}

func TestSweep(t *testing.T) {
	t.Parallel()
	in := t.TempDir()
	old := time.Now().Add(-2 * sweepAge)
	mk := func(name string, made time.Time) *folder {
		f, err := openFolder(filepath.Join(in, temporaryPrefix+name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(f.path, made, made); err != nil {
			t.Fatal(err)
		}
		return f
	}
	held, left, young := mk("held", old), mk("left", old), mk("young", time.Now())
	defer held.close()
	for _, f := range []*folder{left, young} {
		if err := f.close(); err != nil { // given a path, it is kept
			t.Fatal(err)
		}
	}
	process := sleeper(t).Process
	if err := writePID(filepath.Join(left.path, "cat.pid"), process.Pid); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(left.path, old, old); err != nil {
		t.Fatal(err)
	}
	sweep(in)
	for f, want := range map[*folder]bool{held: true, left: false, young: true} {
		if _, err := os.Stat(f.path); (err == nil) != want {
			t.Errorf("%s is there: %t; want %t", filepath.Base(f.path), err == nil, want)
		}
	}
	if identity(process.Pid) != "" {
		t.Error("what ran in the leftover still runs")
	}
}
