package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kyma-project/mothership/sim"
)

// TestMain makes this test binary the command itself.
func TestMain(m *testing.M) { testscript.Main(m, map[string]func(){"mothership-sim": main}) }

// TestCommand runs the subcommands against a simulator, whose administration scripts know as $ADMIN.
func TestCommand(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error {
			s, err := sim.Start(t.Context(), sim.Config{})
			if err != nil {
				return err
			}
			e.Defer(s.Close)
			e.Setenv("ADMIN", s.AdminURL()[len("http://"):])
			return nil
		},
	})
}
