package render

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kyma-project/mothership/internal/bundle"
)

// IsolatedOptions are the options of Isolated.
type IsolatedOptions struct {
	// Command runs ChildMain on its standard input and output: the own executable with an argument, for instance. It
	// is run with an empty environment.
	Command []string
	// Memory that a child may use, in bytes, default 512 MiB.
	Memory int64
	// Timeout of one rendering, from start to end, default 20 s.
	Timeout time.Duration
	// Limits of what it may render to.
	Limits Limits
}

// IsolatedRenderer renders each request in a child process of its own.
type IsolatedRenderer struct {
	command []string
	memory  int64
	timeout time.Duration
	limits  Limits
}

var _ Renderer = (*IsolatedRenderer)(nil)

// Isolated returns a renderer for sources that nobody vouches for: a child that loops is killed at the deadline, one
// that eats memory ends, one that crashes is an error. The child dies with this process, too (on Linux).
func Isolated(o IsolatedOptions) *IsolatedRenderer {
	return &IsolatedRenderer{
		command: o.Command, memory: cmp.Or(o.Memory, 512<<20), timeout: cmp.Or(o.Timeout, defaultTimeout),
		limits: o.Limits.withDefaults(),
	}
}

// Render implements Renderer.
func (i *IsolatedRenderer) Render(ctx context.Context, r Request) (*bundle.Bundle, error) {
	if err := r.validate(); err != nil {
		return nil, inModule(err, r.Module)
	}
	request, err := newWireRequest(&r, i.limits, i.memory)
	if err != nil {
		return nil, inModule(err, r.Module)
	}
	if len(i.command) == 0 {
		return nil, errors.New("rendering in a child process: no command is configured")
	}
	ctx, cancel := context.WithTimeout(ctx, i.timeout)
	defer cancel()
	b, err := i.run(ctx, &r, request)
	if err != nil && ctx.Err() != nil {
		return nil, interrupted(ctx, &r, i.timeout)
	}
	return b, inModule(err, r.Module)
}

// run starts a child, speaks with it, and waits for its end.
func (i *IsolatedRenderer) run(ctx context.Context, r *Request, request *wireRequest) (*bundle.Bundle, error) {
	// The kernel kills the child when the thread that started it ends, so that thread is kept until then.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, i.command[0], i.command[1:]...)
	cmd.Env = []string{}
	cmd.SysProcAttr = childAttributes()
	cmd.Cancel = func() error { return killGroup(cmd.Process.Pid) }
	cmd.WaitDelay = time.Second
	stderr := &headBuffer{limit: 64 << 10}
	cmd.Stderr = stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the rendering process: %w", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the rendering process: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, &Error{Problem: "starting the rendering process: " + err.Error(), Err: ErrCrash}
	}
	b, problem := converse(stdin, stdout, r, request)
	if problem != nil && !isAnswer(problem) {
		_ = killGroup(cmd.Process.Pid) // it makes no sense any more; if it is dead already, so much the better
	}
	_ = stdin.Close()
	_, _ = io.Copy(io.Discard, stdout)
	waitErr := cmd.Wait()
	if problem == nil || isAnswer(problem) {
		return b, problem
	}
	return nil, i.explain(r, waitErr, stderr.String(), problem)
}

// isAnswer says whether an error is what the child said, not a failure to hear it.
func isAnswer(err error) bool {
	var broken *brokenError
	return !errors.As(err, &broken)
}

// brokenError is a failure of the conversation.
type brokenError struct{ err error }

func (e *brokenError) Error() string { return e.err.Error() }

// converse sends the request, answers the question for scopes, and returns the bundle or the errors.
func converse(stdin io.Writer, stdout io.Reader, r *Request, request *wireRequest) (*bundle.Bundle, error) {
	writeErr := writeFrame(stdin, frameRequest, request)
	for range 2 {
		frame, data, err := readFrame(stdout)
		if err != nil {
			return nil, &brokenError{errors.Join(err, writeErr)}
		}
		switch frame {
		case frameKinds:
			var kinds []schema.GroupKind
			if err := decodeFrame(data, &kinds); err != nil || r.ScopeOf == nil {
				return nil, &brokenError{errors.New("an unexpected question")}
			}
			if err := writeFrame(stdin, frameScopes, scopes(kinds, r.ScopeOf)); err != nil {
				return nil, &brokenError{err}
			}
		case frameBundle:
			var b wireBundle
			if err := decodeFrame(data, &b); err != nil {
				return nil, &brokenError{err}
			}
			return &b, nil
		case frameErrors:
			var errs []wireError
			if err := decodeFrame(data, &errs); err != nil {
				return nil, &brokenError{err}
			}
			return nil, unflatten(errs)
		}
	}
	return nil, &brokenError{errors.New("too many questions")}
}

// outOfMemory is how Go's runtime, with and without cgo, and its race detector say that the kernel gave them no memory.
var outOfMemory = regexp.MustCompile(`out of memory|cannot allocate memory|failed to allocate|pthread_create failed: Resource temporarily unavailable`)

// explain says why a child ended without an answer.
func (i *IsolatedRenderer) explain(r *Request, waitErr error, stderr string, problem error) error {
	var exit *exec.ExitError
	code := -1
	if errors.As(waitErr, &exit) {
		code = exit.ExitCode()
	}
	switch {
	case code == exitMemory || outOfMemory.MatchString(stderr):
		return tooMuchMemory(r, i.memory)
	case strings.Contains(stderr, "stack exceeds") || strings.Contains(stderr, "stack overflow"):
		return &Error{Err: ErrMemory, Problem: fmt.Sprintf("rendering %s ran out of stack: does a template call itself without end?", r.what())}
	}
	text := fmt.Sprintf("the rendering process of %s ended without an answer", r.what())
	if waitErr != nil {
		text += " (" + waitErr.Error() + ")"
	} else if problem != nil {
		text += " (" + oneLine(problem.Error()) + ")"
	}
	if line, _, _ := strings.Cut(stderr, "\n"); line != "" {
		text += ": " + line
	}
	return &Error{Problem: text, Err: ErrCrash}
}

// headBuffer keeps the first bytes of what is written to it and takes the rest.
type headBuffer struct {
	limit int
	buf   bytes.Buffer
}

func (h *headBuffer) Write(p []byte) (int, error) {
	h.buf.Write(p[:min(len(p), h.limit-h.buf.Len())])
	return len(p), nil
}

// String is what was kept. It may be called after the process was waited for.
func (h *headBuffer) String() string { return h.buf.String() }
