// Command testsum runs `go test -json` in one Go module after the other and sums the results up: a line per package
// as it ends, the output of what failed once more at the end, and as its last line
//
//	N passed, N failed, N skipped
//
// Tests with subtests are counted by their subtests. A package that fails without a failing test (it does not compile,
// it panics outside of a test) counts as one failure. The exit code is 1 if anything failed.
//
//	testsum [-dir DIR]... -- [flags and packages of go test]
//
// It imports the standard library only.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

func main() {
	dirs, args, err := parse(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	sum := newSummary(os.Stdout)
	for _, dir := range dirs {
		if err := run(ctx, dir, args, sum); err != nil {
			sum.failRun(dir, err)
		}
	}
	if !sum.finish() {
		os.Exit(1)
	}
}

// parse splits the command line at "--". Without -dir, the working directory is tested.
func parse(args []string) (dirs, rest []string, err error) {
	for len(args) > 0 {
		switch {
		case args[0] == "--":
			rest, args = args[1:], nil
		case args[0] == "-dir" && len(args) > 1:
			dirs, args = append(dirs, args[1]), args[2:]
		default:
			return nil, nil, fmt.Errorf("unexpected argument %q: use testsum [-dir DIR]... -- [arguments of go test]", args[0])
		}
	}
	if len(dirs) == 0 {
		dirs = []string{"."}
	}
	return dirs, rest, nil
}

// run tests one module. Failing tests are in the summary; the error is one of running go test at all.
func run(ctx context.Context, dir string, args []string, sum *summary) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...)
	cmd.Dir = dir
	cmd.Stderr = os.Stderr
	// An interrupted go test ends its tests first, which end their servers.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("testing %s: %w", dir, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("testing %s: %w", dir, err)
	}
	failedBefore := sum.failed
	readErr := sum.read(out)
	if readErr != nil {
		_, _ = io.Copy(io.Discard, out) // go test must not block on a full pipe
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 && sum.failed > failedBefore {
		err = nil // its failures are counted already
	}
	return errors.Join(readErr, err)
}
