package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestMain lets the test's executable be the other processes, as the program's is.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && children[os.Args[1]] != nil {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestSmallFleet makes all parts but the sick. Times say nothing in a test; numbers of requests and objects do.
func TestSmallFleet(t *testing.T) {
	t.Parallel()
	o, err := parse([]string{"-quick", "-clusters", "3", "-modules", "2", "-objects", "6", "-parts", "idle,change,upgrade", "-changes", "6"})
	if err != nil {
		t.Fatal(err)
	}
	o.idle = time.Second
	results, err := measureAll(t.Context(), o, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	if err := results.print(t.Output()); err != nil {
		t.Fatal(err)
	}
	if n := results.Figures["restart_writes"]; n != 0 {
		t.Errorf("a restart with nothing to do writes %v times", n)
	}
	if w := results.Change; w.Lost != 0 || len(w.Samples) != o.changes || w.P50 <= 0 {
		t.Errorf("changes: %+v", w)
	}
	if u := results.Upgrade; u.Requests["apply"] < 4*o.objects || u.Loop.Objects != 3*o.objects {
		t.Errorf("upgrade: %+v", u)
	}
	if s := results.Sizes[0]; s.Runtimes != 3 || s.Peak < s.Resident || s.Resident <= 0 || s.SeedRequests["get"]+s.SeedRequests["list"] == 0 {
		t.Errorf("something was not measured: %+v", s)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	o, err := parse([]string{"-parts", "idle,sick", "-clusters", "1000"})
	if err != nil || o.clusters != 1000 || !slices.Equal(o.parts, []string{partIdle, partSick}) {
		t.Errorf("%+v, %v", o, err)
	}
	for _, args := range [][]string{{"-parts", "nothing"}, {"-clusters", "0"}, {"-objects", "4"}, {"more"}} {
		if _, err := parse(args); !errors.Is(err, errUsage) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestConclusions(t *testing.T) {
	t.Parallel()
	r := Results{
		Clusters: 1000, Figures: map[string]float64{}, Change: &Window{P50: 50, P99: 99},
		Sizes: []Size{
			{Runtimes: 100, Peak: 100, IdleSeconds: 1},
			{
				Runtimes: 1000, Peak: 190, IdleSeconds: 1, IdleCPU: 10, QuietSeconds: 1, QuietCPU: 2, Connections: 7, RestartSeconds: 12,
				IdleRequests: map[string]int{"list": 5, "get": 1}, RestartRequests: map[string]int{"get": 3, "apply": 2},
			},
		},
		Upgrade: &Upgrade{Product: Applied{Objects: 100, Seconds: 2, CPU: 4}, Loop: Applied{Objects: 100, Seconds: 1, CPU: 2}},
		Sick:    &Sick{Runtimes: 10, Requests: 40, Minutes: 2, Before: &Window{P99: 90}, During: &Window{P99: 120}, After: &Window{P99: 110}},
	}
	r.conclude()
	want := map[string]float64{
		"rss_mib": 190, "rss_slope_kib": 102.4, "idle_cpu_percent": 2, "verify_cpu_percent": 10, "idle_requests": 1, "connections_kept": 7,
		"restart_seconds": 12, "restart_writes": 2, "change_p50_ms": 50, "change_p99_ms": 99, "upgrade_cpu_ratio": 2,
		"upgrade_throughput_ratio": 0.5, "sick_p99_ratio": 1.2, "sick_requests_per_minute": 2,
	}
	if diff := cmp.Diff(want, r.Figures); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name := range want {
		if _, ok := targets[name]; !ok {
			t.Errorf("%s has no target", name)
		}
	}
	file := filepath.Join(t.TempDir(), "results", "fleet.json")
	if err := r.write(file); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Size() == 0 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestMetricsAreSummed(t *testing.T) {
	t.Parallel()
	got := sums("# HELP a b\na{phase=\"x\",y=\"1\"} 2\na{phase=\"x\",y=\"2\"} 3\na{phase=\"z\"} 1\nplain 4e0\n")
	want := map[string]float64{"a": 6, "a/x": 5, "a/z": 1, "plain": 4, "plain/": 4}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
