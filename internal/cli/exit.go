package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/kyma-project/mothership"
)

// The exit codes, which --help documents. A run that a signal interrupted ends with 128 and the signal's number.
const (
	// ExitDone: done, or nothing differs.
	ExitDone = 0
	// ExitFailed: it failed.
	ExitFailed = 1
	// ExitUsage: the command line is wrong, nothing was tried.
	ExitUsage = 2
	// ExitDiffers: something differs, or is not ready or gone in time.
	ExitDiffers = 3
)

// errDiffers ends a comparison that found something. It has been said by then.
var errDiffers = errors.New("differs")

// usageError is a command line that cannot be carried out.
type usageError struct{ problem, hint, command string }

// Error is the problem; hint and command are for people only.
func (e *usageError) Error() string { return e.problem }

func usage(cmd *cobra.Command, format string, args ...any) error {
	return &usageError{problem: fmt.Sprintf(format, args...), command: cmd.CommandPath()}
}

// interruption is the cause of a context that a signal ended.
type interruption struct{ signal syscall.Signal }

// Error names the signal.
func (e *interruption) Error() string {
	if e.signal == syscall.SIGTERM {
		return "interrupted by SIGTERM"
	}
	return "interrupted"
}

// fail says what went wrong and returns the exit code.
func (a *app) fail(ctx context.Context, err error) int {
	if errors.Is(err, errDiffers) {
		return ExitDiffers
	}
	if u, ok := errors.AsType[*usageError](err); ok {
		a.report([]problem{{text: u.problem, hint: u.hint}, {hint: fmt.Sprintf("see %s --help", u.command)}})
		return ExitUsage
	}
	if i, ok := context.Cause(ctx).(*interruption); ok { //nolint:errorlint // the cause is set by Interruptible, unwrapped
		a.report([]problem{{text: interruptedText(err, i), hint: "what was done stays: the same command goes on from there"}})
		return 128 + int(i.signal)
	}
	a.report(problemsOf(err))
	if late, ok := errors.AsType[*mothership.TimeoutError](err); ok && len(late.NotReady) > 0 {
		return ExitDiffers
	}
	if errors.As(err, new(*lateError)) {
		return ExitDiffers
	}
	return ExitFailed
}

// interruptedText says what was under way, which the library's error does, unless it was interrupted too early to know.
func interruptedText(err error, i *interruption) string {
	if errors.Is(err, i) {
		return err.Error()
	}
	return i.Error()
}

// maxProblems bounds how many errors of one run are listed.
const maxProblems = 50

// report writes problems, and their hints once each at the end.
func (a *app) report(problems []problem) {
	paint := a.palette(a.p.Stderr)
	var b strings.Builder
	var hints, said []string
	left := 0
	for _, p := range problems {
		switch {
		case p.text == "" || slices.Contains(said, p.text):
		case len(said) == maxProblems:
			left++
		default:
			said = append(said, p.text)
			fmt.Fprintf(&b, "%s %s\n", paint.red("error:"), indentRest(clean(p.text)))
		}
		if p.hint != "" && !slices.Contains(hints, p.hint) {
			hints = append(hints, p.hint)
		}
	}
	if left > 0 {
		fmt.Fprintf(&b, "%s and %d more\n", paint.red("error:"), left)
	}
	for _, h := range hints {
		fmt.Fprintf(&b, "%s %s\n", paint.cyan("hint:"), indentRest(clean(h)))
	}
	fmt.Fprint(a.p.Stderr, b.String())
}

// indentRest indents all lines but the first, so that a message of several lines reads as one.
func indentRest(s string) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	for i := 1; i < len(lines); i++ {
		lines[i] = "  " + strings.TrimLeft(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}
