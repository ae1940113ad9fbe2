//go:build !linux

package local

import (
	"context"
	"syscall"
	"time"
)

// childAttributes puts the child into its own process group. There is no death signal here: children of a parent that
// was killed go on, and the next start fails on their locks until they are ended by hand.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// identity is unknown here, so nothing is ever taken for a leftover.
func identity(int) string { return "" }

// killAndWait is never reached here, since identity is unknown.
func killAndWait(int, string) error { return nil }

// signalAndWait is never reached here, since identity is unknown.
func signalAndWait(context.Context, int, string, syscall.Signal, time.Duration) (bool, error) {
	return true, nil
}
