package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kyma-project/mothership/internal/infra/local/localtest"
	"github.com/kyma-project/mothership/internal/statedir"
)

// upTimeout bounds each of the tests that start a control plane of their own.
const upTimeout = 2 * time.Minute

// tryRun runs the program to its end and returns its exit code and what it wrote to both streams.
func tryRun(ctx context.Context, t *testing.T, args ...string) (code int, out string) {
	t.Helper()
	return inEnv{}.tryRun(ctx, t, args...)
}

// inEnv is what is added to the environment of the program.
type inEnv []string

func (env inEnv) tryRun(ctx context.Context, t *testing.T, args ...string) (code int, out string) {
	t.Helper()
	cmd := exec.CommandContext(ctx, program(t), args...)
	cmd.Env = append(os.Environ(), env...)
	data, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(data)
}

// run wants the program to succeed, and returns what it wrote.
func (env inEnv) run(ctx context.Context, t *testing.T, args ...string) string {
	t.Helper()
	code, out := env.tryRun(ctx, t, args...)
	wants(t, code, out, 0)
	return out
}

// wants checks an exit code and parts of an output.
func wants(t *testing.T, code int, out string, wantCode int, parts ...string) {
	t.Helper()
	if code != wantCode {
		t.Errorf("exit code %d, want %d:\n%s", code, wantCode, out)
	}
	for _, part := range parts {
		if !strings.Contains(out, part) {
			t.Errorf("the output does not say %q:\n%s", part, out)
		}
	}
}

// children are the processes whose command line names a folder.
func children(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(files) == 0 {
		t.Fatalf("looking for processes: %d found, %v", len(files), err)
	}
	var out []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err == nil && bytes.Contains(data, []byte(dir)) {
			out = append(out, string(bytes.ReplaceAll(data, []byte{0}, []byte{' '})))
		}
	}
	return out
}

// downAtEnd removes a control plane of a test that failed.
func downAtEnd(t *testing.T, dir string) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), upTimeout)
		defer cancel()
		if out, err := exec.CommandContext(ctx, program(t), "down", "--dir", dir).CombinedOutput(); err != nil {
			t.Errorf("cleaning up: %v\n%s", err, out)
		}
	})
}

// TestUpInTheBackground is the life of a control plane in the background: started, found by its default folder, refused twice,
// stopped with its state kept, started again with what it had, and removed without anything being left.
func TestUpInTheBackground(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), upTimeout)
	defer cancel()
	state := t.TempDir()
	env, dir := inEnv{"XDG_STATE_HOME=" + state, "MOTHERSHIP_KUBECONFIG="}, filepath.Join(state, "mothership")
	downAtEnd(t, dir)

	out := env.run(ctx, t, "up", "--detach", "--runtimes", "1", "--log-level", "debug", "--catalog", smallCatalog(t))
	wants(t, 0, out, 0, "The control plane is ready.", "kubeconfig  "+filepath.Join(dir, "kubeconfig"), "mothership module enable local-1 web", "mothership down")
	wants(t, 0, env.run(ctx, t, "get", "kyma"), 0, "local-1   regular")
	wants(t, 0, env.run(ctx, t, "get", "runtimes"), 0, "local-1   local")
	wants(t, 0, env.run(ctx, t, "get", "catalog"), 0, "web      1.0.0     regular")
	for _, args := range [][]string{{"up"}, {"up", "--detach"}} {
		code, out := env.tryRun(ctx, t, args...)
		wants(t, code, out, 1, "error: opening the state folder "+dir+": the state folder is in use", "hint: mothership down --keep stops what uses it (process ")
	}
	checkLog(t, filepath.Join(dir, statedir.Log))

	wants(t, 0, env.run(ctx, t, "down", "--keep"), 0, "stopped the control plane (process ")
	wants(t, 0, env.run(ctx, t, "down", "--keep"), 0, "no control plane runs from "+dir)
	if left := children(t, dir); len(left) > 0 {
		t.Errorf("processes are left: %q", left)
	}
	code, out := env.tryRun(ctx, t, "get", "kyma", "--kubeconfig", filepath.Join(dir, "kubeconfig"))
	wants(t, code, out, 1, "the control plane does not answer")

	env.run(ctx, t, "up", "--detach", "-q")
	wants(t, 0, env.run(ctx, t, "get", "kyma"), 0, "local-1   regular")
	wants(t, 0, env.run(ctx, t, "down"), 0, "stopped the control plane (process ", "removed "+dir)
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("after down the folder is there: %v", err)
	}
	wants(t, 0, env.run(ctx, t, "down"), 0, "nothing to remove: "+dir+" does not exist")
}

// smallCatalog is a catalogue of one module.
func smallCatalog(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	const web = `{"apiVersion": "operator.kyma-project.io/v1beta2", "kind": "ModuleTemplate", "metadata": {"name": "web-1.0.0"},
		"spec": {"moduleName": "web", "version": "1.0.0", "source": {"manifests": {"path": "."}}}}
---
{"apiVersion": "operator.kyma-project.io/v1beta2", "kind": "ModuleReleaseMeta", "metadata": {"name": "web"},
		"spec": {"moduleName": "web", "channels": [{"channel": "regular", "version": "1.0.0"}]}}
`
	if err := os.WriteFile(filepath.Join(dir, "web.yaml"), []byte(web), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// checkLog checks that every line of a log is JSON: nobody else writes there.
func checkLog(t *testing.T, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range bytes.Lines(data) {
		n++
		var entry struct{ Level, Msg string }
		if err := json.Unmarshal(line, &entry); err != nil || entry.Level == "" || entry.Msg == "" {
			t.Errorf("a stray line in the log: %s", line)
		}
	}
	if n == 0 {
		t.Error("nothing was logged")
	}
}

// TestUpInTheForeground stops one by SIGTERM, which is orderly and no failure, kills one, and removes what that left.
func TestUpInTheForeground(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), upTimeout)
	defer cancel()
	dir := filepath.Join(t.TempDir(), "state")
	downAtEnd(t, dir)

	cmd, stderr := startUp(ctx, t, dir)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v\n%s", err, stderr)
	}
	if left := children(t, dir); len(left) > 0 {
		t.Errorf("processes are left: %q", left)
	}

	cmd, _ = startUp(ctx, t, dir)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	wants(t, 0, run(ctx, t, "down", "--dir", dir), 0, "removed the control plane's state from "+dir+"; the folder stays for what else is in it: notes.txt")
	if left := children(t, dir); len(left) > 0 {
		t.Errorf("processes are left: %q", left)
	}
	code, out := tryRun(ctx, t, "down", "--dir", dir)
	wants(t, code, out, 1, "error: stopping the control plane of "+dir+": it is not a state folder of mothership up", "hint: nothing was touched")
	code, out = tryRun(ctx, t, "up", "--dir", dir)
	wants(t, code, out, 1, "it is not a state folder of mothership up, and it is not empty", "hint: name a folder that is new or empty with --dir")
	if err := os.RemoveAll(dir); err != nil { // for downAtEnd
		t.Fatal(err)
	}
}

// startUp starts a control plane in the foreground and returns when it says that it is ready.
func startUp(ctx context.Context, t *testing.T, dir string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	cmd := exec.CommandContext(ctx, program(t), "up", "--dir", dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	start(t, cmd)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || line != "The control plane is ready.\n" {
		t.Fatalf("it says %q (%v), want that it is ready; stderr:\n%s", line, err, stderr.String())
	}
	return cmd, &stderr
}

// TestUpThatFails says in the background why it ended, as it does in the foreground.
func TestUpThatFails(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), upTimeout)
	defer cancel()
	dir := filepath.Join(t.TempDir(), "state")
	downAtEnd(t, dir)
	for _, args := range [][]string{{"up"}, {"up", "--detach"}} {
		code, out := tryRun(ctx, t, append(args, "--dir", dir, "--assets", t.TempDir())...)
		wants(t, code, out, 1, "error: starting the control plane: ", "run make kube")
	}
	code, out := tryRun(ctx, t, "up", "--detach", "--dir", dir, "--assets", t.TempDir())
	wants(t, code, out, 1, "the control plane ended before it was ready", "hint: its log is "+filepath.Join(dir, statedir.Log))
}

// TestController runs the controllers over the API of another cluster until SIGTERM.
func TestController(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), upTimeout)
	defer cancel()
	srv := localtest.Start(t)
	kubeconfig := localtest.Kubeconfig(t, srv)
	cmd := exec.CommandContext(ctx, program(t), "controller", "--kubeconfig", kubeconfig, "--source-root", t.TempDir())
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	start(t, cmd)
	lines := bufio.NewScanner(stderr)
	for ready := false; !ready && lines.Scan(); {
		ready = strings.Contains(lines.Text(), `"msg":"The control plane is ready"`)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	wants(t, 0, run(ctx, t, "runtime", "add", "eu-1", "--provider", "local", "--kubeconfig", kubeconfig), 0, "eu-1: added (local)")
	run(ctx, t, "wait", "runtime", "eu-1", "--for=state=Error", "--kubeconfig", kubeconfig)
	wants(t, 0, run(ctx, t, "get", "runtimes", "--kubeconfig", kubeconfig), 0, `this control plane has no provider "local"`)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
		if !strings.HasPrefix(lines.Text(), "{") {
			t.Errorf("a stray line: %s", lines.Text())
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
}

// TestWatchPrintsChanges follows a Kyma through its life, a line or a document for each change.
func TestWatchPrintsChanges(t *testing.T) {
	t.Parallel()
	kubeconfig := sharedPlane(t)
	fleet := func(args ...string) []string { return append(args, "--kubeconfig", kubeconfig, "-n", "default") }
	for _, c := range []struct {
		name string
		args []string
		want []string
	}{
		{"Lines", []string{"get", "kyma", "watched-lines", "-w"}, []string{"NAME", "watched-lines", "suspended", "(gone)"}},
		{"Documents", []string{"get", "kyma", "watched-documents", "-w", "-o", "json"}, []string{`"kind":"Kyma"`, `"suspend":true`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			name := c.args[2]
			cmd := exec.CommandContext(ctx, program(t), fleet(c.args...)...)
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			start(t, cmd)
			lines := bufio.NewScanner(stdout)
			steps := [][]string{
				{"runtime", "add", name, "--provider", "local"}, {"suspend", name}, {"runtime", "forget", name, "--yes"},
			}
			if c.name == "Documents" { // it says nothing as long as there is nothing
				run(ctx, t, fleet(steps[0]...)...)
				steps = steps[1:]
			}
			for _, want := range c.want {
				for lines.Scan() && !strings.Contains(lines.Text(), want) {
				}
				if !strings.Contains(lines.Text(), want) {
					t.Fatalf("it never said %q: %v", want, lines.Err())
				}
				if len(steps) > 0 {
					run(ctx, t, fleet(steps[0]...)...)
					steps = steps[1:]
				}
			}
			if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("after SIGINT: %v", err)
			}
		})
	}
}
