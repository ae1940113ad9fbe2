package measure

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// limitPeriod is the kernel's default, in microseconds.
const limitPeriod = 100_000

// controlGroups are where the kernel's control groups of processor time may be mounted: the line of /proc/PID/cgroup that says which
// group a process is in, and the files of a limit.
var controlGroups = []struct {
	line, mount string
	files       func(quota int) map[string]string
}{
	{":cpu:", "/sys/fs/cgroup/cpu", v1Limit}, {":cpu,cpuacct:", "/sys/fs/cgroup/cpu,cpuacct", v1Limit},
	{"0::", "/sys/fs/cgroup", func(quota int) map[string]string {
		return map[string]string{"cpu.max": fmt.Sprintf("%d %d", quota, limitPeriod)}
	}},
}

func v1Limit(quota int) map[string]string {
	return map[string]string{"cpu.cfs_quota_us": strconv.Itoa(quota)}
}

// ErrNoLimit says that this machine lets nobody limit processor time.
var ErrNoLimit = errors.New("no control group of processor time can be made")

// Limit lets a process and its children have so many cores together, until the returned function is called, once. It makes a
// control group below the one that the process is in.
func Limit(pid int, cores float64) (release func() error, err error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return nil, fmt.Errorf("limiting processor time: %w", err)
	}
	reasons := []error{ErrNoLimit}
	for _, g := range controlGroups {
		for line := range strings.Lines(string(data)) {
			_, path, ok := strings.Cut(line, g.line)
			if !ok {
				continue
			}
			release, err := limitIn(filepath.Join(g.mount, strings.TrimSpace(path)), pid, g.files(int(cores*limitPeriod)))
			if err == nil {
				return release, nil
			}
			reasons = append(reasons, err)
		}
	}
	return nil, errors.Join(reasons...)
}

func limitIn(parent string, pid int, files map[string]string) (func() error, error) {
	group := filepath.Join(parent, fmt.Sprintf("bench-%d", pid))
	if err := os.Mkdir(group, 0o755); err != nil {
		return nil, err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(group, name), []byte(content), 0o600); err != nil {
			return nil, errors.Join(err, os.Remove(group))
		}
	}
	release := func() error { return errors.Join(leave(group, parent), os.Remove(group)) }
	if err := join(group, strconv.Itoa(pid)); err != nil { // what it starts from now on is in its group
		return nil, errors.Join(err, release())
	}
	for _, member := range descendants(pid) {
		if err := join(group, strconv.Itoa(member)); err != nil {
			return nil, errors.Join(err, release())
		}
	}
	return release, nil
}

// leaves bounds how often it is looked whether a control group is empty: its members may start others while they are moved.
const leaves = 10

// leave moves all who are in a control group to its parent.
func leave(group, parent string) error {
	for range leaves {
		members, err := os.ReadFile(filepath.Join(group, "cgroup.procs"))
		if err != nil || len(members) == 0 {
			return err
		}
		for member := range strings.FieldsSeq(string(members)) {
			if err := join(parent, member); err != nil {
				return err
			}
		}
	}
	return nil // Remove says so
}

// join puts a process into a control group; one that has ended is in none.
func join(group, pid string) error {
	err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(pid), 0o600)
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}
