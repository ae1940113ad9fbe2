//go:build !linux

package render

import (
	"os"
	"syscall"
)

// setLimits does nothing: outside of Linux, the child's watchdog and the parent's deadline are the limits.
func setLimits(int64) {}

func childAttributes() *syscall.SysProcAttr { return nil }

func killGroup(pid int) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return p.Kill()
}
