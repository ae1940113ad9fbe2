package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes this test binary the command itself, for scripts and for the children that it starts.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"mothership": main})
}

// TestCommand shows that main joins the parts: flags, streams, exit codes and the child process that renders. What the
// commands do is tested in internal/cli.
func TestCommand(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{Dir: "testdata/script", RequireExplicitExec: true, RequireUniqueNames: true})
}
