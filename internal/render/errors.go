package render

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/kyma-project/mothership/internal/bundle"
)

// The kinds of failure, for errors.Is. None of them goes away by trying again with the same request, except
// ErrDeadline and ErrMemory on a machine that was short of either.
var (
	// ErrEmpty says that a source rendered to no object at all, which is never a desired state.
	ErrEmpty = bundle.ErrEmpty
	// ErrRandom says that a template calls a function whose result depends on more than the request: randomness,
	// the clock, the environment, the network or a cluster.
	ErrRandom = errors.New("the template is not a pure function of its input")
	// ErrDeadline says that rendering took too long.
	ErrDeadline = errors.New("rendering took too long")
	// ErrMemory says that rendering took too much memory.
	ErrMemory = errors.New("rendering took too much memory")
	// ErrValues says that the values are not what the chart accepts. The error is a *ValuesError.
	ErrValues = errors.New("the values do not fit the chart")
	// ErrMalformed says that the source, or what it rendered to, is not well formed.
	ErrMalformed = errors.New("the source is malformed")
	// ErrRemote says that the source refers to something outside of itself.
	ErrRemote = errors.New("the source refers to something remote")
	// ErrTemplate says that a template could not be executed, or refused its input by `fail` or `required`.
	ErrTemplate = errors.New("the template failed")
	// ErrCrash says that the rendering process crashed.
	ErrCrash = errors.New("the rendering process crashed")
)

// Error is one problem of a module's source. Match its kind with errors.Is.
type Error struct {
	// Module that was rendered.
	Module string
	// Origin is the file of the source, relative to its root; in charts with the chart's name first, as Helm writes
	// it. Empty if no single file is to blame.
	Origin string
	// Document is the number of the YAML document in the file, from 1; 0 if unknown.
	Document int
	// Line in the file, from 1; 0 if unknown.
	Line int
	// Rendered says that Line counts the lines of the rendered text, not of the template.
	Rendered bool
	// Problem says what is wrong and what to do.
	Problem string
	// Err is the kind of failure: one of the package's sentinels.
	Err error
}

// Error is the message: module, file, document, line, problem.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Module != "" {
		fmt.Fprintf(&b, "module %q: ", e.Module)
	}
	if place := e.place(); place != "" {
		b.WriteString(place + ": ")
	}
	b.WriteString(e.Problem)
	return b.String()
}

func (e *Error) place() string {
	var parts []string
	if e.Origin != "" {
		parts = append(parts, e.Origin)
	}
	if e.Document > 0 {
		parts = append(parts, fmt.Sprintf("document %d", e.Document))
	}
	if e.Line > 0 && e.Rendered {
		parts = append(parts, fmt.Sprintf("line %d of the rendered text", e.Line))
	} else if e.Line > 0 {
		parts = append(parts, fmt.Sprintf("line %d", e.Line))
	}
	return strings.Join(parts, ", ")
}

// Unwrap gives the kind of failure.
func (e *Error) Unwrap() error { return e.Err }

// Violation is one value that the chart's schema does not accept.
type Violation struct {
	// Path is the JSON pointer of the value, from the root chart's values: "/image/tag".
	Path string
	// Message says what is expected. It never holds the value itself.
	Message string
}

// ValuesError lists everything that the charts' schemas do not accept. It matches ErrValues.
type ValuesError struct {
	// Module that was rendered.
	Module string
	// Violations, sorted by path; at least one.
	Violations []Violation
}

// Error lists the violations, one per line.
func (e *ValuesError) Error() string {
	var b strings.Builder
	if e.Module != "" {
		fmt.Fprintf(&b, "module %q: ", e.Module)
	}
	b.WriteString("the values do not fit the chart's schema:")
	for _, v := range e.Violations {
		fmt.Fprintf(&b, "\n  %s: %s", v.Path, v.Message)
	}
	return b.String()
}

// Unwrap gives ErrValues.
func (e *ValuesError) Unwrap() error { return ErrValues }

// maxErrors bounds how many problems of one module are reported.
const maxErrors = 20

// join makes one error of several, at most maxErrors of them.
func join(errs []error) error {
	var kept []error
	left := 0
	for _, err := range errs {
		switch {
		case err == nil:
		case len(kept) == maxErrors:
			left++
		default:
			kept = append(kept, err)
		}
	}
	if left > 0 {
		kept = append(kept, fmt.Errorf("%w: and %d more problems", ErrMalformed, left))
	}
	if len(kept) == 1 {
		return kept[0]
	}
	return errors.Join(kept...)
}

// inModule names the module in each *Error and *ValuesError of err that has none yet, and makes anything else an
// *Error of the kind ErrMalformed.
func inModule(err error, module string) error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var errs []error
		for _, e := range joined.Unwrap() {
			errs = append(errs, inModule(e, module))
		}
		return errors.Join(errs...)
	}
	switch e := err.(type) { //nolint:errorlint // wrapped ones are taken apart below
	case *Error:
		if e.Module == "" {
			e.Module = module
		}
		return e
	case *ValuesError:
		if e.Module == "" {
			e.Module = module
		}
		return e
	case *bundle.Error:
		problem := e.Problem
		if e.Ref.Kind != "" {
			problem = strings.TrimSpace(e.Ref.String()) + ": " + problem
		}
		return &Error{Module: module, Origin: e.Origin, Problem: problem, Err: ErrMalformed}
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	return &Error{Module: module, Problem: err.Error(), Err: sentinelOf(err)}
}

// sentinels in the order of their numbers on the wire between parent and child. Append only.
var sentinels = []error{
	ErrMalformed, ErrEmpty, ErrRandom, ErrDeadline, ErrMemory, ErrValues, ErrRemote, ErrTemplate, ErrCrash,
}

// sentinelOf is the kind of err, ErrMalformed if it has none.
func sentinelOf(err error) error {
	for _, s := range sentinels {
		if errors.Is(err, s) {
			return s
		}
	}
	return ErrMalformed
}
