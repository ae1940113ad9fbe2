// Package measure measures processes, and says on which machine. It works on Linux, by /proc.
//
// It may import the standard library only.
package measure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Usage is what a process took.
type Usage struct {
	// Wall is the time from just before the start of the process to its end.
	Wall time.Duration
	// CPU is user and system time, of its children too.
	CPU time.Duration
	// PeakRSS is the most resident memory, in bytes, that the process and its children had at the same time: the largest
	// sum of samples taken every 2 ms. Pages that processes share, as those of one executable, count for each. The kernel's
	// own record, ru_maxrss, would not do: it begins with the memory of whoever starts the process.
	PeakRSS int64
	// PeakUnique is the same with shared pages counted once: the largest sum of what is private to each process, and of the
	// shared pages of the one that has most of them. It is what the machine must have.
	PeakUnique int64
	// Stdout is what it printed.
	Stdout []byte
}

// errorLines bounds how much of what a process complained about is quoted.
const errorLines = 20

// Run runs a command to its end, or that of the context. The command must not have been started, and its Stdout and Stderr
// be unset. The error quotes the end of stderr.
func Run(ctx context.Context, cmd *exec.Cmd) (Usage, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return Usage{}, fmt.Errorf("starting %s: %w", cmd.Path, err)
	}
	stopKill := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stopKill()
	peak := watchMemory(cmd.Process.Pid)
	err := cmd.Wait()
	u := Usage{Wall: time.Since(start), Stdout: stdout.Bytes()}
	u.PeakRSS, u.PeakUnique = peak()
	u.CPU = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if err != nil {
		return u, fmt.Errorf("running %s: %w\n%s", strings.Join(cmd.Args, " "), errors.Join(err, context.Cause(ctx)), tail(stderr.String()))
	}
	return u, nil
}

func tail(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-errorLines):], "\n")
}

// CPUTime is the user and system time of this process so far.
func CPUTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
