package cli_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kyma-project/mothership"
	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/cli"
	"github.com/kyma-project/mothership/internal/infra/local"
	"github.com/kyma-project/mothership/internal/infra/local/localtest"
)

var update = flag.Bool("update", false, "write what the scripts compare with")

// TestMain makes this test binary a command `mothership` too, for scripts and for its own children.
func TestMain(m *testing.M) {
	testscript.Main(withServer{m}, map[string]func(){"mothership": command})
}

type withServer struct{ m *testing.M }

func (w withServer) Run() int {
	code := localtest.Main(w.m)
	if err := closePlane(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	return code
}

// command is what cmd/mothership does.
func command() {
	if cli.IsRenderChild(os.Args) {
		os.Exit(mothership.RenderChild())
	}
	ctx, stop := cli.Interruptible()
	defer stop()
	os.Exit(cli.Run(ctx, cli.Process{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Getenv: os.Getenv, Executable: os.Executable, Version: "v0.0.0-test",
	}))
}

// TestScript runs testdata/script/*.txtar. Beside testscript's own commands there are:
//
//	cluster NAME     use the real API server that all scripts share, and kubectl; namespace NAME is the script's own, and is
//	                 deleted at its end
//	plane NAME       use the control plane that all scripts share; namespace NAME, in $NS, is the script's own
//	serve [NAME]     serve the script's folder at $URL; with a name over https at $NAME, whose authority is NAME.pem
//	registry NAME [PASSWORD]
//	                 run an OCI registry at $NAME, which asks user me for the password; its authority is NAME.pem
//	git NAME DIR     commit a folder, tag it v1, and serve it at https://$NAME/repo.git; its authority is NAME.pem
//	down NAME…       end servers (HTTP is that of $URL)
//	code N COMMAND…  run a command that must exit with N
//	scrub FILE       copy stdout, stderr or a file to "scrubbed", with what changes from run to run replaced
//
// -update writes the files that scripts compare with (cmp). Scripts run in parallel with each other only, so that a second
// run (-count) finds their namespaces gone.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", UpdateScripts: *update, RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error {
			e.Values[serversKey{}] = servers{}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"cluster":  func(ts *testscript.TestScript, _ bool, args []string) { useCluster(t, ts, args) },
			"plane":    func(ts *testscript.TestScript, _ bool, args []string) { usePlane(t, ts, args) },
			"code":     code,
			"serve":    serveFiles,
			"registry": serveRegistry,
			"git":      serveGit,
			"down":     down,
			"scrub":    scrub,
		},
	})
}

func useCluster(t *testing.T, ts *testscript.TestScript, args []string) {
	t.Helper()
	if len(args) != 1 {
		ts.Fatalf("usage: cluster NAME")
	}
	srv := localtest.Server(t)
	assets, err := local.Assets()
	ts.Check(err)
	data, err := srv.Kubeconfig()
	ts.Check(err)
	work := ts.Getenv("WORK")
	kubeconfig := filepath.Join(work, "kubeconfig")
	ts.Check(os.WriteFile(kubeconfig, data, 0o600))
	ts.Setenv("KUBECONFIG", kubeconfig)
	ts.Setenv("HOME", work)
	ts.Setenv("PATH", ts.Getenv("PATH")+string(os.PathListSeparator)+assets)
	ts.Defer(func() { ts.Check(cleanUp(filepath.Join(assets, "kubectl"), kubeconfig, args[0])) })
}

// cleanUp deletes a script's namespace and what mothership-system knows of the modules in it.
func cleanUp(kubectl, kubeconfig, namespace string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	run := func(args ...string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, kubectl, append([]string{"--kubeconfig", kubeconfig}, args...)...)
		cmd.Env = []string{"HOME=" + filepath.Dir(kubeconfig)}
		return cmd.CombinedOutput()
	}
	if out, err := run("delete", "namespace", namespace, "--ignore-not-found"); err != nil {
		return fmt.Errorf("deleting namespace %s: %w: %s", namespace, err, out)
	}
	out, err := run("-n", v1beta2.SystemNamespace, "get", "configmaps", "-o", "name")
	if err != nil {
		return fmt.Errorf("listing what is left: %w: %s", err, out)
	}
	for _, name := range strings.Fields(string(out)) {
		if !strings.HasPrefix(name, "configmap/"+namespace+".") {
			continue
		}
		if out, err := run("-n", v1beta2.SystemNamespace, "delete", name); err != nil {
			return fmt.Errorf("deleting %s: %w: %s", name, err, out)
		}
	}
	return nil
}

func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N COMMAND…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// changing is what differs from run to run, and what stands for it.
var changing = []struct {
	form *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`sha256:[0-9a-f]{64}`), "sha256:…"},
	{regexp.MustCompile(`"durationNanoseconds": \d+`), `"durationNanoseconds": 0`},
	{regexp.MustCompile(`durationNanoseconds: \d+`), `durationNanoseconds: 0`},
	{regexp.MustCompile(`"requests": \{[^}]*\}`), `"requests": {}`},
	{regexp.MustCompile(`(?m)^requests:\n(  .*\n)+`), "requests: {}\n"},
	{regexp.MustCompile(`hmac-sha256:[0-9a-f]{64}`), "hmac-sha256:…"},
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "TIME"},
	{regexp.MustCompile(`observedGeneration: \d+`), "observedGeneration: N"},
	{regexp.MustCompile(`resourceVersion: "\d+"`), `resourceVersion: "N"`},
	{regexp.MustCompile(`"resourceVersion": "\d+"`), `"resourceVersion": "N"`},
	{regexp.MustCompile(`\b(\d+m)?\d+s( {2,})`), "AGO   "},
	{regexp.MustCompile(`\bfor (\d+m)?\d+s\b`), "for AGO"},
	{regexp.MustCompile(`(?m)\b(\d+m)?\d+s$`), "AGO"},
	{regexp.MustCompile(`UID/\d+`), "UID/N"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "127.0.0.1:PORT"},
	{regexp.MustCompile(`\d+ requests`), "N requests"},
	{regexp.MustCompile(`\b(\d+ min )?\d+(\.\d)? s\b`), "T s"},
	{regexp.MustCompile(`\b(linux|darwin)/\w+`), "OS/ARCH"},
	{regexp.MustCompile(`go1\.\d+(\.\d+)?`), "go1.N"},
	{regexp.MustCompile(`v0\.0\.0-test \((commit [0-9a-f]+, )?`), "v0.0.0-test ("},
}

func scrub(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: scrub FILE")
	}
	text := strings.ReplaceAll(ts.ReadFile(args[0]), ts.Getenv("WORK"), "$WORK")
	for _, c := range changing {
		text = c.form.ReplaceAllString(text, c.with)
	}
	ts.Check(os.WriteFile(ts.MkAbs("scrubbed"), []byte(text), 0o600))
}

// program is the path of the command for tests that handle its process themselves.
func program(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("mothership")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// start starts the program. Its process ends with the test.
func start(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
}

// run runs the program to its end and returns what it wrote to both streams; the test fails when the program does.
func run(ctx context.Context, t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(ctx, program(t), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("mothership %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}
