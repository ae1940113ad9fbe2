package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/controlplane"
	"github.com/kyma-project/mothership/internal/statedir"
)

const aboutUp = `
Starts a control plane on this machine: a real kube-apiserver and etcd as child processes, and the controllers in this one.
Runtimes of provider "local" become real API servers too, with controllers and simulated nodes: pods get Ready and run
nothing. All state is in one folder, from which the next start goes on; mothership down removes it.

It runs until Ctrl-C or SIGTERM, ends in order then, with exit code 0, and leaves no process behind. With --detach it goes on
in the background, and the command returns when it is ready.
`

const exampleUp = `
  mothership up --runtimes 3
  mothership up --detach --runtimes 1 && mothership get runtimes --watch`

// upFlags are those of up.
type upFlags struct {
	logFlags
	dir      string
	runtimes int
	detach   bool
	readyFD  int
	offers   offerFlags
	config   controlplane.Config
	local    controlplane.Local
}

// maxRuntimes bounds --runtimes: each takes some 300 MiB.
const maxRuntimes = 50

func (a *app) up() *cobra.Command {
	f := &upFlags{}
	cmd := a.verb("up [flags]", "Start a control plane with local runtimes on this machine", aboutUp, exampleUp, nil,
		func(cmd *cobra.Command, _ []string) error { return a.runUp(cmd, f) })
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.dir, "dir", "", "the state folder `DIR` (default: $XDG_STATE_HOME/mothership, else ~/.local/state/mothership)")
	fs.IntVar(&f.runtimes, "runtimes", 0, "make local runtimes local-1 to local-`N`, with Kymas, where they do not exist")
	fs.BoolVarP(&f.detach, "detach", "d", false, "go on in the background, and return when it is ready; it logs to DIR/"+statedir.Log)
	fs.IntVar(&f.local.Port, "port", 0, "`PORT` of its API server on 127.0.0.1 (default: that of the last start, else a free one)")
	fs.StringVar(&f.local.Assets, "assets", "", "`DIR` of the Kubernetes executables (default: $KUBEBUILDER_ASSETS, else what make kube has built)")
	f.offers.addTo(fs)
	serveFlags(cmd, &f.config)
	f.logFlags.addTo(cmd)
	fs.BoolVar(&f.file, "log-file", false, "log to DIR/"+statedir.Log+" instead of stderr")
	fs.IntVar(&f.readyFD, readyFlag, 0, "")
	hide(cmd, readyFlag)
	return cmd
}

func (a *app) runUp(cmd *cobra.Command, f *upFlags) error {
	if err := f.check(cmd); err != nil {
		return err
	}
	dir, err := a.stateDir(f.dir)
	if err != nil {
		return err
	}
	f.local.Dir, f.config.Local = dir, &f.local
	if err := f.config.Validate(); err != nil {
		return usage(cmd, "%v", err)
	}
	if f.detach {
		return a.detach(cmd, f, dir)
	}
	return a.upHere(cmd, f, dir)
}

func (f *upFlags) check(cmd *cobra.Command) error {
	switch {
	case f.runtimes < 0 || f.runtimes > maxRuntimes:
		return usage(cmd, "--runtimes %d: it is a number from 0 to %d", f.runtimes, maxRuntimes)
	case f.local.Port < 0 || f.local.Port > 65535:
		return usage(cmd, "--port %d: it is a number from 0 to 65535", f.local.Port)
	}
	return f.logFlags.check(cmd)
}

// stateDir is the state folder, as an absolute path.
func (a *app) stateDir(named string) (string, error) {
	if named == "" {
		return statedir.Default(a.p.Getenv)
	}
	dir, err := filepath.Abs(named)
	if err != nil {
		return "", fmt.Errorf("finding the state folder: %w", err)
	}
	return dir, nil
}

// refused says what helps where a state folder cannot be used.
func refused(err error, dir string) error {
	switch {
	case errors.Is(err, statedir.ErrInUse):
		text := "mothership down --keep stops what uses it"
		if pid := statedir.Running(dir); pid != 0 {
			text += fmt.Sprintf(" (process %d)", pid)
		}
		return &hintedError{err: err, hint: text}
	case errors.Is(err, statedir.ErrForeign):
		return &hintedError{err: err, hint: "name a folder that is new or empty with --dir"}
	}
	return err
}

// upHere runs the control plane in this process.
func (a *app) upHere(cmd *cobra.Command, f *upFlags, dir string) (err error) {
	folder, err := statedir.Open(dir)
	if err != nil {
		return refused(err, dir)
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	log, closeLog, err := a.openLog(&f.logFlags, dir)
	if err != nil {
		return fmt.Errorf("opening the log: %w", err)
	}
	defer func() { err = errors.Join(err, closeLog()) }()
	f.config.Log = log
	if f.config.RenderCommand, err = a.renderCommand(); err != nil {
		return fmt.Errorf("finding this program for a child process: %w", err)
	}
	a.tell("starting a control plane in " + dir)
	return a.serve(cmd.Context(), f.config, func(cp *controlplane.ControlPlane) error {
		if err := a.offer(cmd.Context(), cp.Config(), &f.offers, controlplane.DefaultNamespace); err != nil {
			return err
		}
		if err := a.addLocal(cmd.Context(), cp, f.runtimes); err != nil {
			return err
		}
		if f.readyFD > 0 {
			return tellReady(f.readyFD)
		}
		return a.greet(dir, f.runtimes)
	})
}

// addLocal makes local runtimes and their Kymas where they do not exist.
func (a *app) addLocal(ctx context.Context, cp *controlplane.ControlPlane, n int) error {
	fl, err := a.newFleet(cp.Config(), controlplane.DefaultNamespace)
	if err != nil {
		return err
	}
	for i := range n {
		name := fmt.Sprintf("local-%d", i+1)
		for _, obj := range []client.Object{newRuntime(fl.namespace, name, "local", ""), newKyma(fl.namespace, name, "regular")} {
			if err := fl.create(ctx, obj); err != nil && !apierrors.IsAlreadyExists(err) {
				return problemOfAPI("making "+kindOf(obj)+" "+name, err)
			}
		}
	}
	return nil
}

// greet says where everything is, and what to try.
func (a *app) greet(dir string, runtimes int) error {
	if a.quiet {
		return nil
	}
	kubeconfig := filepath.Join(dir, statedir.Kubeconfig)
	var try []string
	name, down := "local-1", "mothership down"
	if usual, err := statedir.Default(a.p.Getenv); err != nil || usual != dir {
		try = append(try, "export MOTHERSHIP_KUBECONFIG="+quoted(kubeconfig))
		down += " --dir " + quoted(dir)
	}
	if runtimes == 0 {
		name = "eu-1"
		try = append(try, "mothership runtime add eu-1 --provider local")
	}
	try = append(try,
		"mothership get runtimes --watch",
		"mothership catalog add --chart ./examples/web --name web --version 1.0.0 --into web --channel regular",
		"mothership module enable "+name+" web && mothership wait "+name,
		"mothership explain "+name,
		"kubectl --kubeconfig "+quoted(kubeconfig)+" get kymas -A",
		down)
	return a.write(fmt.Sprintf("%s\n  state       %s\n  kubeconfig  %s\n\nTry, in another terminal:\n  %s\n",
		a.palette(a.p.Stdout).green("The control plane is ready."), clean(dir), clean(kubeconfig), clean(strings.Join(try, "\n  "))))
}

// quoted is a path as a shell takes it.
func quoted(path string) string {
	if strings.ContainsFunc(path, func(r rune) bool {
		return !strings.ContainsRune("/._-+=:,@%", r) && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) {
		return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	return path
}

// tellReady tells the process that waits for this one.
func tellReady(fd int) error {
	pipe := os.NewFile(uintptr(fd), "ready")
	if pipe == nil {
		return fmt.Errorf("--%s %d: there is no such file", readyFlag, fd)
	}
	_, err := pipe.WriteString(readyWord)
	return errors.Join(err, pipe.Close())
}
