// Command apply compares installing a module by Mothership, as a command and as a library, with Helm (as a command and as a
// library), kubectl apply --server-side, fluxcd/pkg/ssa, and a bare loop of PATCH requests: on one real API server, in one run,
// round by round in turn. It prints a table and writes all figures to results/apply.json. The README beside it says what
// is measured how.
//
// It may import what is in bench/internal, and the root module's public library.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/kyma-project/mothership/bench/internal/contestant"
)

// childArgument makes the process one contestant that is a library.
const childArgument = "contestant"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) == 2 && os.Args[1] == childArgument {
		os.Exit(contestant.Main(ctx, os.Stdin, os.Stdout, os.Stderr))
	}
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// options of a comparison.
type options struct {
	// runs of each contestant in each case, after one that is not counted; three times as many of cert-manager's.
	runs int
	// cases and contestants are names; all if empty.
	cases, contestants []string
	// quick leaves out the run that is not counted, and the waiting for a quiet machine.
	quick bool
	// mothership is the executable.
	mothership string
	// out is the file of the results; none if empty.
	out string
	// profiles is the folder for profiles of the library; none if empty.
	profiles string
}

var errUsage = errors.New("wrong command line")

func parse(args []string) (options, error) {
	var o options
	var cases, contestants string
	fs := flag.NewFlagSet("apply", flag.ContinueOnError)
	fs.IntVar(&o.runs, "runs", 5, "runs of each contestant in each case, after one that is not counted; three times as many of cert-manager's")
	fs.StringVar(&cases, "cases", "", "cases, separated by commas (default all): cert-manager, module-N for a generated module of N objects")
	fs.StringVar(&contestants, "contestants", "", "contestants, separated by commas (default all): "+strings.Join(names(), ", "))
	fs.BoolVar(&o.quick, "quick", false, "one run of cert-manager that says little about times")
	fs.StringVar(&o.mothership, "mothership", "../bin/mothership", "the executable to measure")
	fs.StringVar(&o.out, "out", "results/apply.json", "file for the results; none if empty")
	fs.StringVar(&o.profiles, "profiles", "", "folder for processor and allocation profiles of the library's runs; profiling slows them down")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	if fs.NArg() > 0 || o.runs < 1 {
		return o, fmt.Errorf("%w: see -help", errUsage)
	}
	o.cases, o.contestants = split(cases), split(contestants)
	if o.quick {
		o.runs, o.cases = 1, []string{certManager}
		if o.out == "results/apply.json" {
			o.out = "" // it is no result
		}
	}
	return o, nil
}

func split(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	results, err := compare(ctx, o, os.Stderr)
	if err != nil {
		return err
	}
	if err := results.print(os.Stdout); err != nil || o.out == "" {
		return err
	}
	return results.write(o.out)
}
