package main

import (
	"github.com/kyma-project/mothership/bench/internal/contestant"
)

// Ratio is a figure with a target.
type Ratio struct {
	Value float64 `json:"value"`
	// Target is the most that it may be.
	Target float64 `json:"target"`
	Met    bool    `json:"met"`
}

// ratios are the ones that are asked for. Those whose contestants were left out are missing.
func ratios(r *Results) map[string]Ratio {
	out := map[string]Ratio{}
	add := func(name string, target float64, of func(c cell) (value float64, ok bool)) {
		if value, ok := of(func(name string, p phase) *Figure { return r.find(certManager, name, p) }); ok {
			out[name] = Ratio{Value: value, Target: target, Met: value <= target}
		}
	}
	wall := func(s Sample) float64 { return s.Wall }
	add("fresh_wall_vs_helm_cli", 0.5, quotient(mothershipCLI, helmCLI, fresh, wall))
	add("fresh_wall_vs_bare_loop", 1.1, quotient(contestant.Library, contestant.BareLoop, fresh, wall))
	add("unchanged_requests_over_kinds", 4, overKinds)
	add("unchanged_writes", 0, mostWrites)
	add("unchanged_requests_vs_fluxcd_ssa", 0.2, quotient(mothershipCLI, contestant.FluxSSA, unchanged, func(s Sample) float64 { return float64(s.Total) }))
	add("peak_memory_vs_helm_cli", 0.7, peaks)
	add("unchanged_wall_vs_kubectl", 0.3, quotient(mothershipCLI, kubectl, unchanged, wall))
	return out
}

// cell finds the figure of a contestant; nil if it was left out.
type cell func(contestant string, p phase) *Figure

// quotient of the medians of two contestants.
func quotient(ours, theirs string, p phase, of func(Sample) float64) func(cell) (float64, bool) {
	return func(c cell) (float64, bool) {
		a, b := c(ours, p), c(theirs, p)
		if a == nil || b == nil || of(b.Median) == 0 {
			return 0, false
		}
		return of(a.Median) / of(b.Median), true
	}
}

// overKinds is by how much the requests of a command that finds nothing to do exceed the number of the module's kinds.
func overKinds(c cell) (float64, bool) {
	f := c(mothershipCLI, unchanged)
	if f == nil {
		return 0, false
	}
	return float64(f.Median.Total - f.Kinds), true
}

// mostWrites is the largest number of writes, in any run, of the command or the library finding nothing to do.
func mostWrites(c cell) (float64, bool) {
	most, ok := 0, false
	for _, name := range []string{mothershipCLI, contestant.Library} {
		if f := c(name, unchanged); f != nil {
			ok = true
			for _, run := range f.Runs {
				most = max(most, run.Writes)
			}
		}
	}
	return float64(most), ok
}

// peaks compares the most memory that the two commands take in any of the phases.
func peaks(c cell) (float64, bool) {
	var ours, theirs float64
	for _, p := range phases {
		a, b := c(mothershipCLI, p), c(helmCLI, p)
		if a == nil || b == nil {
			return 0, false
		}
		ours, theirs = max(ours, a.Median.PeakRSS), max(theirs, b.Median.PeakRSS)
	}
	return ours / theirs, theirs > 0
}
