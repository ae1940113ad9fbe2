package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kyma-project/mothership/internal/statedir"
)

const (
	// readyFlag names the file on which a control plane in the background says readyWord to whoever started it.
	readyFlag = "ready-fd"
	readyWord = "ready\n"
	// detachTimeout bounds the start of a control plane in the background.
	detachTimeout = 5 * time.Minute
)

// detach starts this program in a session of its own and waits until it is ready.
func (a *app) detach(cmd *cobra.Command, f *upFlags, dir string) error {
	if err := statedir.Check(dir); err != nil { // before its log is touched
		return refused(err, dir)
	}
	log, err := os.OpenFile(filepath.Join(dir, statedir.Log), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log: %w", err)
	}
	defer log.Close() // the child has its own descriptor
	info, err := log.Stat()
	if err != nil {
		return fmt.Errorf("opening the log: %w", err)
	}
	child, ready, err := a.background(cmd, dir, log)
	if err != nil {
		return fmt.Errorf("starting in the background: %w", err)
	}
	defer ready.Close()
	p := a.progress("starting a control plane in " + dir)
	err = a.awaitReady(cmd.Context(), child, ready)
	p.close()
	if err != nil {
		return errors.Join(err, lastWords(dir, info.Size()))
	}
	return a.greet(dir, f.runtimes)
}

// background starts the child, and returns the pipe on which it says that it is ready.
func (a *app) background(cmd *cobra.Command, dir string, log *os.File) (*exec.Cmd, *os.File, error) {
	program, err := a.p.Executable()
	if err != nil {
		return nil, nil, err
	}
	ready, write, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer write.Close()
	child := exec.Command(program, a.backgroundArgs(cmd, dir)...)
	child.Stdout, child.Stderr, child.ExtraFiles = log, log, []*os.File{write}
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := child.Start(); err != nil {
		return nil, nil, errors.Join(err, ready.Close())
	}
	return child, ready, nil
}

// backgroundArgs are those of this command, with the folder made absolute, for a child that stays in the foreground.
func (a *app) backgroundArgs(cmd *cobra.Command, dir string) []string {
	const first = 3 // the descriptor of the first of ExtraFiles
	args := []string{"up", "--dir", dir, "--log-file", "--color=never", "--" + readyFlag, strconv.Itoa(first)}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch f.Name {
		case "dir", "detach", "log-file", "color", readyFlag:
		default:
			for _, value := range valuesOf(f) {
				args = append(args, "--"+f.Name+"="+value)
			}
		}
	})
	return args
}

// valuesOf are a flag's values, one for each time that it is to be given.
func valuesOf(f *pflag.Flag) []string {
	if many, ok := f.Value.(pflag.SliceValue); ok {
		return many.GetSlice()
	}
	text := f.Value.String()
	if f.Value.Type() == "stringToString" { // shown as [KEY=VALUE,…]
		text = strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
	}
	return []string{text}
}

// awaitReady returns when the child is ready. Otherwise the child is gone afterwards.
func (a *app) awaitReady(ctx context.Context, child *exec.Cmd, ready io.Reader) error {
	ctx, cancel := context.WithTimeoutCause(ctx, detachTimeout, fmt.Errorf("it took longer than %s", detachTimeout))
	defer cancel()
	said := make(chan bool, 1)
	go func() { // ends when the child says something or ends
		word, err := io.ReadAll(io.LimitReader(ready, int64(len(readyWord))))
		said <- err == nil && string(word) == readyWord
	}()
	select {
	case is := <-said:
		if is {
			return child.Process.Release()
		}
		return fmt.Errorf("the control plane ended before it was ready: %w", child.Wait())
	case <-ctx.Done():
	}
	if err := child.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stopping the control plane: %w", err)
	}
	return errors.Join(fmt.Errorf("starting in the background: %w", context.Cause(ctx)), child.Wait())
}

// lastWords are the errors that a control plane in the background has said last, with their hints.
func lastWords(dir string, offset int64) error {
	lines, err := statedir.LastError(dir, offset, "error: ", "hint: ")
	if err != nil {
		return err
	}
	out := &hintedError{hint: "its log is " + filepath.Join(dir, statedir.Log)}
	var texts []string
	for _, line := range lines {
		if text, is := strings.CutPrefix(line, "hint: "); is {
			out.hint = text + "; " + out.hint
			continue
		}
		texts = append(texts, strings.TrimPrefix(line, "error: "))
	}
	if len(texts) == 0 {
		texts = []string{"it said nothing of why"}
	}
	out.err = errors.New(strings.Join(texts, "\n"))
	return out
}
