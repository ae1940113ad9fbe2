package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/kyma-project/mothership/bench/internal/arena"
	"github.com/kyma-project/mothership/bench/internal/measure"
	"github.com/kyma-project/mothership/bench/internal/workload"
)

const (
	certManager     = "cert-manager"
	generatedPrefix = "module-"
)

// comparison is one run of this program.
type comparison struct {
	options  options
	tools    tools
	entrants []entrant
	arena    *arena.Arena
	folder   string
	progress io.Writer
	results  *Results
}

// compare makes all runs of all cases.
func compare(ctx context.Context, o options, progress io.Writer) (_ *Results, err error) {
	c := &comparison{options: o, progress: progress, results: &Results{Rig: measure.ThisRig(compared)}}
	if c.entrants, err = chosen(o.contestants); err != nil {
		return nil, err
	}
	if c.tools, err = findTools(ctx, o, progress); err != nil {
		return nil, err
	}
	if c.folder, err = os.MkdirTemp("", "bench-apply-"); err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(c.folder) }()
	cases, err := c.cases(ctx)
	if err != nil {
		return nil, err
	}
	var users []string
	for _, e := range c.entrants {
		users = append(users, user(e))
	}
	if c.arena, err = arena.Start(ctx, c.folder, users); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.arena.Close()) }()
	return c.results, c.all(ctx, cases)
}

// cases are those that are asked for.
func (c *comparison) cases(ctx context.Context) ([]workload.Case, error) {
	names := c.options.cases
	if len(names) == 0 {
		names = []string{certManager, "module-10", "module-100", "module-1000"}
	}
	var out []workload.Case
	for _, name := range names {
		var next workload.Case
		n, err := strconv.Atoi(strings.TrimPrefix(name, generatedPrefix))
		switch {
		case name == certManager:
			next, err = workload.CertManager(ctx)
		case strings.HasPrefix(name, generatedPrefix) && err == nil && n >= 4: // the fourth can be damaged
			next, err = workload.Generated(c.folder, n)
		default:
			err = fmt.Errorf("case %q: %w: it is cert-manager, or module-N with N of at least 4", name, errUsage)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, next)
	}
	return out, nil
}

func (c *comparison) all(ctx context.Context, cases []workload.Case) error {
	version, err := c.arena.Version(ctx)
	if err != nil {
		return err
	}
	c.results.Rig.Versions["kubernetes"] = version
	first := 0
	if c.options.quick {
		first = 1
	}
	for _, next := range cases {
		runs := c.runsOf(next)
		for round := first; round <= runs; round++ {
			for _, e := range c.entrants {
				fmt.Fprintf(c.progress, "%s: run %d of %d: %s\n", next.Name, round, runs, e.name)
				if err := c.once(ctx, next, e, round); err != nil {
					return fmt.Errorf("%s: run %d: %s: %w", next.Name, round, e.name, err)
				}
			}
		}
	}
	c.results.conclude()
	return nil
}

// steadier is how many times as often the case that the targets are for is run: how long the server takes until it serves a
// definition varies by a third, and medians of five with it.
const steadier = 3

func (c *comparison) runsOf(next workload.Case) int {
	if next.Name == certManager && !c.options.quick {
		return steadier * c.options.runs
	}
	return c.options.runs
}

// once is one contestant's turn: it installs, installs again, repairs, and then all is removed. Round 0 is not counted.
func (c *comparison) once(ctx context.Context, next workload.Case, e entrant, round int) (err error) {
	r, err := next.Render(ctx, fmt.Sprintf("%s-%s-%d", next.Name, e.name, round))
	if err != nil {
		return err
	}
	s, err := c.prepare(r, e)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(s.folder) }()
	defer func() {
		if err == nil {
			err = c.arena.Clean(ctx, r)
		}
	}()
	for _, p := range phases {
		s.phase = p
		sample, err := c.turn(ctx, e, s)
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		if round > 0 {
			c.results.add(r, e.name, p, sample)
		}
	}
	return nil
}

// prepare writes the files that a contestant is given.
func (c *comparison) prepare(r *workload.Rendered, e entrant) (start, error) {
	s := start{
		tools: c.tools, rendered: r, home: filepath.Join(c.folder, "home-"+e.name),
		folder: filepath.Join(c.folder, r.Namespace), profiles: c.options.profiles,
	}
	s.kubeconfig = filepath.Join(s.home, "kubeconfig")
	for _, dir := range []string{s.home, s.folder} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return s, fmt.Errorf("preparing: %w", err)
		}
	}
	return s, errors.Join(
		c.arena.WriteKubeconfig(user(e), s.kubeconfig),
		r.WriteObjects(objectsFile(s.folder)), r.WriteManifests(manifestsFile(s.folder)),
	)
}

var errNotRepaired = errors.New("it is not as the module says")

// turn is one phase of one contestant.
func (c *comparison) turn(ctx context.Context, e entrant, s start) (Sample, error) {
	if s.phase == repair {
		if err := c.arena.Damage(ctx, s.rendered); err != nil {
			return Sample{}, err
		}
	}
	quiet := false
	if !c.options.quick {
		var err error
		if quiet, err = measure.Quiet(ctx); err != nil {
			return Sample{}, err
		}
	}
	sample, err := e.measured(ctx, s)
	if err != nil {
		return sample, err
	}
	sample.Noisy = !quiet
	requests, err := c.arena.Count(ctx, user(e))
	if err != nil {
		return sample, err
	}
	sample.Requests, sample.Total, sample.Writes = requests, requests.Total(), requests.Writes()
	if repaired, err := c.arena.Repaired(ctx, s.rendered); err != nil || !repaired {
		return sample, errors.Join(err, errNotRepaired)
	}
	return sample, c.arena.Complete(ctx, s.rendered)
}
