package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// target of a figure: the most that it may be, or the least.
type bound struct {
	value float64
	least bool
}

// targets by the names of the figures; those of a fleet of 10,000.
var targets = map[string]bound{
	"rss_mib": {512, false}, "rss_slope_kib": {40, false}, "idle_cpu_percent": {3, false}, "verify_cpu_percent": {15, false},
	"idle_requests": {0, false}, "connections_kept": {0, false}, "restart_seconds": {20, false}, "restart_writes": {0, false},
	"change_p50_ms": {100, false}, "change_p99_ms": {500, false}, "upgrade_cpu_ratio": {1.5, false}, "upgrade_throughput_ratio": {0.8, true},
	"sick_p99_ratio": {1.1, false}, "sick_requests_per_minute": {1, false},
}

func (b bound) met(v float64) bool {
	if b.least {
		return v >= b.value
	}
	return v <= b.value
}

// print prints the results for people.
func (r *Results) print(w io.Writer) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%s, %d cores, %d MiB, %s, %s, %s; load at the start %.1f\n", r.Rig.CPU, r.Rig.Cores, r.Rig.MemoryMiB, r.Rig.OS, r.Rig.Go, r.Rig.Date, r.Rig.Load)
	fmt.Fprintf(out, "%d runtimes × %d modules × %d objects\n", r.Clusters, r.Modules, r.Objects)
	if r.Quick || r.Noisy {
		fmt.Fprintln(out, "a quick run, or the machine was busy: do not believe the times")
	}
	r.printSizes(out)
	r.printWindows(out)
	r.printUpgrade(out)
	r.printFigures(out)
	return out.Flush()
}

func columns(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 0, 2, ' ', 0) }

func (r *Results) printSizes(w io.Writer) {
	t := columns(w)
	defer func() { _ = t.Flush() }() // into a buffer, whose own error is kept
	fmt.Fprintln(t, "\nruntimes\tseed s\tcpu s\tpeak MiB\trestart: ready s\tcaught up s\tcpu s\trequests\tpeak MiB\tidle cpu %\tquiet cpu %\tconnections\trequests\t")
	for _, s := range r.Sizes {
		fmt.Fprintf(t, "%d\t%.1f\t%.1f\t%.0f\t%.1f\t%.1f\t%.1f\t%s\t%.0f\t%.2f\t%.2f\t%d\t%s\t\n", s.Runtimes, s.SeedSeconds, s.SeedCPU, s.SeedPeak,
			s.ReadySeconds, s.RestartSeconds, s.RestartCPU, verbs(s.RestartRequests), s.Peak, s.IdleCPU, s.QuietCPU, s.Connections, verbs(s.IdleRequests))
	}
	for _, s := range r.Sizes {
		fmt.Fprintf(t, "%d seeded with\t%s\t\n", s.Runtimes, verbs(s.SeedRequests))
	}
}

func verbs(requests map[string]int) string {
	var out []string
	for _, verb := range slices.Sorted(maps.Keys(requests)) {
		out = append(out, fmt.Sprintf("%s %d", verb, requests[verb]))
	}
	return strings.Join(append(out, fmt.Sprintf("(%d)", total(requests))), " ")
}

func (r *Results) printWindows(w io.Writer) {
	t := columns(w)
	defer func() { _ = t.Flush() }() // into a buffer, whose own error is kept
	fmt.Fprintln(t, "\nms until a change is in its runtime\tp50\tp99\tmax\tchanges\tlost\tcpu ms each\t")
	row := func(name string, l *Window) {
		if l != nil {
			fmt.Fprintf(t, "%s\t%.1f\t%.1f\t%.1f\t%d\t%d\t%.1f\t\n", name, l.P50, l.P99, l.Max, l.Changes, l.Lost, l.CPUPerChange)
		}
	}
	row("all well", r.Change)
	if s := r.Sick; s != nil {
		row("before a fifth gets sick", s.Before)
		row("while it is", s.During)
		row("when it is well again", s.After)
		fmt.Fprintf(t, "requests per sick runtime and minute: %v; all well again after %.1f s\t\n", s.PerMinute, s.RecoverySeconds)
	}
}

func (r *Results) printUpgrade(w io.Writer) {
	if r.Upgrade == nil {
		return
	}
	t := columns(w)
	defer func() { _ = t.Flush() }() // into a buffer, whose own error is kept
	fmt.Fprintln(t, "\none module upgraded on all\tobjects\ts\tobjects/s\tcpu s\tcpu µs each\t")
	row := func(name string, a Applied) {
		fmt.Fprintf(t, "%s\t%d\t%.1f\t%.0f\t%.1f\t%.0f\t\n", name, a.Objects, a.Seconds, a.perSecond(), a.CPU, 1e6*a.perObject())
	}
	row("product", r.Upgrade.Product)
	row("bare loop", r.Upgrade.Loop)
	fmt.Fprintf(t, "its requests: %s\t\n", verbs(r.Upgrade.Requests))
}

func (r *Results) printFigures(w io.Writer) {
	t := columns(w)
	defer func() { _ = t.Flush() }() // into a buffer, whose own error is kept
	fmt.Fprintln(t, "\nfigure\tis\ttarget\t")
	for _, name := range slices.Sorted(maps.Keys(r.Figures)) {
		value, target, sign, met := r.Figures[name], targets[name], "≤", "met"
		if target.least {
			sign = "≥"
		}
		if !target.met(value) {
			met = "MISSED"
		}
		fmt.Fprintf(t, "%s\t%.3g\t%s %.3g\t%s\t\n", name, value, sign, target.value, met)
	}
}
