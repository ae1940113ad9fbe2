package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/kyma-project/mothership/internal/infra/local"
)

// stage is the API server that the play is performed on.
type stage struct {
	server     *local.Server
	dir        string
	kubeconfig string
	kubectl    string
	begun      time.Time
	acts       int
}

// startStage starts a real API server with workload controllers and a simulated node.
func startStage(ctx context.Context) (*stage, error) {
	begun := time.Now()
	assets, err := local.Assets()
	if err != nil {
		return nil, err
	}
	server, err := local.Start(ctx, local.Options{Controllers: local.WorkloadControllers, Nodes: true})
	if err != nil {
		return nil, err
	}
	s := &stage{server: server, kubectl: filepath.Join(assets, "kubectl"), begun: begun}
	if err := s.writeKubeconfig(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	fmt.Printf("a real kube-apiserver with etcd and controllers is up after %s; its node and pods are simulated\n", since(begun))
	return s, nil
}

func (s *stage) writeKubeconfig() error {
	data, err := s.server.Kubeconfig()
	if err != nil {
		return err
	}
	if s.dir, err = os.MkdirTemp("", "mothership-demo-"); err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	s.kubeconfig = filepath.Join(s.dir, "kubeconfig")
	if err := os.WriteFile(s.kubeconfig, data, 0o600); err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	return nil
}

// close stops the server and removes what the demo wrote.
func (s *stage) close() error {
	err := s.server.Close()
	if s.dir != "" {
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	return err
}

// perform types an act's commands and shows what comes of them.
func (s *stage) perform(ctx context.Context, a act) error {
	s.acts++
	fmt.Printf("\n── %d. %s\n", s.acts, a.title)
	for i, command := range a.commands {
		want := 0
		if i == len(a.commands)-1 {
			want = a.code
		}
		if err := s.typed(ctx, command, want); err != nil {
			return err
		}
	}
	if a.note != "" {
		fmt.Println("   " + a.note)
	}
	return nil
}

// typed runs one command and prints it as a terminal would show it.
func (s *stage) typed(ctx context.Context, command string, want int) error {
	fmt.Printf("   $ %s\n", shown(command))
	begun := time.Now()
	out, code, err := s.output(ctx, command)
	if err != nil {
		return err
	}
	for _, line := range abridged(out) {
		fmt.Println("     " + line)
	}
	if code != want {
		return fmt.Errorf("%s: exit code %d, want %d", shown(command), code, want)
	}
	if code != 0 {
		fmt.Printf("     (exit code %d)\n", code)
	}
	fmt.Printf("     %s\n", since(begun))
	return nil
}

// abridged are the lines of an output; of a long one, the first and the last.
func abridged(out string) []string {
	const most, head, tail = 16, 8, 4
	lines := strings.Split(strings.TrimRight(out, "\n"), "\n")
	if len(lines) <= most {
		return lines
	}
	short := append([]string{}, lines[:head]...)
	short = append(short, fmt.Sprintf("… %d more lines", len(lines)-head-tail))
	return append(short, lines[len(lines)-tail:]...)
}

// output is what a command writes, and its exit code.
func (s *stage) output(ctx context.Context, command string) (string, int, error) {
	args := words(command)
	program := s.kubectl
	if args[0] == "mothership" {
		program = filepath.Join("bin", "mothership")
	}
	cmd := exec.CommandContext(ctx, program, args[1:]...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.kubeconfig)
	cmd.WaitDelay = 5 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && ctx.Err() == nil {
		return out.String(), exit.ExitCode(), nil
	}
	if err != nil {
		return "", 0, fmt.Errorf("running %s: %w", shown(command), err)
	}
	return out.String(), 0, nil
}

// finale shows that nothing is left in the cluster.
func (s *stage) finale(ctx context.Context) error {
	out, _, err := s.output(ctx, "kubectl get all,configmaps,secrets,customresourcedefinitions,clusterroles,validatingwebhookconfigurations -A -l applyset.kubernetes.io/part-of -o name")
	if err != nil {
		return err
	}
	if left := strings.TrimSpace(out); left != "" && left != "No resources found" {
		return fmt.Errorf("objects were left behind:\n%s", left)
	}
	fmt.Printf("\nNothing of the four modules is left. %d steps in %s. The server is stopped now; nothing stays running.\n", s.acts, since(s.begun))
	return nil
}

// certManagerChart is the folder of cert-manager's chart in its Go module, which the bench module pins, and its version without
// the v. It is downloaded and verified by Go, and never copied into the repository.
func certManagerChart(ctx context.Context) (chart, version string, err error) {
	const path = "github.com/cert-manager/cert-manager"
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", path)
	cmd.Dir = "bench"
	raw, err := cmd.Output()
	if err != nil {
		return "", "", fmt.Errorf("downloading the Go module %s: %w", path, err)
	}
	var module struct{ Dir, Version string }
	if err := json.Unmarshal(raw, &module); err != nil {
		return "", "", fmt.Errorf("downloading the Go module %s: %w", path, err)
	}
	chart = filepath.Join(module.Dir, "deploy", "charts", "cert-manager")
	if _, err := os.Stat(filepath.Join(chart, "Chart.yaml")); err != nil {
		return "", "", fmt.Errorf("the Go module %s has no chart: %w", path, err)
	}
	return chart, strings.TrimPrefix(module.Version, "v"), nil
}

// shown is a command without the long path of a module cache.
func shown(command string) string {
	args := words(command)
	for i, arg := range args {
		if at := strings.Index(arg, "/cert-manager@"); at >= 0 {
			args[i] = "…" + arg[at:]
		}
	}
	return strings.Join(args, " ")
}

func since(t time.Time) string { return fmt.Sprintf("%.1f s", time.Since(t).Seconds()) }
