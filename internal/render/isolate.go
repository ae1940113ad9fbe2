package render

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
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
	// Timeout of one rendering, from start to end, default 20 s. Waiting for others is not part of it; a rendering that is tried again
	// begins anew.
	Timeout time.Duration
	// Processes that there are at most, and so renderings at once. Default: twice the number of processors, from 4 to 16.
	Processes int
	// Idle is how long a process without work is kept, default one minute. Negative: each renders once.
	Idle time.Duration
	// Limits of what it may render to.
	Limits Limits
}

// IsolatedRenderer renders in child processes.
type IsolatedRenderer struct {
	timeout time.Duration
	limits  Limits
	turns   *turns
	pool    *pool
}

var _ Renderer = (*IsolatedRenderer)(nil)

// Isolated returns a renderer for sources that nobody vouches for: a child that loops is killed at the deadline, one
// that eats memory ends, one that crashes is an error. A child that answered renders again, for any source, until it is
// idle for long, holds much memory, or has rendered often; one that did not never does. Of several sources that wait, the
// one with the fewest renderings under way goes first, so that one that is slow does not hold up the others; one that runs into the
// bounds time after time is refused for a while, with the error of the last. Close ends the children; they die with this process, too
// (on Linux; elsewhere when they have rendered).
func Isolated(o IsolatedOptions) *IsolatedRenderer {
	memory := cmp.Or(o.Memory, 512<<20)
	return &IsolatedRenderer{
		timeout: cmp.Or(o.Timeout, defaultTimeout),
		limits:  o.Limits.withDefaults(),
		turns:   newTurns(cmp.Or(o.Processes, min(max(4, 2*runtime.GOMAXPROCS(0)), 16))),
		pool:    &pool{command: o.Command, memory: memory, idleFor: cmp.Or(o.Idle, time.Minute), all: map[*process]struct{}{}},
	}
}

// Close ends all child processes, and with them the renderings that are under way, and waits for their end. After it, Render
// returns errors. It may be called more than once.
func (i *IsolatedRenderer) Close() { i.pool.close() }

// Render implements Renderer.
func (i *IsolatedRenderer) Render(ctx context.Context, r Request) (*bundle.Bundle, error) {
	if err := r.validate(); err != nil {
		return nil, inModule(err, r.Module)
	}
	request, err := newWireRequest(&r, i.limits, i.pool.memory)
	if err != nil {
		return nil, inModule(err, r.Module)
	}
	if len(i.pool.command) == 0 {
		return nil, errors.New("rendering in a child process: no command is configured")
	}
	source, input := r.Tree.Digest, digestOf(string(request.Values), r.Tree.Root, string(r.Kind), r.Capabilities.KubeVersion)
	number, err := i.turns.begin(ctx, source, input)
	if err != nil {
		return nil, i.refused(ctx, err, &r)
	}
	b, again, err := i.try(ctx, &r, request, false)
	if again {
		b, _, err = i.try(ctx, &r, request, true)
	}
	no := i.turns.end(source, input, number, err)
	var e *Error
	switch {
	case errors.Is(err, errClosed):
		return nil, err
	case errors.Is(err, errLeft):
		return nil, interruptedWait(ctx, &r)
	case no != nil && errors.As(err, &e):
		e.Problem += no.follows()
	}
	return b, inModule(err, r.Module)
}

// digestOf tells sequences of strings apart.
func digestOf(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		writeSized(h, p)
	}
	return string(h.Sum(nil))
}

// refused is the error of a rendering that did not begin: nobody waits for it, or its source ran into a bound too often.
func (i *IsolatedRenderer) refused(ctx context.Context, err error, r *Request) error {
	var no *refusal
	if !errors.As(err, &no) {
		return interruptedWait(ctx, r)
	}
	e := &Error{Problem: noAnswer(r), Err: no.kind}
	switch {
	case errors.Is(no.kind, ErrDeadline):
		e = tooMuchTime(r, i.timeout)
	case errors.Is(no.kind, ErrMemory):
		e = tooMuchMemory(r, i.pool.memory)
	}
	e.Problem += no.follows()
	return inModule(e, r.Module)
}

// noAnswer is the problem of a process that ended without one.
func noAnswer(r *Request) string {
	return fmt.Sprintf("the rendering process of %s ended without an answer", r.what())
}

// try renders in one process: one that has rendered before, or a new one. A process that has rendered before may end because of
// that: then it is to be tried again in a new one.
func (i *IsolatedRenderer) try(outer context.Context, r *Request, request *wireRequest, anew bool) (b *bundle.Bundle, again bool, err error) {
	if outer.Err() != nil {
		return nil, false, errLeft
	}
	ctx, cancel := context.WithTimeout(outer, i.timeout)
	defer cancel()
	p, err := i.pool.take(anew)
	if err != nil {
		return nil, false, err
	}
	served := p.served > 0
	release := context.AfterFunc(ctx, p.kill)
	b, err = p.converse(r, request)
	switch answered := isAnswer(err); {
	case !release():
		i.pool.discard(p)
		if outer.Err() != nil {
			return nil, false, errLeft
		}
		return nil, false, tooMuchTime(r, i.timeout)
	case answered && !errors.Is(err, ErrCrash):
		i.pool.put(p)
		return b, false, err
	case !answered:
		i.pool.discard(p)
		err = p.explain(r, err)
	default:
		i.pool.discard(p)
	}
	if i.pool.isClosed() {
		err = errClosed
	}
	return nil, served, err
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
func (p *process) converse(r *Request, request *wireRequest) (*bundle.Bundle, error) {
	if err := p.wire.send(frameRequest, request); err != nil {
		return nil, &brokenError{err}
	}
	for range 2 {
		frame, err := p.wire.receive()
		if err != nil {
			return nil, &brokenError{err}
		}
		switch frame {
		case frameKinds:
			var kinds []schema.GroupKind
			if err := p.wire.decode(&kinds); err != nil || r.ScopeOf == nil {
				return nil, &brokenError{errors.New("an unexpected question")}
			}
			if err := p.wire.send(frameScopes, scopes(kinds, r.ScopeOf)); err != nil {
				return nil, &brokenError{err}
			}
		case frameBundle:
			var b wireBundle
			if err := p.wire.decode(&b); err != nil {
				return nil, &brokenError{err}
			}
			return &b, p.listen()
		case frameErrors:
			var errs []wireError
			if err := p.wire.decode(&errs); err != nil {
				return nil, &brokenError{err}
			}
			if err := p.listen(); err != nil {
				return nil, err
			}
			return nil, unflatten(errs)
		}
	}
	return nil, &brokenError{errors.New("too many questions")}
}

// listen hears how much memory the process holds after an answer.
func (p *process) listen() error {
	frame, err := p.wire.receive()
	if err != nil || frame != frameDone {
		return &brokenError{errors.Join(err, errors.New("no end of the answer"))}
	}
	p.served++
	if err := p.wire.decode(&p.memory); err != nil {
		return &brokenError{err}
	}
	return nil
}

// outOfMemory is how Go's runtime, with and without cgo, and its race detector say that the kernel gave them no memory.
var outOfMemory = regexp.MustCompile(`out of memory|cannot allocate memory|failed to allocate|pthread_create failed: Resource temporarily unavailable`)

// explain says why a process ended without an answer. It has ended.
func (p *process) explain(r *Request, problem error) error {
	var exit *exec.ExitError
	code := -1
	if errors.As(p.err, &exit) {
		code = exit.ExitCode()
	}
	stderr := p.stderr.String()
	switch {
	case code == exitMemory || outOfMemory.MatchString(stderr):
		return tooMuchMemory(r, p.limit)
	case strings.Contains(stderr, "stack exceeds") || strings.Contains(stderr, "stack overflow"):
		return &Error{Err: ErrMemory, Problem: fmt.Sprintf("rendering %s ran out of stack: does a template call itself without end?", r.what())}
	}
	text := noAnswer(r)
	if exit != nil {
		text += " (" + exit.Error() + ")"
	} else if problem != nil {
		text += " (" + oneLine(problem.Error()) + ")"
	}
	if line, _, _ := strings.Cut(stderr, "\n"); line != "" {
		text += ": " + line
	}
	return &Error{Problem: text, Err: ErrCrash}
}
