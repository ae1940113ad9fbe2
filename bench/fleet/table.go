package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/kyma-project/mothership/bench/internal/report"
)

// bound is the most that a figure may be, or the least.
type bound struct {
	value float64
	least bool
}

// targets by the names of the figures; those of a fleet of 10,000. Figures without one are for information.
var targets = map[string]bound{
	"rss_mib": {512, false}, "rss_slope_kib": {40, false}, "idle_cpu_percent": {3, false}, "verify_cpu_percent": {15, false},
	"idle_requests": {0, false}, "connections_kept": {0, false}, "restart_seconds": {20, false}, "restart_writes": {0, false},
	"change_p50_ms": {100, false}, "change_p99_ms": {500, false}, "upgrade_cpu_ratio": {1.5, false}, "upgrade_throughput_ratio": {0.8, true},
	"sick_p99_ratio": {1.1, false}, "sick_requests_per_minute": {1, false}, "sick_flapped": {0, false}, "verify_cv": {0.2, false},
	"predecessor_load_factor": {1, true}, "changes_lost": {0, false},
}

// evenFrom is the size of a fleet from which on verifications are to be even: of fewer, chance has them clump, and that harms nobody.
const evenFrom = 1000

// slopeFrom is the size of a fleet from which on the slope has a target: the heap of smaller ones may grow before it is collected.
const slopeFrom = 10000

func (b bound) met(v float64) bool {
	if b.least {
		return v >= b.value
	}
	return v <= b.value
}

// target of a figure in this run; false if it has none.
func (r *Results) target(name string) (bound, bool) {
	b, ok := targets[name]
	switch name {
	case "verify_cv":
		ok = ok && r.Clusters >= evenFrom
	case "rss_slope_kib":
		ok = ok && r.Clusters >= slopeFrom
	}
	return b, ok
}

var errMissed = errors.New("targets are missed")

// check says which targets are missed, by figures that were measured.
func (r *Results) check() error {
	var missed []string
	for _, name := range slices.Sorted(maps.Keys(r.Figures)) {
		if b, ok := r.target(name); ok && !b.met(r.Figures[name]) {
			missed = append(missed, name)
		}
	}
	if len(missed) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", errMissed, strings.Join(missed, ", "))
}

// print prints the results for people.
func (r *Results) print(w io.Writer) error {
	out := bufio.NewWriter(w)
	report.Rig(out, r.Rig)
	fmt.Fprintf(out, "%d runtimes × %d modules × %d objects, in %.0f s\n", r.Clusters, r.Modules, r.Objects, r.Seconds)
	if r.Quick || r.Noisy {
		fmt.Fprintln(out, "a quick run, or the machine was busy: do not believe the times")
	}
	if r.Error != "" {
		fmt.Fprintf(out, "it ended early: %s\n", r.Error)
	}
	for _, section := range []func(io.Writer){r.printSizes, r.printIdle, r.printVerify, r.printWindows, r.printUpgrades, r.printBurst, r.printSick, r.printFigures} {
		report.Table(out, section)
	}
	return out.Flush()
}

func (r *Results) printSizes(w io.Writer) {
	fmt.Fprintln(w, "\nruntimes\tjoined\ts\tcpu s\tpeak MiB\trequests\t")
	for _, s := range r.Sizes {
		if d := s.Seed; d != nil {
			fmt.Fprintf(w, "%d\t%d\t%.1f\t%.1f\t%.0f\t%s\t\n", s.Runtimes, d.Joined, d.Seconds, d.CPU, d.Peak, report.Verbs(d.Requests))
		}
	}
	fmt.Fprintln(w, "\nruntimes\trestart: ready s\tcaught up s\tcpu s\tpeak MiB\trequests\t")
	for _, s := range r.Sizes {
		if d := s.Restart; d != nil {
			fmt.Fprintf(w, "%d\t%.1f\t%.1f\t%.1f\t%.0f\t%s\t\n", s.Runtimes, d.ReadySeconds, d.Seconds, d.CPU, d.Peak, report.Verbs(d.Requests))
		}
	}
}

func (r *Results) printIdle(w io.Writer) {
	fmt.Fprintln(w, "\nruntimes\tidle s\tcpu %\tquiet cpu %\tpeak MiB\tconnections\trequests\tcpu s of all\t")
	for _, s := range r.Sizes {
		if d := s.Idle; d != nil {
			fmt.Fprintf(w, "%d\t%.0f\t%.2f\t%.2f\t%.0f\t%d\t%s\t%s\t\n", s.Runtimes, d.Seconds, d.CPU, d.QuietCPU, d.Peak, d.Connections,
				report.Verbs(d.Requests), shareLine(d.Share))
		}
	}
}

// shareLine lists processor times.
func shareLine(share map[string]float64) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(share)) {
		out = append(out, fmt.Sprintf("%s %.1f", name, share[name]))
	}
	return strings.Join(out, " ")
}

func (r *Results) printVerify(w io.Writer) {
	v := r.Verify
	if v == nil || v.Made == nil {
		return
	}
	fmt.Fprintf(w, "\nverifications in twentieths of the interval\tcv\t\t\t\nplanned after a restart\t%.3f\t%v\t\n", v.Planned.CV, v.Planned.Windows)
	fmt.Fprintf(w, "made at %.0f s: %d, queued for %.1f ms\t%.3f\t%v\t\n", v.Made.IntervalSeconds, v.Made.Runtimes, v.Made.WaitMillis, v.Made.CV, v.Made.Windows)
	fmt.Fprintln(w, "\nto see that one runtime is as it should be\trequests\tcpu ms\tms\t")
	row := func(name string, e Each) {
		fmt.Fprintf(w, "%s\t%.1f\t%.2f\t%.1f\t\n", name, e.Requests, e.CPU, e.Wall)
	}
	row("product", v.Made.Each)
	if v.Field != nil {
		row("the way of the field", *v.Field)
	}
}

func (r *Results) printWindows(w io.Writer) {
	fmt.Fprintln(w, "\nms until a change is in its runtime\tp50\tp99\tmax\tp99 of the API's answers\tchanges\tlost\tcpu ms each\tcollections of the API\t")
	rows := func(name string, windows []Window) {
		for _, l := range windows {
			fmt.Fprintf(w, "%s\t%.1f\t%.1f\t%.1f\t%.1f\t%d\t%d\t%.1f\t%d\t\n", name, l.P50, l.P99, l.Max, l.API99, l.Changes, l.Lost, l.CPUPerChange, l.Collections)
		}
	}
	rows("all well", r.Changes)
	if r.Sick != nil {
		rows("before or after a fifth was sick", r.Sick.Undisturbed)
		rows("while a fifth is sick", r.Sick.Disturbed)
	}
}

func (r *Results) printUpgrades(w io.Writer) {
	if len(r.Upgrades) == 0 {
		return
	}
	fmt.Fprintln(w, "\none module upgraded on all\tobjects\ts\tobjects/s\treported after s\tcpu s\tcpu µs each\tcpu s of all\t")
	row := func(name string, a Applied, share map[string]float64) {
		fmt.Fprintf(w, "%s\t%d\t%.1f\t%.0f\t%.1f\t%.1f\t%.0f\t%s\t\n", name, a.Objects, a.Seconds, a.perSecond(), a.Reported, a.CPU, 1e6*a.perObject(), shareLine(share))
	}
	for i, u := range r.Upgrades {
		if i == 0 {
			row("bare loop", u.Before.Applied, u.Before.Share)
		}
		row("product", u.Product, u.Share)
		row("bare loop", u.After.Applied, u.After.Share)
	}
	fmt.Fprintln(w) // columns of their own
	for _, u := range r.Upgrades {
		fmt.Fprintf(w, "until all was applied\t%s\t\n", shareLine(u.Product.Share))
		fmt.Fprintf(w, "requests to the control plane's API\t%s\t\n", report.Verbs(u.API))
	}
}

func (r *Results) printBurst(w io.Writer) {
	if u := r.Burst; u != nil {
		fmt.Fprintf(w, "\n%d operations on %d runtimes at once\tlimit\tbegun in s\tdone in s\tcpu s of all\trequests\t\n", u.Operations, u.Runtimes)
		fmt.Fprintf(w, "on %.2f of a core\t%s\t%.1f\t%.1f\t%s\t%s\t\n", aimedCores, u.Limit, u.StartedSeconds, u.Seconds, shareLine(u.Share), report.Verbs(u.Requests))
	}
}

func (r *Results) printSick(w io.Writer) {
	s := r.Sick
	if s == nil || s.RequestsAtFirst == nil || s.Requests == nil || s.Each == nil {
		return
	}
	fmt.Fprintf(w, "\n%d sick runtimes, of which %d were noticed after %.0f s; the control plane had %.0f MiB at most until then\t\n", s.Runtimes, s.Noticed, s.NoticeSeconds, s.Peak)
	disturbed, undisturbed := compared(s.Disturbed, s.Undisturbed)
	fmt.Fprintf(w, "windows compared\t%d of %d while a fifth was sick, %d of %d others\t\n", len(disturbed), len(s.Disturbed), len(undisturbed), len(s.Undisturbed))
	for _, q := range []*SickRequests{s.RequestsAtFirst, s.Requests} {
		fmt.Fprintf(w, "requests to each per minute, in the %.1f minutes after that\t%s\t\n", q.Minutes, rates(q.PerMinute))
	}
	fmt.Fprintf(w, "in all its %.1f minutes, each has log lines\t%.2f\t\n", s.Each.Minutes, s.Each.LogLines)
	fmt.Fprintf(w, "writes of its status (most of any)\t%.2f (%d)\t\n", s.Each.StatusWrites, s.Each.MostStatusWrites)
	fmt.Fprintf(w, "went to and fro between reachable and not\t%d\t\n", s.Each.Flapped)
	fmt.Fprintf(w, "s until all were well again\t%.1f\t\n", s.RecoverySeconds)
}

// rates lists numbers per minute.
func rates(of map[string]float64) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		out = append(out, fmt.Sprintf("%s %.2f", name, of[name]))
	}
	return strings.Join(out, ", ")
}

func (r *Results) printFigures(w io.Writer) {
	fmt.Fprintln(w, "\nfigure\tis\ttarget\t\t")
	for _, name := range slices.Sorted(maps.Keys(r.Figures)) {
		target, ok := r.target(name)
		if !ok {
			fmt.Fprintf(w, "%s\t%.3g\t\t\t\n", name, r.Figures[name])
			continue
		}
		sign, met := "≤", "met"
		if target.least {
			sign = "≥"
		}
		if !target.met(r.Figures[name]) {
			met = "MISSED"
		}
		fmt.Fprintf(w, "%s\t%.3g\t%s %.3g\t%s\t\n", name, r.Figures[name], sign, target.value, met)
	}
}
