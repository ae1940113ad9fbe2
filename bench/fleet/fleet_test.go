package main

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// TestMain lets the test's executable be the other processes, as the program's is.
func TestMain(m *testing.M) {
	if kinds.Asked(os.Args) != nil {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestSmallFleet makes all parts but the sick. Times say nothing in a test; numbers of requests and objects do.
func TestSmallFleet(t *testing.T) {
	t.Parallel()
	o, err := parse([]string{"-quick", "-clusters", "3", "-modules", "2", "-objects", "6", "-parts", "idle,verify,change,upgrade,burst", "-changes", "3"})
	if err != nil {
		t.Fatal(err)
	}
	o.idle, o.verify = time.Second, 3*time.Second
	r, err := measureAll(t.Context(), o, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.print(t.Output()); err != nil {
		t.Fatal(err)
	}
	if n := r.Figures["restart_writes"]; n != 0 {
		t.Errorf("a restart with nothing to do writes %v times", n)
	}
	if w := r.Changes[0]; len(r.Changes) != 1 || w.Lost != 0 || len(w.Samples) != o.changes || w.P50 <= 0 || w.Share["etcd"] <= 0 {
		t.Errorf("changes: %+v", r.Changes)
	}
	if u := r.Upgrades[0]; u.Requests["apply"] < 4*o.objects || u.Before.Objects != 3*o.objects || u.After.Objects != 3*o.objects || u.Share[productShare] <= 0 {
		t.Errorf("upgrade: %+v", u)
	}
	if u := r.Burst; u.Operations != 6 || u.Requests["apply"] < 6 || r.Figures["predecessor_load_factor"] <= 0 {
		t.Errorf("burst: %+v", u)
	}
	if v := r.Verify; v.Made.Runtimes < 3 || v.Made.Each.Requests <= 0 || v.Field.Requests < float64(2*o.objects) {
		t.Errorf("verification: %+v, %+v; the field %+v", v, v.Made, v.Field)
	}
	if r.LogLines == 0 {
		t.Error("nothing was logged of any runtime")
	}
	s := r.Sizes[0]
	if s.Seed.Joined != 3 || s.Seed.Requests["get"]+s.Seed.Requests["list"] == 0 || s.Restart.Seconds <= 0 {
		t.Errorf("something was not measured: %+v, %+v", s.Seed, s.Restart)
	}
	if s.Idle.Peak < s.Idle.Resident || s.Idle.Resident <= 0 || s.Idle.Windows < 2 {
		t.Errorf("something was not measured: %+v", s.Idle)
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
		Clusters: 1000, Figures: map[string]float64{}, Changes: []Window{{P50: 50, P99: 99}, {P50: 70, P99: 400}, {P50: 40, P99: 90, Lost: 1}},
		Sizes: []Size{
			{Runtimes: 100, Idle: &Idle{Peak: 100}},
			{
				Runtimes: 1000, Restart: &Restart{Seconds: 12, Peak: 195, Requests: map[string]int{"get": 3, "apply": 2}},
				Idle: &Idle{Peak: 190, CPU: 10, QuietSeconds: 1, QuietCPU: 2, Connections: 7, Requests: map[string]int{"list": 5, "get": 1}},
			},
		},
		Verify: &Verify{
			Planned: spreadOf([]float64{9, 11}), Field: &Each{Requests: 60, CPU: 8, Wall: 30},
			Made: &Made{Spread: spreadOf([]float64{5, 15}), Runtimes: 1, Each: Each{Requests: 6, CPU: 2, Wall: 10}},
		},
		Upgrades: []Upgrade{{Product: Applied{Objects: 100, Seconds: 2, CPU: 4}, Before: loopOf(100, 0.5, 1), After: loopOf(100, 1.5, 3)}},
		Burst:    &Burst{Operations: 2000, Seconds: 10, Share: map[string]float64{productShare: 15}},
		Sick: &Sick{
			Runtimes: 10, Requests: &SickRequests{Requests: 40, Minutes: 2}, Each: &SickEach{LogLines: 3, StatusWrites: 1, Flapped: 2},
			Undisturbed: []Window{{P99: 900}, {P99: 80}, {P99: 90}}, Disturbed: []Window{{P99: 110}, {P99: 106}},
		},
	}
	r.conclude()
	want := map[string]float64{
		"rss_mib": 195, "rss_slope_kib": 1024 * 95. / 900, "idle_cpu_percent": 2, "verify_cpu_percent": 10, "idle_requests": 1, "connections_kept": 7,
		"restart_seconds": 12, "restart_writes": 2, "change_p50_ms": 50, "change_p99_ms": 99, "upgrade_cpu_ratio": 2,
		"upgrade_throughput_ratio": 0.5, "sick_p99_ratio": 1.2, "sick_requests_per_minute": 2, "sick_log_lines": 3, "sick_status_writes": 1,
		"sick_flapped": 2, "changes_lost": 1, "verify_cv": 0.5, "field_requests_ratio": 10, "field_cpu_ratio": 4, "field_wall_ratio": 3,
		"predecessor_load_factor": 1.5, // 2,000 operations by 15 s of a core, of which there are 0.75
	}
	if diff := cmp.Diff(want, r.Figures); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := r.check(); !errors.Is(err, errMissed) || !strings.Contains(err.Error(), "verify_cv") || strings.Contains(err.Error(), "rss_mib") {
		t.Errorf("missed: %v", err)
	}
	if err := r.print(t.Output()); err != nil {
		t.Error(err)
	}
}

// TestCompared: windows in which the API server has collected its garbage are left out where enough others are there.
func TestCompared(t *testing.T) {
	t.Parallel()
	windows := func(collections ...int) (out []Window) {
		for i, n := range collections {
			out = append(out, Window{P99: float64(i), Collections: n})
		}
		return out
	}
	for _, tc := range []struct {
		disturbed, undisturbed []Window
		d, u                   int
	}{
		{windows(0, 1, 0, 0), windows(0, 0, 0, 2, 1), 3, 3},
		{windows(0, 0, 0), windows(0, 0, 0), 3, 3},
		{windows(0, 1, 0), windows(0, 0, 0, 1), 3, 4}, // too few of the disturbed
		{windows(0, 0, 0), windows(1, 1, 0), 3, 3},
	} {
		if d, u := compared(tc.disturbed, tc.undisturbed); len(d) != tc.d || len(u) != tc.u {
			t.Errorf("%v and %v: %d and %d are compared, want %d and %d", tc.disturbed, tc.undisturbed, len(d), len(u), tc.d, tc.u)
		}
	}
}

// TestNothingMeasured: a figure that was not measured is not there.
func TestNothingMeasured(t *testing.T) {
	t.Parallel()
	r := Results{Clusters: 10, Figures: map[string]float64{}, Sizes: []Size{{Runtimes: 10}}, Verify: &Verify{}, Sick: &Sick{Runtimes: 2}}
	r.conclude()
	if len(r.Figures) != 0 || r.check() != nil {
		t.Errorf("%v, %v", r.Figures, r.check())
	}
	if err := r.print(t.Output()); err != nil {
		t.Error(err)
	}
}

func TestLinesOfTheSick(t *testing.T) {
	t.Parallel()
	log := "{\"runtime\":\"kcp-system/runtime-1\"}\n{\"runtime\":\"kcp-system/runtime-10\"}\nnothing\nruntime-10 runtime-2 runtime-2\n"
	n, err := linesOf(strings.NewReader(log), []string{"runtime-1", "runtime-2"})
	if err != nil || n != 2 {
		t.Errorf("%d lines, %v", n, err)
	}
}

// TestLedger books what is asked for and what is said of it apart.
func TestLedger(t *testing.T) {
	t.Parallel()
	l := &ledger{entries: map[string]*entry{}}
	write := func(generation, observed int64, reachable metav1.ConditionStatus) {
		k := &v1beta2.Kyma{ObjectMeta: metav1.ObjectMeta{Name: "a", Generation: generation}}
		k.Status.ObservedGeneration, k.Status.State = observed, v1beta2.StateReady
		k.Status.Conditions = []metav1.Condition{{Type: v1beta2.ConditionReachable, Status: reachable}}
		l.book(k)
	}
	write(2, 1, metav1.ConditionTrue)
	if ready, err := l.ready([]string{"a"}); ready || err != nil {
		t.Errorf("ready before it was seen: %v", err)
	}
	write(2, 1, metav1.ConditionFalse)
	write(2, 2, metav1.ConditionTrue)
	if ready, err := l.ready([]string{"a"}); !ready || err != nil {
		t.Errorf("not ready: %v", err)
	}
	if statuses, most, flapped := l.of([]string{"a", "b"}); statuses != 2 || most != 2 || flapped != 1 {
		t.Errorf("%d writes, at most %d; %d flapped", statuses, most, flapped)
	}
}

func loopOf(objects int, seconds, cpu float64) Loop {
	return Loop{Applied: Applied{Objects: objects, Seconds: seconds, CPU: cpu}}
}
