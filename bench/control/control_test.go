package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/bench/internal/arena"
	"github.com/kyma-project/mothership/bench/internal/report"
)

// TestMain lets the test's executable be the control plane, as the program's is.
func TestMain(m *testing.M) {
	if kinds.Asked(os.Args) != nil {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestQuickRun makes the parts that count as well as measure. Times say nothing in a test; numbers of requests and objects do.
func TestQuickRun(t *testing.T) {
	t.Parallel()
	o, err := parse([]string{"-quick", "-parts", "drift,install,restart"})
	if err != nil {
		t.Fatal(err)
	}
	o.drifts, o.modules, o.watch = 4, 3, time.Second
	results, err := measureAll(t.Context(), o, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	if err := results.print(t.Output()); err != nil {
		t.Fatal(err)
	}
	if n := len(results.Drift.Samples); n != o.drifts || slices.Min(results.Drift.Samples) <= 0 {
		t.Errorf("times of drift: %v; want %d", results.Drift.Samples, o.drifts)
	}
	if len(results.Installs) != 1 {
		t.Fatalf("%d installations", len(results.Installs))
	}
	if i := results.Installs[0]; i.Wall <= 0 || i.CPU <= 0 || i.PeakRSS < i.RestRSS || i.RestRSS <= 0 || i.KymaBytes == 0 || i.Requests["apply"] < o.modules*objectsEach {
		t.Errorf("something was not measured: %+v", i)
	}
	for _, name := range []string{"restart_requests", "restart_writes_watched"} {
		if r, ok := results.Ratios[name]; !ok || !r.Met {
			t.Errorf("%s is %+v (%t)", name, r, ok)
		}
	}
	if run := results.Restarts[1]; run.Drift != v1beta2.DriftWatch || run.Requests["watch"] == 0 || run.Ready <= 0 {
		t.Errorf("a watched runtime was not watched after the restart: %+v", run)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	o, err := parse([]string{"-parts", "change,restart", "-runs", "2"})
	if err != nil || o.runs != 2 || o.out != defaultOut || !slices.Equal(o.parts, []string{partChange, partRestart}) {
		t.Errorf("%+v, %v", o, err)
	}
	if quick, err := parse([]string{"-quick"}); err != nil || quick.out != "" {
		t.Errorf("-quick: %+v, %v; want a run that writes no file", quick, err)
	}
	for _, args := range [][]string{{"-parts", "nothing"}, {"-modules", "0"}, {"-modules", "1025"}, {"more"}} {
		if _, err := parse(args); !errors.Is(err, errUsage) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestConclusions(t *testing.T) {
	t.Parallel()
	r := Results{
		Change: &Latency{}, Drift: &Latency{}, Field: published,
		Installs: []Install{{Wall: 50, PeakRSS: 300}, {Wall: 100, PeakRSS: 100}, {Wall: 40, PeakRSS: 150}},
		Restarts: []Restart{{Drift: v1beta2.DriftPoll, Total: 1, Requests: arena.Requests{"get": 1}}, {Drift: v1beta2.DriftWatch, Total: 7}},
	}
	for i := range 200 {
		r.Change.add(time.Duration(i+1) * time.Millisecond)
	}
	r.conclude()
	want := map[string]Ratio{
		"change_to_object_p50_ms": {100, 150, true}, "change_to_object_p99_ms": {198, 500, true},
		"install_1000_seconds": {50, 90, true}, "install_1000_peak_mib": {150, 200, true}, "install_1000_seconds_vs_field": {50.0 / 279, 1, true},
		"restart_requests": {1, 0, false}, "restart_writes_watched": {0, 0, true},
	}
	if diff := cmp.Diff(want, r.Ratios); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	file := filepath.Join(t.TempDir(), "results", "control.json")
	if err := report.Write(file, &r); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Size() == 0 {
		t.Errorf("%v, %v", info, err)
	}
}
