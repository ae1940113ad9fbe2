// Command fleet measures a control plane over a fleet of simulated clusters: what a fleet costs that is as it should be, what a
// restart costs, how long a change takes to its runtime, what an upgrade of all takes, and whom sick runtimes harm.
//
// The control plane and the simulator run in processes of their own, which are this program too (see child.go), so that the memory
// and processor time of each are its own. bench/README.md says how it is measured.
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
const limit = 2 * time.Hour

func main() {
	if err := begin(); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

// begin is the benchmark, or one of the processes that it measures.
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
	// clusters, modules and objects are the size of the fleet: objects are those of each module.
	clusters, modules, objects int
	// turns is how many windows of changes there are, and how often upgrade and bare loop take turns.
	turns int
	// changes is how many there are in each window, rate how many of them a second.
	changes, rate int
	// idle is how long the fleet is looked at while nothing happens, sick how long sick runtimes are.
	idle, sick time.Duration
	// verify is the interval of verification while verifications are counted.
	verify time.Duration
	// slope also measures a tenth of the fleet.
	slope bool
	// join has all runtimes join, and not only a sample.
	join bool
	// quick waits for no quiet machine.
	quick bool
	out   string
	// check makes missed targets an error.
	check    bool
	profiles string
}

// Names of the parts. Seeding and the restart always are made.
const (
	partIdle    = "idle"
	partVerify  = "verify"
	partBurst   = "burst"
	partChange  = "change"
	partUpgrade = "upgrade"
	partSick    = "sick"
)

var allParts = []string{partIdle, partVerify, partChange, partUpgrade, partBurst, partSick}

var errUsage = errors.New("wrong command line")

func parse(args []string) (options, error) {
	var o options
	var parts string
	fs := flag.NewFlagSet("fleet", flag.ContinueOnError)
	fs.StringVar(&parts, "parts", strings.Join(allParts, ","), "parts, separated by commas, beside the restart")
	fs.IntVar(&o.clusters, "clusters", 100, "runtimes of the fleet")
	fs.IntVar(&o.modules, "modules", 10, "modules of each runtime")
	fs.IntVar(&o.objects, "objects", 20, "objects of each module, five at least")
	fs.IntVar(&o.changes, "changes", 400, "changes of Kymas in each window, one of each Kyma at most")
	fs.IntVar(&o.rate, "rate", 20, "changes per second")
	fs.IntVar(&o.turns, "turns", 3, "windows of changes, and upgrades; medians are taken of them")
	fs.BoolVar(&o.check, "check", false, "fail where a figure misses its target")
	fs.DurationVar(&o.idle, "idle", 2*time.Minute, "how long the idle fleet is looked at")
	fs.DurationVar(&o.sick, "sick", 2*time.Minute, "how long requests to sick runtimes are counted after they were noticed, for which there is as long at most")
	fs.DurationVar(&o.verify, "verify", 0, "interval of verification while they are counted; 0: as short as the machine can do with ease")
	fs.BoolVar(&o.slope, "slope", true, "measure the memory of a tenth of the fleet too")
	fs.BoolVar(&o.join, "join", false, "have all runtimes join; without it, a sample does, and the rest is written down as the control plane would")
	fs.BoolVar(&o.quick, "quick", false, "short windows, on a machine that may be busy: says little about times")
	fs.StringVar(&o.out, "out", "", "file for the results; none if empty")
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
		o.changes, o.turns, o.idle, o.sick = min(o.changes, 100), 1, 10*time.Second, 15*time.Second
	}
	if o.verify == 0 {
		o.verify = verifyInterval(o)
	}
	if fs.NArg() > 0 || min(o.clusters, o.modules, o.changes, o.rate, o.turns) < 1 || o.objects < fewestObjects {
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
	if results == nil {
		return err
	}
	err = errors.Join(err, results.print(os.Stdout))
	if o.out != "" {
		err = errors.Join(err, report.Write(o.out, results))
	}
	if o.check {
		err = errors.Join(err, results.check())
	}
	return err
}
