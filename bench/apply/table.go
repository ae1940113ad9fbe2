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

// print prints the results for people.
func (r *Results) print(w io.Writer) error {
	buffered := bufio.NewWriter(w)
	fmt.Fprintf(buffered, "%s, %d cores, %d MiB, %s, %s, %s\n", r.Rig.CPU, r.Rig.Cores, r.Rig.MemoryMiB, r.Rig.OS, r.Rig.Go, r.Rig.Date)
	for _, name := range slices.Sorted(maps.Keys(r.Rig.Versions)) {
		fmt.Fprintf(buffered, "%s %s  ", name, r.Rig.Versions[name])
	}
	fmt.Fprintf(buffered, "\nload at the start %.1f\n", r.Rig.Load)
	r.printFigures(buffered)
	r.printRatios(buffered)
	return buffered.Flush()
}

func (r *Results) printFigures(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	defer func() { _ = t.Flush() }() // into a buffer, whose own error is kept
	last := ""
	for _, f := range r.ordered() {
		if group := f.Case + " " + string(f.Phase); group != last {
			last = group
			fmt.Fprintf(t, "\n%s, %s (%d objects, %d kinds; medians of %d runs)\n", f.Case, f.Phase, f.Objects, f.Kinds, len(f.Runs))
			fmt.Fprintln(t, "contestant\twall s\tcpu s\tpeak MiB\tshared once\trequests\twrites\tby verb\t")
		}
		m, noisy := f.Median, ""
		if m.Noisy {
			noisy = " (the machine was busy)"
		}
		fmt.Fprintf(t, "%s\t%.3f\t%.3f\t%.0f\t%.0f\t%d\t%d\t%s%s\t\n", f.Contestant, m.Wall, m.CPU, m.PeakRSS, m.PeakUnique, m.Total, m.Writes, byVerb(m), noisy)
	}
}

// ordered is by case and phase, contestants as they ran.
func (r *Results) ordered() []*Figure {
	cases := map[string]int{}
	for _, f := range r.Figures {
		if _, ok := cases[f.Case]; !ok {
			cases[f.Case] = len(cases)
		}
	}
	out := slices.Clone(r.Figures)
	slices.SortStableFunc(out, func(a, b *Figure) int {
		if a.Case != b.Case {
			return cases[a.Case] - cases[b.Case]
		}
		return slices.Index(phases, a.Phase) - slices.Index(phases, b.Phase)
	})
	return out
}

func byVerb(s Sample) string {
	var out []string
	for _, verb := range s.Requests.Verbs() {
		out = append(out, fmt.Sprintf("%s %d", verb, s.Requests[verb]))
	}
	return strings.Join(out, ", ")
}

func (r *Results) printRatios(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	defer func() { _ = t.Flush() }() // into a buffer, whose own error is kept
	fmt.Fprintln(t, "\nratio (cert-manager)\tis\tat most\t")
	for _, name := range slices.Sorted(maps.Keys(r.Ratios)) {
		ratio := r.Ratios[name]
		met := "met"
		if !ratio.Met {
			met = "MISSED"
		}
		fmt.Fprintf(t, "%s\t%.3g\t%.3g\t%s\t\n", name, ratio.Value, ratio.Target, met)
	}
}
