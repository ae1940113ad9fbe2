// Package statedir is the folder that `mothership up` keeps its state in: who uses it, how that process is ended, and how the
// folder is removed without taking anything with it that is not ours.
//
// # Invariants
//
// A folder is ours if it has our mark, which only Open makes, and only in a folder that is new or empty. Whoever has it open holds
// the kernel's lock on it, which ends with the process. The pid file names the process by its start time too, so that no stranger
// who got its number is ever ended. Remove deletes what we make by name, and leaves the folder if anything else is in it.
//
// The package may import internal/infra/local, which knows how children are left behind.
package statedir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/kyma-project/mothership/internal/infra/local"
)

// Errors that callers tell apart.
var (
	// ErrInUse says that another process has the folder open.
	ErrInUse = errors.New("the state folder is in use")
	// ErrForeign says that the folder has something in it and is not ours.
	ErrForeign = errors.New("it is not a state folder of mothership up")
)

// Names of files in the folder.
const (
	// Log takes what a control plane in the background logs.
	Log = "mothership.log"
	// Kubeconfig is the administrator's, as package controlplane writes it.
	Kubeconfig = "kubeconfig"

	mark    = ".mothership"
	pidFile = "mothership.pid"
	lock    = "mothership.lock"
)

// ours is all that a control plane makes in its folder; the mark, which makes it ours, goes last.
var ours = []string{"runtimes", "controlplane", "etcd", Kubeconfig, Log, pidFile, lock, mark}

// Default is the folder where none is named: $XDG_STATE_HOME/mothership, or ~/.local/state/mothership.
func Default(getenv func(string) string) (string, error) {
	if state := getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "mothership"), nil
	}
	home := getenv("HOME")
	if home == "" {
		return "", errors.New("finding the state folder: neither XDG_STATE_HOME nor HOME is set")
	}
	return filepath.Join(home, ".local", "state", "mothership"), nil
}

// Folder is an open state folder. It is not safe for concurrent use.
type Folder struct {
	path string
	lock *os.File
}

// Open makes the folder where it is missing, locks it, and records this process in it. Errors wrap ErrInUse or ErrForeign where
// that is why.
func Open(path string) (*Folder, error) {
	f, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("opening the state folder %s: %w", path, err)
	}
	return f, nil
}

func open(path string) (*Folder, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	if err := claim(path); err != nil {
		return nil, err
	}
	f, err := take(path)
	if err != nil {
		return nil, err
	}
	if err := local.WritePID(filepath.Join(path, pidFile), os.Getpid()); err != nil {
		return nil, errors.Join(err, f.lock.Close())
	}
	return f, nil
}

// claim marks a folder that is empty as ours.
func claim(path string) error {
	if isOurs(path) {
		return nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	if len(entries) > 0 && !isOurs(path) { // another process may have marked it meanwhile
		return fmt.Errorf("%w, and it is not empty", ErrForeign)
	}
	const text = "The state of a control plane that `mothership up` has started. `mothership down` removes it.\n"
	return os.WriteFile(filepath.Join(path, mark), []byte(text), 0o600)
}

func isOurs(path string) bool {
	info, err := os.Lstat(filepath.Join(path, mark))
	return err == nil && info.Mode().IsRegular()
}

// take locks the folder.
func take(path string) (*Folder, error) {
	file, err := os.OpenFile(filepath.Join(path, lock), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		return nil, ErrInUse
	}
	return &Folder{path: path, lock: file}, nil
}

// Close says that this process no longer uses the folder.
func (f *Folder) Close() error {
	return errors.Join(os.Remove(filepath.Join(f.path, pidFile)), f.lock.Close())
}

// Check says whether Open would succeed at the moment, and makes nothing but the folder and its mark.
func Check(path string) error {
	f, err := Open(path)
	if err != nil {
		return err
	}
	return f.Close()
}

// Running is the pid of the control plane that uses the folder, 0 if none does.
func Running(path string) int {
	pid, err := local.Running(filepath.Join(path, pidFile))
	if err != nil || !isOurs(path) {
		return 0
	}
	return pid
}

// Stop ends the control plane that uses the folder and returns when it is gone: by SIGTERM, and by SIGKILL if it has not ended
// within the grace. pid is 0 if none was running. The context ends the wait only. The error wraps ErrForeign if the folder is not
// ours; a folder that does not exist is no error.
func Stop(ctx context.Context, path string, grace time.Duration) (pid int, killed bool, err error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if !isOurs(path) {
		return 0, false, fmt.Errorf("stopping the control plane of %s: %w", path, ErrForeign)
	}
	if pid, killed, err = local.Stop(ctx, filepath.Join(path, pidFile), grace); err != nil {
		return pid, killed, fmt.Errorf("stopping the control plane of %s: %w", path, err)
	}
	return pid, killed, nil
}

// Remove deletes the folder and ends what an earlier control plane may have left running in it. removed is false if there was none;
// left are files that are not ours, for whose sake the folder itself stays. Errors wrap ErrInUse or ErrForeign where that is why.
func Remove(path string) (removed bool, left []string, err error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return false, nil, nil
	}
	if !isOurs(path) {
		return false, nil, fmt.Errorf("removing %s: %w", path, ErrForeign)
	}
	left, err = remove(path)
	if err != nil {
		return false, nil, fmt.Errorf("removing %s: %w", path, err)
	}
	return true, left, nil
}

func remove(path string) (left []string, err error) {
	f, err := take(path)
	if err != nil {
		return nil, err
	}
	defer f.lock.Close()
	if err := local.Reap(path); err != nil {
		return nil, err
	}
	for _, name := range ours {
		if err := os.RemoveAll(filepath.Join(path, name)); err != nil {
			return nil, err
		}
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if len(left) > 0 {
		return left, nil
	}
	return nil, os.Remove(path)
}

// maxQuoted bounds how much of the log's end is looked at, in bytes.
const maxQuoted = 64 << 10

// LastError is what a control plane in the background said last of why it ended: the lines of its log that begin with one of the
// given words, from an offset on.
func LastError(path string, offset int64, words ...string) ([]string, error) {
	f, err := os.Open(filepath.Join(path, Log))
	if err != nil {
		return nil, fmt.Errorf("reading the log: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("reading the log: %w", err)
	}
	offset = max(offset, info.Size()-maxQuoted)
	data := make([]byte, max(info.Size()-offset, 0))
	if _, err := f.ReadAt(data, offset); err != nil {
		return nil, fmt.Errorf("reading the log: %w", err)
	}
	var out []string
	for line := range strings.Lines(string(data)) {
		if slices.ContainsFunc(words, func(word string) bool { return strings.HasPrefix(line, word) }) {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out, nil
}
