// Command control measures the control plane: how long it takes from a change to the object in the runtime and from drift to its
// end, 1,000 modules on one runtime, and what a restart costs when there is nothing to do.
//
// The control plane runs in a process of its own, which is this program too (see child.go), so that its memory and processor time
// are the controller's alone. Servers and runtimes are real. bench/README.md says how it is measured.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kyma-project/mothership/bench/internal/report"
)

// limit bounds the whole program.
const limit = 45 * time.Minute

func main() {
	if err := begin(); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

// begin is the benchmark, or the control plane that it measures.
func begin() error {
	ctrl.SetLogger(logr.Discard())
	if run := kinds.Asked(os.Args); run != nil {
		return run()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return run(ctx, os.Args[1:])
}

// options are those of the command line.
type options struct {
	parts []string
	// changes, drifts and modules are how many there are of each; runs is how often the modules are installed.
	changes, drifts, modules, runs int
	// watch is how long requests are counted after a restart.
	watch time.Duration
	// quick waits for no quiet machine.
	quick    bool
	out      string
	profiles string
}

// Names of the parts.
const (
	partChange  = "change"
	partDrift   = "drift"
	partInstall = "install"
	partRestart = "restart"
)

var allParts = []string{partChange, partDrift, partInstall, partRestart}

var errUsage = errors.New("wrong command line")

const defaultOut = "results/control.json"

func parse(args []string) (options, error) {
	var o options
	var parts string
	fs := flag.NewFlagSet("control", flag.ContinueOnError)
	fs.StringVar(&parts, "parts", strings.Join(allParts, ","), "parts, separated by commas")
	fs.IntVar(&o.changes, "changes", 250, "changes of a Kyma")
	fs.IntVar(&o.drifts, "drifts", 240, "edits and deletions in the runtime")
	fs.IntVar(&o.modules, "modules", 1000, "modules that are installed at once, of four objects each")
	fs.IntVar(&o.runs, "runs", 3, "how often they are installed, each time into a new fleet")
	fs.DurationVar(&o.watch, "watch", 30*time.Second, "how long requests are counted after a restart")
	fs.BoolVar(&o.quick, "quick", false, "a few of everything, on a machine that may be busy: says little about times")
	fs.StringVar(&o.out, "out", defaultOut, "file for the results; none if empty")
	fs.StringVar(&o.profiles, "profiles", "", "folder for processor and heap profiles of the control plane; profiling slows it down")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	o.parts = strings.Split(parts, ",")
	for _, p := range o.parts {
		if !slices.Contains(allParts, p) {
			return o, fmt.Errorf("%w: there is no part %q, only %s", errUsage, p, strings.Join(allParts, ", "))
		}
	}
	if o.quick {
		o.changes, o.drifts, o.modules, o.runs, o.watch = 10, 10, 50, 1, 2*time.Second
		if o.out == defaultOut {
			o.out = "" // it is no result
		}
	}
	if fs.NArg() > 0 || min(o.changes, o.drifts, o.modules, o.runs) < 1 || o.modules > maxModules {
		return o, fmt.Errorf("%w: see -help", errUsage)
	}
	return o, nil
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	results, err := measureAll(ctx, o, os.Stderr)
	if err != nil {
		return err
	}
	if err := results.print(os.Stdout); err != nil || o.out == "" {
		return err
	}
	return report.Write(o.out, results)
}
