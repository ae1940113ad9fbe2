package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// WritePID records a process in a file, so that Running and Stop tell it from any later one that gets its number.
func WritePID(file string, pid int) error { return writePID(file, pid) }

// Running is the pid of the process that a file of WritePID names, and 0 if there is no file or the process has ended. Where the
// system does not say who a process is (any but Linux), it is always 0.
func Running(file string) (pid int, err error) {
	pid, _, err = readPID(file)
	return pid, err
}

// readPID is the process that a file names, if it still is that one.
func readPID(file string) (pid int, who string, err error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, "", nil
	}
	if err != nil {
		return 0, "", fmt.Errorf("reading a pid: %w", err)
	}
	text, who, _ := strings.Cut(strings.TrimSpace(string(data)), " ")
	if n, _ := fmt.Sscanf(text, "%d", &pid); n == 1 && pid > 1 && who != "" && identity(pid) == who {
		return pid, who, nil
	}
	return 0, "", nil // torn by a crash, or of a process that is no more
}

// Stop ends the process that a file of WritePID names and returns when it is gone: by SIGTERM, and by SIGKILL if it has not ended
// within the grace. pid is 0 if it was not running; killed says that it had to be.
func Stop(ctx context.Context, file string, grace time.Duration) (pid int, killed bool, err error) {
	pid, who, err := readPID(file)
	if err != nil || pid == 0 {
		return 0, false, err
	}
	gone, err := signalAndWait(ctx, pid, who, syscall.SIGTERM, grace)
	if err != nil || gone {
		return pid, false, err
	}
	return pid, true, killAndWait(pid, who)
}

// Reap kills the children that a parent has left in a folder and the folders below it. The parent must be gone.
func Reap(dir string) error {
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || e.IsDir() || filepath.Ext(path) != ".pid" {
			return err
		}
		return reap(path, path)
	})
	if err != nil {
		return fmt.Errorf("reaping what was left in %s: %w", dir, err)
	}
	return nil
}
