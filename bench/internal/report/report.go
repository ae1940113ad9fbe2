// Package report writes the results of benchmarks, as files and as tables.
//
// It may import bench/internal/measure.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/kyma-project/mothership/bench/internal/measure"
)

// Write writes results as JSON; folders are made.
func Write(file string, results any) error {
	data, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}

// Table writes what section prints, cells ended by tabs, in columns. Errors are left to the writer.
func Table(w io.Writer, section func(io.Writer)) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	section(t)
	_ = t.Flush() // the writer keeps its error
}

// Rig says in a line what was measured on.
func Rig(w io.Writer, r measure.Rig) {
	fmt.Fprintf(w, "%s, %d cores, %d MiB, %s, %s, %s; load at the start %.1f\n", r.CPU, r.Cores, r.MemoryMiB, r.OS, r.Go, r.Date, r.Load)
}

// Verbs lists numbers of requests, and their sum.
func Verbs(requests map[string]int) string {
	var out []string
	sum := 0
	for _, verb := range slices.Sorted(maps.Keys(requests)) {
		out = append(out, fmt.Sprintf("%s %d", verb, requests[verb]))
		sum += requests[verb]
	}
	return strings.Join(append(out, fmt.Sprintf("(%d)", sum)), " ")
}
