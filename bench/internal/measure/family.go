package measure

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// Family is the processor time that this process's children and theirs have taken so far, by the names of their programs, of which the
// kernel keeps 15 characters. Those that have ended count nothing; those of one name are added up.
func Family() map[string]time.Duration {
	out := map[string]time.Duration{}
	for _, pid := range descendants(os.Getpid()) {
		name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if err != nil {
			continue // it has ended
		}
		if cpu, err := cpuOf(pid, false); err == nil {
			out[strings.TrimSpace(string(name))] += cpu
		}
	}
	return out
}
