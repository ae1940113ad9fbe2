package local

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// killGrace is how long a child may take from SIGTERM to its end; then it is killed.
const killGrace = 15 * time.Second

// command is what a child is started with.
type command struct {
	assets, name string
	args, env    []string
	// dir takes the child's log and pid file; workDir is its working directory.
	dir, workDir string
}

// process is a running child. It is waited for by its own goroutine, which is locked to its thread for as long as the
// child lives: the kernel kills the child when that thread ends, so when this process does, however it does.
type process struct {
	command
	cmd  *exec.Cmd
	done chan struct{} // closed when the child has ended and was waited for
	err  error         // how it ended; read after done
}

// startProcess starts the child, with its output in <dir>/<name>.log and its pid in <dir>/<name>.pid.
func startProcess(c command) (*process, error) {
	if err := c.reap(); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(c.logFile(), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.name, err)
	}
	defer log.Close() // the child has its own descriptor
	p := &process{command: c, done: make(chan struct{})}
	p.cmd = exec.Command(filepath.Join(c.assets, c.name), c.args...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = c.workDir, log, log
	p.cmd.Env = append([]string{"HOME=" + c.dir, "TMPDIR=" + os.TempDir()}, c.env...) // nothing of ours: neither proxies nor secrets
	p.cmd.SysProcAttr = childAttributes()
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.name, err)
	}
	return p, nil
}

// run starts the child, waits for its end and records it.
func (p *process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := p.cmd.Start(); err != nil {
		started <- err
		return
	}
	err := writePID(p.pidFile(), p.cmd.Process.Pid)
	if err != nil {
		_ = p.cmd.Process.Kill()
	}
	started <- err
	p.err = p.cmd.Wait()
	_ = os.Remove(p.pidFile())
	close(p.done)
}

func (c command) pidFile() string { return filepath.Join(c.dir, c.name+".pid") }
func (c command) logFile() string { return filepath.Join(c.dir, c.name+".log") }

// reap kills a child that an earlier parent left in the folder, which is ours.
func (c command) reap() error {
	if err := reap(c.pidFile(), c.name); err != nil {
		return fmt.Errorf("reaping the leftover %s: %w", c.name, err)
	}
	return nil
}

// kill ends the child at once, without waiting for its end.
func (p *process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("killing %s: %w", p.name, err)
	}
	return nil
}

// stop ends the child with the signal, kills it when it has not ended within the grace, and returns when it is gone.
func (p *process) stop(sig syscall.Signal) error {
	if p == nil {
		return nil
	}
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stopping %s: %w", p.name, err)
	}
	grace := time.NewTimer(killGrace)
	defer grace.Stop()
	select {
	case <-p.done:
		return nil
	case <-grace.C:
	}
	_ = p.cmd.Process.Kill()
	<-p.done // SIGKILL cannot be refused
	return fmt.Errorf("stopping %s: killed, since it had not ended %s after %s", p.name, killGrace, sig)
}

// exitError describes the end of a child that should be running, with the last lines of its log.
func (p *process) exitError() error {
	how := "exit status 0"
	if p.err != nil {
		how = p.err.Error()
	}
	return &ExitError{Name: p.name, How: how, Log: lastLines(p.logFile(), 12)}
}

// ExitError is the unexpected end of a child process.
type ExitError struct {
	// Name of the executable, as in "kube-apiserver".
	Name string
	// How it ended, as in "exit status 1" or "signal: killed".
	How string
	// Log has the last lines that the child wrote.
	Log string
}

// Error names the child, says how it ended and quotes its log.
func (e *ExitError) Error() string {
	return fmt.Sprintf("%s ended: %s; its log ends with:\n%s", e.Name, e.How, e.Log)
}

// lastLines returns the last n lines of a file, of which it reads at most the last 16 KiB.
func lastLines(file string, n int) string {
	f, err := os.Open(file)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	const most = 16 << 10
	info, err := f.Stat()
	if err != nil {
		return err.Error()
	}
	size := min(info.Size(), most)
	buf := make([]byte, size)
	if _, err := f.ReadAt(buf, info.Size()-size); err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(buf)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
