package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kyma-project/mothership"
)

// problem is one thing that went wrong, and what to do about it.
type problem struct{ text, hint string }

// hintedError is an error that this package knows what to do about.
type hintedError struct {
	err  error
	hint string
}

// Error is the error's; the hint is not part of it.
func (e *hintedError) Error() string { return e.err.Error() }

// Unwrap gives the error.
func (e *hintedError) Unwrap() error { return e.err }

// problemsOf takes an error of the library apart: one problem per object.
func problemsOf(err error) []problem {
	switch e := err.(type) { //nolint:errorlint // wrapped ones are found below, with the words around them
	case nil:
		return nil
	case *mothership.TimeoutError:
		return late(e)
	case *mothership.FailedError:
		return failed(e)
	case *mothership.BlockedError:
		return []problem{{text: e.Message, hint: "delete them, and uninstall again"}}
	}
	if e, ok := errors.AsType[*lateError](err); ok {
		return []problem{{text: e.Error(), hint: "see mothership explain KYMA for what it waits for, or give it more time with --timeout"}}
	}
	if many := joined(err); many != nil {
		var out []problem
		for _, one := range many {
			out = append(out, problemsOf(one)...)
		}
		return out
	}
	p := problem{text: err.Error()}
	if at, ok := errors.AsType[*mothership.ObjectError](err); ok {
		p.hint = at.Hint
	}
	if h, ok := errors.AsType[*hintedError](err); ok {
		p.hint = h.hint
	}
	return []problem{p}
}

// joined are the parts of an error whose words are nothing but theirs, as errors.Join makes it; nil for any other.
func joined(err error) []error {
	many, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	var texts []string
	for _, one := range many.Unwrap() {
		texts = append(texts, one.Error())
	}
	if len(texts) == 0 || strings.Join(texts, "\n") != err.Error() {
		return nil
	}
	return many.Unwrap()
}

// late says what was not done in time, and why as far as it is known.
func late(e *mothership.TimeoutError) []problem {
	hint := "give it more time with --timeout"
	if len(e.NotReady) > 0 {
		hint += ", or look with kubectl describe at what it waits for"
	}
	out := []problem{{text: e.Doing + ": not done in time" + list(e.NotReady), hint: hint}}
	return append(out, problemsOf(e.Err)...)
}

func failed(e *mothership.FailedError) []problem {
	var out []problem
	for _, n := range e.Objects {
		out = append(out, problem{text: "failed: " + n.String()})
	}
	return out
}

// maxListed bounds how many objects a message lists.
const maxListed = 20

// list is objects that are not ready, one per line.
func list(objects []mothership.NotReady) string {
	var b strings.Builder
	for _, n := range objects[:min(maxListed, len(objects))] {
		b.WriteString("\n" + strings.ReplaceAll(n.String(), "\n", " "))
	}
	if more := len(objects) - maxListed; more > 0 {
		fmt.Fprintf(&b, "\nand %d more", more)
	}
	return b.String()
}
