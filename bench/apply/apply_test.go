package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/kyma-project/mothership/bench/internal/arena"
	"github.com/kyma-project/mothership/bench/internal/contestant"
)

// TestMain lets the test's executable be a contestant, as the program's is.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == childArgument {
		main()
	}
	os.Exit(m.Run())
}

// buildMothership builds the command that is measured.
func buildMothership(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "mothership")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", file, "./cmd/mothership")
	cmd.Dir = filepath.Join("..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building mothership: %v\n%s", err, out)
	}
	return file
}

// TestQuickComparison makes one run of all contestants. Times say nothing in a test; numbers of requests do.
func TestQuickComparison(t *testing.T) {
	t.Parallel()
	o, err := parse([]string{"-quick", "-mothership", buildMothership(t)})
	if err != nil {
		t.Fatal(err)
	}
	results, err := compare(t.Context(), o, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	if err := results.print(t.Output()); err != nil {
		t.Fatal(err)
	}
	if want := len(entrants()) * len(phases); len(results.Figures) != want {
		t.Errorf("%d figures; want %d", len(results.Figures), want)
	}
	for _, f := range results.Figures {
		if m := f.Median; m.Wall <= 0 || m.CPU <= 0 || m.PeakRSS <= 0 || m.Total <= 0 {
			t.Errorf("%s, %s: something was not measured: %+v", f.Contestant, f.Phase, m)
		}
	}
	for _, name := range []string{"unchanged_writes", "unchanged_requests_over_kinds", "unchanged_requests_vs_fluxcd_ssa"} {
		if r, ok := results.Ratios[name]; !ok || !r.Met {
			t.Errorf("%s is %+v (%t)", name, r, ok)
		}
	}
	checkCounts(t, results)
}

// checkCounts compares what was counted with what is known of contestants.
func checkCounts(t *testing.T, results *Results) {
	t.Helper()
	for _, tt := range []struct {
		contestant string
		phase      phase
		writes     func(f *Figure) int
	}{
		{contestant.BareLoop, fresh, func(f *Figure) int { return f.Objects + 1 }}, // and the namespace
		{contestant.BareLoop, unchanged, func(f *Figure) int { return f.Objects + 1 }},
		{kubectl, unchanged, func(f *Figure) int { return f.Objects + 1 }},
		{contestant.FluxSSA, unchanged, func(*Figure) int { return 0 }},
		{contestant.FluxSSA, repair, func(*Figure) int { return 1 }},
		{mothershipCLI, repair, func(*Figure) int { return 1 }},
		{contestant.Library, repair, func(*Figure) int { return 1 }},
	} {
		f := results.find(certManager, tt.contestant, tt.phase)
		if f == nil || f.Median.Writes != tt.writes(f) {
			t.Errorf("%s, %s: %+v; want another number of writes", tt.contestant, tt.phase, f)
		}
	}
}

func TestMedian(t *testing.T) {
	t.Parallel()
	runs := []Sample{
		{Wall: 3, Requests: arena.Requests{"get": 1}}, {Wall: 1, Requests: arena.Requests{"get": 5}},
		{Wall: 10, Requests: arena.Requests{"get": 2}},
	}
	if m := medianOf(runs); m.Wall != 3 || m.Requests["get"] != 2 {
		t.Errorf("of three runs: %+v", m)
	}
	if m := medianOf(runs[:2]); m.Wall != 2 || m.Requests["get"] != 3 {
		t.Errorf("of two runs: %+v", m)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	o, err := parse([]string{"-runs", "2", "-cases", "cert-manager,module-10", "-contestants", "kubectl"})
	if err != nil || o.runs != 2 || !slices.Equal(o.cases, []string{"cert-manager", "module-10"}) || o.out == "" {
		t.Errorf("%+v, %v", o, err)
	}
	if quick, err := parse([]string{"-quick"}); err != nil || quick.out != "" || quick.runs != 1 {
		t.Errorf("-quick: %+v, %v; want one run that writes no file", quick, err)
	}
	for _, args := range [][]string{{"-runs", "0"}, {"more"}} {
		if _, err := parse(args); err == nil {
			t.Errorf("%v was accepted", args)
		}
	}
	if _, err := chosen([]string{"nobody"}); err == nil {
		t.Error("an unknown contestant was accepted")
	}
}
