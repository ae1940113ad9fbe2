// Package contestant has the contestants that are libraries. Each runs in a process of its own, so that its caches are cold,
// and its memory and processor time are its own.
//
// It may import what it compares: the root module's public library, Helm's SDK, fluxcd/pkg/ssa, and client-go.
package contestant

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/kyma-project/mothership/bench/internal/measure"
	"github.com/kyma-project/mothership/bench/internal/workload"
)

// Names of the contestants.
const (
	Library  = "library"
	HelmSDK  = "helm-sdk"
	FluxSSA  = "fluxcd-ssa"
	BareLoop = "bare-loop"
)

// Job is what a process is to do; it reads it from stdin.
type Job struct {
	// Contestant is one of the names.
	Contestant string
	// Kubeconfig is the file that leads to the cluster.
	Kubeconfig string
	// Case and Namespace say what goes where.
	Case      workload.Case
	Namespace string
	// Objects is the file of the rendered objects, for those that do not render.
	Objects string
	// Upgrade says that the module is there already.
	Upgrade bool
	// CPUProfile is the file to write a profile to; none if empty.
	CPUProfile string
	// MemProfile is the file to write a profile of allocations to; none if empty.
	MemProfile string
}

// Result is what a process took for its job, without its own start; it writes it to stdout.
type Result struct {
	// Wall is the time from having a configuration of the cluster to the end.
	Wall time.Duration
	// CPU is user and system time within that.
	CPU time.Duration
}

var errUnknown = errors.New("no such contestant")

// Main is the whole of such a process. It returns the exit code.
func Main(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) int {
	r, err := run(ctx, stdin)
	if err == nil {
		err = json.NewEncoder(stdout).Encode(r)
	}
	if err != nil {
		fmt.Fprintln(stderr, "error:", err)
		return 1
	}
	return 0
}

func run(ctx context.Context, stdin io.Reader) (*Result, error) {
	var j Job
	if err := json.NewDecoder(stdin).Decode(&j); err != nil {
		return nil, fmt.Errorf("reading the job: %w", err)
	}
	do, err := prepare(j)
	if err != nil {
		return nil, err
	}
	stop, err := startProfile(j.CPUProfile)
	if err != nil {
		return nil, err
	}
	start, cpu := time.Now(), measure.CPUTime()
	err = do(ctx)
	r := &Result{Wall: time.Since(start), CPU: measure.CPUTime() - cpu}
	if err := errors.Join(stop(), writeMemProfile(j.MemProfile)); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", j.Contestant, err)
	}
	return r, nil
}

// prepare reads what is at hand before the clock starts, and returns what is measured.
func prepare(j Job) (func(context.Context) error, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", j.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", j.Kubeconfig, err)
	}
	cfg.QPS = -1 // those that limit themselves set their own
	switch j.Contestant {
	case Library:
		return func(ctx context.Context) error { return installByLibrary(ctx, cfg, j) }, nil
	case HelmSDK:
		return func(ctx context.Context) error { return installByHelm(ctx, j) }, nil
	}
	objects, err := workload.ReadObjects(j.Objects)
	if err != nil {
		return nil, err
	}
	switch j.Contestant {
	case BareLoop:
		return func(ctx context.Context) error { return applyInLoop(ctx, cfg, objects) }, nil
	case FluxSSA:
		return Flux(cfg, objects)
	}
	return nil, fmt.Errorf("%q: %w", j.Contestant, errUnknown)
}

// startProfile profiles processor time until the returned function is called.
func startProfile(file string) (stop func() error, err error) {
	if file == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(file)
	if err != nil {
		return nil, fmt.Errorf("writing a profile: %w", err)
	}
	runtime.SetCPUProfileRate(1000) // a run takes a fraction of a second
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}

func writeMemProfile(file string) error {
	if file == "" {
		return nil
	}
	f, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("writing a profile: %w", err)
	}
	return errors.Join(pprof.Lookup("allocs").WriteTo(f, 0), f.Close())
}
