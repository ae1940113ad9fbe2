package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/kyma-project/mothership/bench/internal/report"
)

// print prints the results for people.
func (r *Results) print(w io.Writer) error {
	out := bufio.NewWriter(w)
	report.Rig(out, r.Rig)
	if r.Noisy {
		fmt.Fprintln(out, "the machine was busy: do not believe the times")
	}
	for _, section := range []func(io.Writer){r.printLatencies, r.printInstalls, r.printRestarts, r.printRatios} {
		report.Table(out, section)
	}
	return out.Flush()
}

func (r *Results) printLatencies(t io.Writer) {
	fmt.Fprintln(t, "\nms\tp50\tp90\tp99\tmax\ttimes\t")
	for _, row := range []struct {
		name string
		l    *Latency
	}{{"change of a Kyma → object in the runtime", r.Change}, {"the same in succession", r.Succession}, {"drift → put back", r.Drift}} {
		if row.l != nil && len(row.l.Samples) > 0 {
			fmt.Fprintf(t, "%s\t%.1f\t%.1f\t%.1f\t%.1f\t%d\t\n", row.name, row.l.P50, row.l.P90, row.l.P99, row.l.Max, len(row.l.Samples))
		}
	}
}

func (r *Results) printInstalls(t io.Writer) {
	if len(r.Installs) == 0 {
		return
	}
	fmt.Fprintf(t, "\n%d modules of four objects on one runtime\twall s\tcpu s\tpeak MiB\tbefore\tKyma KiB\trequests\t\n", r.Modules)
	for i, run := range r.Installs {
		noisy := ""
		if run.Noisy {
			noisy = " (the machine was busy)"
		}
		fmt.Fprintf(t, "run %d\t%.1f\t%.1f\t%.0f\t%.0f\t%d\t%s%s\t\n", i+1, run.Wall, run.CPU, run.PeakRSS, run.RestRSS, run.KymaBytes>>10, report.Verbs(run.Requests), noisy)
	}
	fmt.Fprintf(t, "published by the field\t%.0f\t\t%.0f\t\t\t\t\n", r.Field.Wall, r.Field.PeakRSS)
}

func (r *Results) printRestarts(t io.Writer) {
	if len(r.Restarts) == 0 {
		return
	}
	fmt.Fprintln(t, "\nrestart with nothing to do\tready s\trequests\twrites\tby verb\t")
	for _, run := range r.Restarts {
		fmt.Fprintf(t, "%s\t%.2f\t%d\t%d\t%s\t\n", run.Drift, run.Ready, run.Total, run.Writes, report.Verbs(run.Requests))
	}
}

func (r *Results) printRatios(t io.Writer) {
	fmt.Fprintln(t, "\nfigure\tis\tat most\t")
	for _, name := range slices.Sorted(maps.Keys(r.Ratios)) {
		ratio, met := r.Ratios[name], "met"
		if !ratio.Met {
			met = "MISSED"
		}
		fmt.Fprintf(t, "%s\t%.3g\t%.3g\t%s\t\n", name, ratio.Value, ratio.Target, met)
	}
}
