package measure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	quietWindow = 150 * time.Millisecond
	// quietLooks bounds the wait to nine seconds.
	quietLooks = 60
	// quietShare is the share of idle time of all cores from which the machine counts as quiet.
	quietShare = 0.9
)

var errNoCPULine = errors.New("it has no line of all cores")

// Quiet waits until the machine does almost nothing, so that what the API server still does because of the last run (it
// rebuilds its OpenAPI documents after a definition has changed) is not counted against the next. It returns false if the
// machine did not come to rest in time.
func Quiet(ctx context.Context) (bool, error) {
	tick := time.NewTicker(quietWindow)
	defer tick.Stop()
	before, err := readCPU()
	if err != nil {
		return false, err
	}
	for range quietLooks {
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-tick.C:
		}
		after, err := readCPU()
		if err != nil {
			return false, err
		}
		if total := after.total - before.total; total > 0 && float64(after.idle-before.idle) >= quietShare*float64(total) {
			return true, nil
		}
		before = after
	}
	return false, nil
}

// cpu is the time of all cores, in ticks.
type cpu struct{ idle, total int64 }

func readCPU() (cpu, error) {
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return cpu{}, fmt.Errorf("reading how busy the machine is: %w", err)
	}
	line, _, _ := strings.Cut(string(data), "\n")
	fields := strings.Fields(line)
	if len(fields) < 6 || fields[0] != "cpu" {
		return cpu{}, fmt.Errorf("reading how busy the machine is: /proc/stat: %w", errNoCPULine)
	}
	var out cpu
	for i, field := range fields[1:] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return cpu{}, fmt.Errorf("reading how busy the machine is: /proc/stat: %w", err)
		}
		out.total += n
		if i == 3 || i == 4 { // idle, and waiting for disks
			out.idle += n
		}
	}
	return out, nil
}
