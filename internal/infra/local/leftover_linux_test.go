package local

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
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
