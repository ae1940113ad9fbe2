package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// Process is what a run of the program has of the process it runs in.
type Process struct {
	// Args are the arguments, without the program's name.
	Args []string
	// Stdin is read for "-f -" only. Stdout gets data, Stderr what is for people; where one of them is an *os.File of a
	// terminal, it is treated as one.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Getenv reads the environment: KUBECONFIG, MOTHERSHIP_KUBECONFIG, HOME, XDG_STATE_HOME, NO_COLOR, TERM,
	// SOPS_AGE_KEY, SOPS_AGE_KEY_FILE.
	Getenv func(string) string
	// Executable is the path of this program, for the child process that renders.
	Executable func() (string, error)
	// Serving, if it is set, is called when the program begins to serve: it lives long from then on.
	Serving func()
	// Version that the linker stamped; empty: that of the build information.
	Version string
}

// childArgument makes this program a child that renders. It is not for people.
const childArgument = "__render"

// IsRenderChild says whether the process was started to render, by the arguments with the program's name. If so, nothing
// but mothership.RenderChild may run in it.
func IsRenderChild(args []string) bool { return len(args) == 2 && args[1] == childArgument }

// app is one run of the program.
type app struct {
	p     Process
	color string
	quiet bool
	// started says that the command line was understood: errors before that are usage errors.
	started bool
}

// Run carries out one command line and returns the exit code. Everything has been written when it returns. It is safe
// for concurrent use with different streams.
func Run(ctx context.Context, p Process) int {
	a := &app{p: p}
	root := a.root()
	if err := a.known(root); err != nil {
		return a.fail(ctx, err)
	}
	if err := root.ExecuteContext(ctx); err != nil {
		if _, known := errors.AsType[*usageError](err); !known && !a.started {
			err = &usageError{problem: err.Error(), command: a.commandOf(root)}
		}
		return a.fail(ctx, err)
	}
	return ExitDone
}

// known refuses a command that does not exist, with what it may have been meant to be.
func (a *app) known(root *cobra.Command) error {
	if len(a.p.Args) > 0 && strings.HasPrefix(a.p.Args[0], cobra.ShellCompRequestCmd) {
		return nil // the hidden command by which shells ask for completions is added later
	}
	_, _, err := root.Find(a.p.Args)
	if err == nil {
		return nil
	}
	u := &usageError{problem: err.Error(), command: root.CommandPath()}
	for _, arg := range a.p.Args {
		if strings.HasPrefix(arg, "-") {
			continue
		}
		if near := root.SuggestionsFor(arg); len(near) > 0 {
			u.hint = "did you mean " + strings.Join(near, " or ") + "?"
		}
		break
	}
	return u
}

// commandOf is the command that the arguments name, as far as they name one.
func (a *app) commandOf(root *cobra.Command) string {
	cmd, _, err := root.Find(a.p.Args)
	if err != nil {
		return root.CommandPath()
	}
	return cmd.CommandPath()
}

// write writes a command's data, which is complete by then, in one go.
func (a *app) write(data string) error {
	if _, err := io.WriteString(a.p.Stdout, data); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}

// note writes a line for people.
func (a *app) note(kind, text string) {
	if !a.quiet {
		fmt.Fprintf(a.p.Stderr, "%s: %s\n", kind, clean(text))
	}
}
