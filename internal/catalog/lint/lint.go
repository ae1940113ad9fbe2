// Package lint says of a catalogue, without any cluster, everything that would fail once its modules are used.
//
// # Overview
//
// Run goes from the words to the objects: documents that cannot be read and fields that do not exist; what the control plane's API
// would refuse, by the very rules of its definitions (schema.go); channels without a template, modules without a channel, needs that
// nobody meets and rings of them, as the control plane resolves a Kyma (release.go); sources that cannot be had, values that a chart
// refuses, templates that cannot be rendered; objects that two modules ship (render.go). Each finding names its file and document.
//
// What only a cluster can know, such as kinds that it does not serve or a policy of its own, is not found here.
//
// The package may import the api module, internal/bundle for the identity of objects, internal/catalog and its artifact, and cel-go
// for the rules of the definitions. Rendering is the caller's: it is given as a function.
package lint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/bundle"
	"github.com/kyma-project/mothership/internal/catalog/artifact"
)

// Severity of a finding.
type Severity string

// The severities.
const (
	// Error: it would fail.
	Error Severity = "error"
	// Warning: it works, but a person should look.
	Warning Severity = "warning"
)

// Finding is one thing that is wrong.
type Finding struct {
	Severity Severity `json:"severity"`
	// File and Document, from 1, are where it is; empty where it is nowhere in particular.
	File     string `json:"file,omitempty"`
	Document int    `json:"document,omitempty"`
	// Object is what it is about: ModuleTemplate web-1.0.0.
	Object string `json:"object,omitempty"`
	// Message says what is wrong, and what to do.
	Message string `json:"message"`
}

// String is the finding on one line.
func (f Finding) String() string {
	out := ""
	if f.File != "" {
		out = fmt.Sprintf("%s: document %d: ", f.File, f.Document)
	}
	if f.Object != "" {
		out += f.Object + ": "
	}
	return out + f.Message
}

// Rendered is what a template comes to with its own values.
type Rendered struct {
	// Objects that modules may not share: all but Namespaces.
	Objects []bundle.Ref
	// Warnings for people.
	Warnings []string
}

// Options of Run.
type Options struct {
	// Render fetches and renders a template. Needed.
	Render func(context.Context, *v1beta2.ModuleTemplate) (*Rendered, error)
}

// Run looks at a catalogue and returns what it finds, in the order of the files, errors and warnings mixed. It ends early with the
// context.
func Run(ctx context.Context, files artifact.Files, o Options) []Finding {
	l := &linter{o: o, rendered: map[string]*Rendered{}, refused: map[*artifact.Entry]bool{}}
	entries, problems := files.Decode()
	for _, problem := range problems {
		l.document(problem)
	}
	if len(entries) == 0 && len(problems) == 0 {
		l.addf(nil, Error, "the catalogue has no ModuleTemplate and no ModuleReleaseMeta: they are in the *.yaml, *.yml and *.json at its top")
	}
	l.entries = l.unique(entries)
	for i := range l.entries {
		l.schema(&l.entries[i])
	}
	l.releases()
	l.templates(ctx)
	l.shared()
	slices.SortStableFunc(l.found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Document, b.Document))
	})
	return l.found
}

// linter is one call of Run.
type linter struct {
	o        Options
	entries  []artifact.Entry
	rendered map[string]*Rendered // by the template's name
	reported map[string]bool      // problems of modules that more than one channel has
	found    []Finding
	// refused are entries that the API would refuse: what they would come to does not matter.
	refused map[*artifact.Entry]bool
}

func (l *linter) addf(e *artifact.Entry, s Severity, format string, args ...any) {
	f := Finding{Severity: s, Message: fmt.Sprintf(format, args...)}
	if e != nil {
		f.File, f.Document, f.Object = e.File, e.Document, e.Kind()+" "+e.Object().GetName()
	}
	l.found = append(l.found, f)
}

// document is a document that cannot be read.
func (l *linter) document(err error) {
	f := Finding{Severity: Error, Message: err.Error()}
	if at := (*artifact.ProblemError)(nil); errors.As(err, &at) {
		f.File, f.Document, f.Message = at.File, at.Document, at.Err.Error()
	}
	l.found = append(l.found, f)
}

// unique leaves out what is there twice, and says so.
func (l *linter) unique(entries []artifact.Entry) []artifact.Entry {
	first := map[string]artifact.Entry{}
	return slices.DeleteFunc(entries, func(e artifact.Entry) bool {
		key := e.Kind() + "/" + e.Object().GetName()
		before, twice := first[key]
		if twice {
			l.addf(&e, Error, "it is there twice: also in %s", before.Place())
			return true
		}
		first[key] = e
		return false
	})
}
