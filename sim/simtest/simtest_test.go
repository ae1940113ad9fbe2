package simtest_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kyma-project/mothership/internal/infra/local/localtest"
	"github.com/kyma-project/mothership/sim"
	"github.com/kyma-project/mothership/sim/simtest"
)

func TestMain(m *testing.M) { os.Exit(localtest.Main(m)) }

// TestConformance has the same conversations with the simulator and with a real API server, and compares the answers.
func TestConformance(t *testing.T) {
	t.Parallel()
	s, err := sim.Start(t.Context(), sim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if err := s.Add("eu-1"); err != nil {
		t.Fatal(err)
	}
	var got, want map[string][]simtest.Answer
	t.Run("Simulator", func(t *testing.T) { got = simtest.Run(t, s.Config("eu-1")) })
	t.Run("Real", func(t *testing.T) { want = simtest.Run(t, localtest.Server(t).Config()) })
	for _, scenario := range simtest.Scenarios() {
		t.Run("Equal"+scenario.Name, func(t *testing.T) {
			if len(got[scenario.Name]) != len(want[scenario.Name]) {
				t.Fatalf("%d and %d answers", len(got[scenario.Name]), len(want[scenario.Name]))
			}
			for i, w := range want[scenario.Name] {
				if diff := cmp.Diff(w, got[scenario.Name][i]); diff != "" {
					t.Errorf("%s (-real +simulated):\n%s", w.Do, diff)
				}
			}
		})
	}
}
