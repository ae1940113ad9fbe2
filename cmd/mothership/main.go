// Command mothership installs, compares, verifies, renders and removes modules on Kubernetes clusters, and runs and asks control
// planes that do so for a fleet.
//
// It only joins what internal/cli has to the process that it runs in: arguments, streams, environment and signals. It may
// import the root package, controlplane and internal/cli.
package main

import (
	"os"
	"runtime/debug"

	"github.com/kyma-project/mothership"
	"github.com/kyma-project/mothership/controlplane"
	"github.com/kyma-project/mothership/internal/cli"
)

// version is stamped by the linker; see the Makefile.
var version string

func main() {
	// A child that renders must not do anything else: not even parse flags.
	if cli.IsRenderChild(os.Args) {
		os.Exit(mothership.RenderChild())
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
	os.Exit(run())
}

// collectAt is how many percent the heap may grow before it is collected. A command lives for a second and holds little:
// with cert-manager's chart, collecting as seldom as this takes a tenth off the time of an installation (measured against
// Go's default of 100), and its memory stays well below Helm's.
const collectAt = 400

// serving undoes that for a control plane, which lives long and holds a fleet.
func serving() {
	if os.Getenv("GOGC") == "" {
		controlplane.TuneGC()
	}
}

func run() int {
	ctx, stop := cli.Interruptible()
	defer stop()
	return cli.Run(ctx, cli.Process{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Getenv: os.Getenv, Executable: os.Executable, Version: version, Serving: serving,
	})
}
