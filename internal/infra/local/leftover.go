package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// ErrInUse says that another running process serves from the same state folder.
var ErrInUse = errors.New("the state folder is in use")

// folder is a state folder, locked against other users for as long as it is open. The lock is the kernel's, so it ends
// with this process, and children do not inherit it.
type folder struct {
	path      string
	temporary bool
	lock      *os.File
}

// openFolder makes and locks the folder, a temporary one if path is empty.
func openFolder(path string) (*folder, error) {
	f := &folder{path: path, temporary: path == ""}
	var err error
	if f.temporary {
		sweep(os.TempDir())
		f.path, err = os.MkdirTemp("", temporaryPrefix)
	} else if f.path, err = filepath.Abs(path); err == nil {
		err = os.MkdirAll(f.path, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("making the state folder: %w", err)
	}
	if f.lock, err = os.OpenFile(filepath.Join(f.path, "lock"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, fmt.Errorf("locking the state folder: %w", err)
	}
	if err := syscall.Flock(int(f.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.lock.Close()
		return nil, fmt.Errorf("locking %s: %w by another process", f.path, ErrInUse)
	}
	return f, nil
}

// temporaryPrefix begins the names of temporary folders, and sweepAge is how old one must be before it can be taken for
// a leftover: between its making and its locking passes no time to speak of.
const (
	temporaryPrefix = "mothership-local-"
	sweepAge        = time.Minute
)

// sweep removes the temporary folders that nobody holds: of parents that were killed. What cannot be removed is left to
// the next sweep, as it hinders nobody.
func sweep(in string) {
	dirs, err := filepath.Glob(filepath.Join(in, temporaryPrefix+"*"))
	if err != nil {
		return // the pattern is a good one, unless the folder's name is not
	}
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err == nil && time.Since(info.ModTime()) > sweepAge {
			removeLeftover(dir)
		}
	}
}

// removeLeftover removes a temporary folder, and what still runs in it, unless it is held.
func removeLeftover(dir string) {
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR, 0)
	if err != nil {
		return // another user's, or not one of ours
	}
	defer lock.Close()
	if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return
	}
	for _, pattern := range []string{"*.pid", "etcd/*.pid"} {
		files, _ := filepath.Glob(filepath.Join(dir, pattern))
		for _, file := range files {
			_ = reap(file, file)
		}
	}
	_ = os.RemoveAll(dir)
}

// close unlocks the folder, and removes it if it is temporary.
func (f *folder) close() error {
	err := f.lock.Close()
	if f.temporary {
		err = errors.Join(err, os.RemoveAll(f.path))
	}
	return err
}

// writePID records a child for reap.
func writePID(file string, pid int) error {
	return os.WriteFile(file, []byte(pidLine(pid)), 0o600)
}

// pidLine is the content of a pid file: the pid and who it is.
func pidLine(pid int) string { return fmt.Sprintf("%d %s\n", pid, identity(pid)) }

// reap kills what the pid file names, if it is still that process: the leftover of a parent that was killed where the
// kernel did not kill its children too. The caller holds the folder's lock, so the process cannot be somebody's.
func reap(file, name string) error {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the pid of %s: %w", name, err)
	}
	var pid int
	pidText, who, _ := strings.Cut(strings.TrimSpace(string(data)), " ")
	if _, err := fmt.Sscanf(pidText, "%d", &pid); err != nil || pid <= 1 || who == "" {
		return os.Remove(file) // torn by a crash
	}
	if identity(pid) == who {
		if err := killAndWait(pid, who); err != nil {
			return err
		}
	}
	return os.Remove(file)
}
