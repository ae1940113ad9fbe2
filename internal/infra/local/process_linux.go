package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// childAttributes puts the child into its own process group, so that a Ctrl-C at the terminal does not end it before
// Close does in order, and has the kernel kill it when the thread that started it ends.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// identity tells a process from any later one with the same pid: its name and start time (ticks since boot), from
// fields 2 and 22 of /proc/<pid>/stat (proc_pid_stat(5)). It is empty when there is no such process or it is a zombie.
func identity(pid int) string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(data), "(")
	end := strings.LastIndexByte(rest, ')') // the name may contain brackets itself
	if end < 0 {
		return ""
	}
	fields := strings.Fields(rest[end+1:])
	if len(fields) < 20 || fields[0] == "Z" {
		return ""
	}
	return rest[:end] + " " + fields[19]
}

// killAndWait kills a process that need not be a child of ours and returns when it is gone.
func killAndWait(pid int, who string) error {
	gone, err := signalAndWait(context.Background(), pid, who, unix.SIGKILL, killGrace)
	if err == nil && !gone {
		err = fmt.Errorf("waiting for process %d: still there %s after SIGKILL", pid, killGrace)
	}
	return err
}

// waitSlice is how long the end of a process is waited for between two looks at the context.
const waitSlice = 200 * time.Millisecond

// signalAndWait sends a signal to a process, and says whether it has ended within some time.
func signalAndWait(ctx context.Context, pid int, who string, sig unix.Signal, patience time.Duration) (gone bool, err error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("opening process %d: %w", pid, err)
	}
	defer unix.Close(fd)
	if identity(pid) != who { // asked again now that the descriptor pins the process
		return true, nil
	}
	if err := unix.PidfdSendSignal(fd, sig, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return false, fmt.Errorf("sending %s to process %d: %w", sig, pid, err)
	}
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for deadline := time.Now().Add(patience); ; {
		left := time.Until(deadline)
		n, err := unix.Poll(poll, int(max(min(left, waitSlice), 0).Milliseconds()))
		switch {
		case err != nil && !errors.Is(err, unix.EINTR):
			return false, fmt.Errorf("waiting for process %d: %w", pid, err)
		case n > 0:
			return true, nil
		case ctx.Err() != nil:
			return false, fmt.Errorf("waiting for process %d: %w", pid, context.Cause(ctx))
		case left <= 0:
			return false, nil
		}
	}
}
