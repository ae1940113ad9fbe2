package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/kyma-project/mothership/bench/internal/arena"
	"github.com/kyma-project/mothership/bench/internal/measure"
	"github.com/kyma-project/mothership/bench/internal/workload"
)

// Results are what apply.json holds.
type Results struct {
	Rig measure.Rig `json:"rig"`
	// Ratios are those that the targets are for, of cert-manager's chart, by name.
	Ratios  map[string]Ratio `json:"ratios"`
	Figures []*Figure        `json:"figures"`
}

// Figure is one phase of one contestant in one case.
type Figure struct {
	Case string `json:"case"`
	// Objects and Kinds of the module, without its namespace.
	Objects    int    `json:"objects"`
	Kinds      int    `json:"kinds"`
	Contestant string `json:"contestant"`
	Phase      phase  `json:"phase"`
	// Median of the runs, figure by figure.
	Median Sample   `json:"median"`
	Runs   []Sample `json:"runs"`
}

// Sample is what one run took.
type Sample struct {
	// Wall is the time in seconds: of the whole process for a command, of the call for a library.
	Wall float64 `json:"wallSeconds"`
	// CPU is user and system time in seconds, likewise, with that of child processes.
	CPU float64 `json:"cpuSeconds"`
	// PeakRSS is the most memory, in MiB, that the process and its children had together.
	PeakRSS float64 `json:"peakRSSMiB"`
	// PeakUnique is the same, with pages that they share counted once.
	PeakUnique float64 `json:"peakUniqueMiB"`
	// Requests by verb, their number, and the number of those that can change something.
	Requests arena.Requests `json:"requests"`
	Total    int            `json:"requestsTotal"`
	Writes   int            `json:"writes"`
	// Noisy says that the machine was not quiet when the run began.
	Noisy bool `json:"noisy,omitempty"`
}

func (r *Results) add(w *workload.Rendered, contestant string, p phase, s Sample) {
	f := r.find(w.Case.Name, contestant, p)
	if f == nil {
		f = &Figure{Case: w.Case.Name, Objects: len(w.Objects) - 1, Kinds: w.Kinds, Contestant: contestant, Phase: p}
		r.Figures = append(r.Figures, f)
	}
	f.Runs = append(f.Runs, s)
}

func (r *Results) find(name, contestant string, p phase) *Figure {
	for _, f := range r.Figures {
		if f.Case == name && f.Contestant == contestant && f.Phase == p {
			return f
		}
	}
	return nil
}

// conclude computes the medians and ratios.
func (r *Results) conclude() {
	for _, f := range r.Figures {
		f.Median = medianOf(f.Runs)
	}
	r.Ratios = ratios(r)
}

func medianOf(runs []Sample) Sample {
	out := Sample{
		Wall: median(runs, func(s Sample) float64 { return s.Wall }),
		CPU:  median(runs, func(s Sample) float64 { return s.CPU }), PeakRSS: median(runs, func(s Sample) float64 { return s.PeakRSS }),
		PeakUnique: median(runs, func(s Sample) float64 { return s.PeakUnique }),
		Total:      median(runs, func(s Sample) int { return s.Total }), Writes: median(runs, func(s Sample) int { return s.Writes }),
		Requests: arena.Requests{},
	}
	for _, run := range runs {
		for verb := range run.Requests {
			out.Requests[verb] = median(runs, func(s Sample) int { return s.Requests[verb] })
		}
		out.Noisy = out.Noisy || run.Noisy
	}
	return out
}

// median of a figure; of an even number of runs, the mean of the two in the middle.
func median[T int | float64](runs []Sample, of func(Sample) T) T {
	values := make([]T, len(runs))
	for i, s := range runs {
		values[i] = of(s)
	}
	slices.SortFunc(values, cmp.Compare)
	if n := len(values); n%2 == 0 {
		return (values[n/2-1] + values[n/2]) / 2
	}
	return values[len(values)/2]
}

func (r *Results) write(file string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}
