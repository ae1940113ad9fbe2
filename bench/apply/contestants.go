package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/kyma-project/mothership/bench/internal/contestant"
	"github.com/kyma-project/mothership/bench/internal/measure"
	"github.com/kyma-project/mothership/bench/internal/workload"
)

// The contestants that are commands.
const (
	mothershipCLI = "mothership"
	helmCLI       = "helm-cli"
	kubectl       = "kubectl"
)

// phase is what is done with a module that is installed.
type phase string

// The phases of a run, in their order.
const (
	fresh     phase = "fresh"
	unchanged phase = "unchanged"
	repair    phase = "repair"
)

var phases = []phase{fresh, unchanged, repair}

// start is what a contestant is started with.
type start struct {
	tools      tools
	rendered   *workload.Rendered
	phase      phase
	kubeconfig string
	// home has the caches that the contestant keeps between its runs; folder, the files of this run.
	home, folder string
	// profiles as in options.
	profiles string
}

// entrant is a contestant.
type entrant struct {
	name string
	// command is the process that does it.
	command func(s start) (*exec.Cmd, error)
	// library says that the process reports its own figures.
	library bool
}

func entrants() []entrant {
	return []entrant{
		{name: mothershipCLI, command: mothershipCommand},
		library(contestant.Library),
		{name: helmCLI, command: helmCommand},
		library(contestant.HelmSDK),
		{name: kubectl, command: kubectlCommand},
		library(contestant.FluxSSA),
		library(contestant.BareLoop),
	}
}

func names() []string {
	var out []string
	for _, e := range entrants() {
		out = append(out, e.name)
	}
	return out
}

// chosen are the contestants of the given names; all if there are none.
func chosen(only []string) ([]entrant, error) {
	for _, name := range only {
		if !slices.Contains(names(), name) {
			return nil, fmt.Errorf("contestant %q: %w: it is one of %v", name, errUsage, names())
		}
	}
	return slices.DeleteFunc(entrants(), func(e entrant) bool { return len(only) > 0 && !slices.Contains(only, e.name) }), nil
}

func user(e entrant) string { return "bench-" + e.name }

func mothershipCommand(s start) (*exec.Cmd, error) {
	c, namespace := s.rendered.Case, s.rendered.Namespace
	args := []string{"install", "--kubeconfig", s.kubeconfig, "--name", c.Name, "--namespace", namespace, "--chart", c.Chart}
	return exec.Command(s.tools.mothership, withSet(args, c)...), nil
}

func helmCommand(s start) (*exec.Cmd, error) {
	c := s.rendered.Case
	args := []string{"install", "--create-namespace"}
	if s.phase != fresh {
		args = []string{"upgrade"}
	}
	args = append(args, c.Name, c.Chart, "--kubeconfig", s.kubeconfig, "--namespace", s.rendered.Namespace,
		"--no-hooks", "--force-conflicts")
	return exec.Command(s.tools.helm, withSet(args, c)...), nil
}

func withSet(args []string, c workload.Case) []string {
	for _, set := range c.Set {
		args = append(args, "--set", set)
	}
	return args
}

func kubectlCommand(s start) (*exec.Cmd, error) {
	return exec.Command(s.tools.kubectl, "apply", "--server-side", "--force-conflicts", "--kubeconfig", s.kubeconfig,
		"-f", manifestsFile(s.folder)), nil
}

func manifestsFile(folder string) string { return filepath.Join(folder, "manifests.yaml") }
func objectsFile(folder string) string   { return filepath.Join(folder, "objects.json") }

// library is a contestant that runs in a process of this executable.
func library(name string) entrant {
	return entrant{name: name, library: true, command: func(s start) (*exec.Cmd, error) {
		j := contestant.Job{
			Contestant: name, Kubeconfig: s.kubeconfig, Case: s.rendered.Case, Namespace: s.rendered.Namespace,
			Objects: objectsFile(s.folder), Upgrade: s.phase != fresh,
		}
		if s.profiles != "" && name == contestant.Library {
			stem := filepath.Join(s.profiles, s.rendered.Namespace+"-"+string(s.phase))
			j.CPUProfile, j.MemProfile = stem+".cpu.pprof", stem+".mem.pprof"
		}
		body, err := json.Marshal(j)
		if err != nil {
			return nil, fmt.Errorf("writing the job: %w", err)
		}
		cmd := exec.Command(s.tools.self, childArgument)
		cmd.Stdin = bytes.NewReader(body)
		return cmd, nil
	}}
}

// runTimeout bounds one process.
const runTimeout = 5 * time.Minute

// measured runs a contestant once.
func (e entrant) measured(ctx context.Context, s start) (Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	cmd, err := e.command(s)
	if err != nil {
		return Sample{}, err
	}
	cmd.Env = []string{"HOME=" + s.home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + s.folder}
	u, err := measure.Run(ctx, cmd)
	if err != nil {
		return Sample{}, err
	}
	out := Sample{
		Wall: u.Wall.Seconds(), CPU: u.CPU.Seconds(),
		PeakRSS: float64(u.PeakRSS) / (1 << 20), PeakUnique: float64(u.PeakUnique) / (1 << 20),
	}
	if e.library {
		var r contestant.Result
		if err := json.Unmarshal(u.Stdout, &r); err != nil {
			return Sample{}, fmt.Errorf("reading what %s reports: %w", e.name, err)
		}
		out.Wall, out.CPU = r.Wall.Seconds(), r.CPU.Seconds()
	}
	return out, nil
}
