package measure

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	sampleInterval = 2 * time.Millisecond
	// scanEvery is after how many samples it is looked for new children: that reads an entry of every process of the machine.
	scanEvery = 5
	// maxDepth bounds the generations that are followed.
	maxDepth = 4
)

// watchMemory samples the resident memory of a process and its descendants until the returned function is called, once;
// that returns the largest sums in bytes: of all pages of each, and with those that can be shared counted once.
func watchMemory(pid int) func() (all, unique int64) {
	stop, done := make(chan struct{}), make(chan struct{})
	var all, unique int64
	go func() {
		defer close(done)
		tick := time.NewTicker(sampleInterval)
		defer tick.Stop()
		tree := []int{pid}
		for n := 1; ; n++ {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			if n%scanEvery == 0 {
				tree = descendants(pid)
			}
			a, u := resident(tree)
			all, unique = max(all, a), max(unique, u)
		}
	}()
	return func() (int64, int64) {
		close(stop)
		<-done
		return all, unique
	}
}

// resident is the memory of processes; those that have ended count nothing.
func resident(pids []int) (all, unique int64) {
	var shared int64
	for _, pid := range pids {
		total, file := statm(pid)
		all, unique, shared = all+total, unique+total-file, max(shared, file)
	}
	return all, unique + shared
}

// statm is the resident memory of a process, and what of it belongs to files (the executable above all) and can be shared.
func statm(pid int) (total, file int64) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, 0
	}
	fields := strings.Fields(string(data))
	if len(fields) < 3 {
		return 0, 0
	}
	total, err = strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0, 0
	}
	if file, err = strconv.ParseInt(fields[2], 10, 64); err != nil {
		return 0, 0
	}
	page := int64(os.Getpagesize())
	return total * page, file * page
}

// descendants are a process and all that it and its children started and that still run.
func descendants(pid int) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return []int{pid}
	}
	children := map[int][]int{}
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil {
			p := parent(n)
			children[p] = append(children[p], n)
		}
	}
	tree, level := []int{pid}, []int{pid}
	for range maxDepth {
		var next []int
		for _, p := range level {
			next = append(next, children[p]...)
		}
		tree, level = append(tree, next...), next
	}
	return tree
}

// parent of a process; 0 if it has ended.
func parent(pid int) int {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The name, in brackets, can have anything in it.
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(fields) < 2 {
		return 0
	}
	n, err := strconv.Atoi(fields[1])
	if err != nil {
		return 0
	}
	return n
}
