package render

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// slackMemory is what a Go process maps beyond what it uses: arenas are mapped whole, and threads have stacks.
const slackMemory = 256 << 20

// setLimits sets the kernel's limits for this process: private memory (not address space, of which Go reserves much
// more than it uses), no files written, no core dumps. Errors are ignored: a lower limit may be set already, and the
// watchdog and the parent's deadline hold without.
func setLimits(memory int64) {
	var data unix.Rlimit
	_ = unix.Getrlimit(unix.RLIMIT_DATA, &data)
	data.Cur = min(uint64(memory)+slackMemory, data.Max)
	_ = unix.Setrlimit(unix.RLIMIT_DATA, &data)
	_ = unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{})
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
}

// childAttributes put a child into a process group of its own and let it die with the thread that started it.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// killGroup kills a child and everything that it started.
func killGroup(pid int) error { return syscall.Kill(-pid, syscall.SIGKILL) }
