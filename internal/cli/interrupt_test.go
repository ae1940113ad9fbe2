package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kyma-project/mothership/internal/cli"
	"github.com/kyma-project/mothership/internal/infra/local"
	"github.com/kyma-project/mothership/internal/infra/local/localtest"
)

// manifests writes n ConfigMaps with a prefix to a new file.
func manifests(t *testing.T, prefix string, n int) string {
	t.Helper()
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s-%03d}\ndata: {key: value}\n", prefix, i)
	}
	file := filepath.Join(t.TempDir(), prefix+".yaml")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// names of the ConfigMaps of all modules in a namespace, by prefix.
func names(t *testing.T, srv *local.Server, namespace string) map[string]int {
	t.Helper()
	list, err := localtest.Client(t, srv).CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "applyset.kubernetes.io/part-of"})
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, item := range list.Items {
		prefix, _, _ := strings.Cut(item.Name, "-")
		counts[prefix]++
	}
	return counts
}

func TestKillInTheMiddleOfAnInstall(t *testing.T) {
	t.Parallel()
	const before, after, killAt = 20, 400, 5
	srv := localtest.Server(t)
	namespace := localtest.Namespace(t, srv)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	old, young := manifests(t, "old", before), manifests(t, "young", after)
	flags := []string{"install", "--kubeconfig", localtest.Kubeconfig(t, srv), "--name", "killed", "--namespace", namespace, "-f"}
	run(ctx, t, append(flags, old)...)

	cmd := exec.CommandContext(ctx, program(t), append(flags, young)...)
	events, err := localtest.Client(t, srv).CoreV1().ConfigMaps(namespace).Watch(ctx, metav1.ListOptions{LabelSelector: "applyset.kubernetes.io/part-of"})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	start(t, cmd)
	awaitAdded(ctx, t, events, before+killAt)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if n := names(t, srv, namespace); n["old"] != before || n["young"] < killAt || n["young"] >= after {
		t.Fatalf("killed with %v: not in the middle, or something was pruned before everything was applied", n)
	}

	t.Log(run(ctx, t, append(flags, old)...))
	if n := names(t, srv, namespace); n["old"] != before || n["young"] != 0 {
		t.Errorf("after going back there are %v, want %d old ones only", n, before)
	}
	run(ctx, t, append(flags, young)...)
	if n := names(t, srv, namespace); n["old"] != 0 || n["young"] != after {
		t.Errorf("after going on there are %v, want %d young ones only", n, after)
	}
	run(ctx, t, "uninstall", "--kubeconfig", localtest.Kubeconfig(t, srv), "--name", "killed", "--namespace", namespace)
	if n := names(t, srv, namespace); len(n) != 0 {
		t.Errorf("after uninstalling there are %v", n)
	}
}

// awaitAdded returns when a number of objects have been added since the watch began; those that exist come first.
func awaitAdded(ctx context.Context, t *testing.T, events watch.Interface, n int) {
	t.Helper()
	for added := 0; added < n; {
		select {
		case e, ok := <-events.ResultChan():
			if !ok {
				t.Fatal("the watch ended")
			}
			if e.Type == watch.Added {
				added++
			}
		case <-ctx.Done():
			t.Fatalf("only %d of %d objects came", added, n)
		}
	}
}

const neverReady = `apiVersion: apps/v1
kind: Deployment
metadata: {name: never}
spec:
  selector: {matchLabels: {app: never}}
  template:
    metadata: {labels: {app: never}}
    spec: {containers: [{name: c, image: example.com/none}]}
`

func TestInterrupt(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			code, stderr := interrupt(t, signal)
			if want := 128 + int(signal); code != want {
				t.Errorf("exit code %d, want %d", code, want)
			}
			for _, want := range []string{"error: waiting until halted is ready: interrupted", "hint: what was done stays: the same command goes on from there"} {
				if !strings.Contains(stderr, want) {
					t.Errorf("stderr does not say %q:\n%s", want, stderr)
				}
			}
		})
	}
}

// interrupt starts an install that waits for ever and interrupts it as soon as it waits.
func interrupt(t *testing.T, signal syscall.Signal) (code int, stderr string) {
	t.Helper()
	srv := localtest.Server(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program(t), "install", "--kubeconfig", localtest.Kubeconfig(t, srv),
		"--name", "halted", "--namespace", localtest.Namespace(t, srv), "-f", "-", "--wait")
	cmd.Stdin = strings.NewReader(neverReady)
	pipe, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	start(t, cmd)
	lines := bufio.NewReader(pipe)
	first, err := lines.ReadString('\n')
	if err != nil || !strings.Contains(first, "waiting for Deployment.apps") {
		t.Fatalf("stderr begins with %q (%v), want what is waited for", first, err)
	}
	if err := cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(lines)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("it ended as if nothing had happened")
	}
	return cmd.ProcessState.ExitCode(), string(rest)
}

// TestInterruptWhileReading interrupts a render that waits for the rest of its input, as at a terminal.
func TestInterruptWhileReading(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program(t), "render", "--name", "web", "--namespace", "demo", "-f", "-")
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	start(t, cmd)
	// More than a pipe holds: once it is written, the program is reading.
	if _, err := input.Write(bytes.Repeat([]byte("# comment\n"), 20_000)); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 || !strings.Contains(stderr.String(), "interrupted\n") {
		t.Errorf("exit code %d, stderr:\n%s", code, stderr.String())
	}
}

func TestIsRenderChild(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want bool
	}{
		{[]string{"mothership", "__render"}, true},
		{[]string{"mothership", "render"}, false},
		{[]string{"mothership", "__render", "x"}, false},
		{[]string{"mothership"}, false},
	} {
		if got := cli.IsRenderChild(c.args); got != c.want {
			t.Errorf("IsRenderChild(%q) = %v, want %v", c.args, got, c.want)
		}
	}
}
