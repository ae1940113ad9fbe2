package measure

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Living is what a process that still runs has taken so far.
type Living struct {
	// Resident is the memory in bytes that it has now, and Peak the most that it had since it was executed, by the kernel's
	// record (VmRSS and VmHWM in proc_pid_status(5)).
	Resident, Peak int64
	// CPU is user and system time.
	CPU time.Duration
}

// clockTicks per second of the times in /proc (USER_HZ), which Linux fixes for programs.
const clockTicks = 100

var errNotThere = errors.New("it is not there")

// Look reads what a process has taken so far, without its children.
func Look(pid int) (Living, error) { return look(pid, false) }

// LookAtAll reads what a process and its children have taken so far, which run the same program. Memory is with what children have now that is no
// part of a file (RssAnon): the program's pages are there once. Processor time is with that of children that it has waited for, and of those
// that run; one that ends meanwhile may be missing from one look.
func LookAtAll(pid int) (Living, error) {
	l, err := look(pid, true)
	if err != nil {
		return l, err
	}
	for _, p := range descendants(pid)[1:] {
		own, err := kibibytes(fmt.Sprintf("/proc/%d/status", p), "RssAnon")
		if err != nil {
			continue // it has ended, and will be waited for
		}
		cpu, err := cpuOf(p, true)
		if err != nil {
			continue
		}
		l.Resident, l.Peak, l.CPU = l.Resident+own, l.Peak+own, l.CPU+cpu
	}
	return l, nil
}

func look(pid int, withEnded bool) (Living, error) {
	var l Living
	var err error
	file := fmt.Sprintf("/proc/%d/status", pid)
	if l.Resident, err = kibibytes(file, "VmRSS"); err != nil {
		return l, err
	}
	if l.Peak, err = kibibytes(file, "VmHWM"); err != nil {
		return l, err
	}
	l.CPU, err = cpuOf(pid, withEnded)
	return l, err
}

func kibibytes(file, key string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSuffix(valueOf(file, key, ":"), " kB"), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading %s of %s: %w", key, file, err)
	}
	return n << 10, nil
}

// cpuOf reads fields 14 and 15 of proc_pid_stat(5), and for the children that it has waited for 16 and 17.
func cpuOf(pid int, withEnded bool) (time.Duration, error) {
	file := fmt.Sprintf("/proc/%d/stat", pid)
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, fmt.Errorf("reading the processor time of process %d: %w", pid, err)
	}
	// The name, in brackets, can have anything in it. What follows begins with field 3.
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	if len(fields) < 15 {
		return 0, fmt.Errorf("reading %s: %w", file, errNotThere)
	}
	var ticks int64
	last := 13
	if withEnded {
		last = 15
	}
	for _, field := range fields[11:last] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading %s: %w", file, err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / clockTicks, nil
}
