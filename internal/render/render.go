package render

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/bundle"
	"github.com/kyma-project/mothership/internal/kind"
	"github.com/kyma-project/mothership/internal/render/post"
	"github.com/kyma-project/mothership/internal/source"
)

// Kind says how a source is rendered.
type Kind string

// The kinds of source.
const (
	// Chart is a Helm chart.
	Chart Kind = "chart"
	// Kustomize is a kustomization.
	Kustomize Kind = "kustomize"
	// Manifests are plain YAML and JSON files.
	Manifests Kind = "manifests"
)

// Request is everything that a rendering depends on. It is not changed, and may be shared by goroutines.
type Request struct {
	// Tree is the source; the folder Tree.Root of it is rendered.
	Tree *source.Tree
	// Kind of the source.
	Kind Kind
	// Module is the name of the module: a chart's release name.
	Module string
	// Namespace that objects without one go to.
	Namespace string
	// Values of a chart, over the chart's own: strings, booleans, numbers, nil, maps and lists. Given for any other
	// kind, they are an error.
	Values map[string]any
	// Capabilities of the runtimes.
	Capabilities Capabilities
	// PerRuntime is the identity of the one runtime that is rendered for (the UID of its namespace kube-system), if the
	// template asks for randomness; empty otherwise. Randomness is derived from it and Secret, and the Secrets and
	// ConfigMaps of the templates that drew some are created once.
	PerRuntime string
	// Secret is what nobody else knows and what stays the same from one rendering to the next; a runtime's UID alone
	// could be guessed. Needed with PerRuntime, at least 16 bytes.
	Secret []byte
	// ScopeOf knows the scope of kinds that the catalogue declares; nil knows none. It must be safe for concurrent
	// use.
	ScopeOf func(schema.GroupKind) kind.Scope
	// ScopeDigest names what ScopeOf knows, so that a result is not reused after a change of it.
	ScopeDigest string
	// SourceHost is the host that the tree was downloaded from; see WithBases.
	SourceHost string
	// PostRender is done to the objects, once, before they are serialised.
	PostRender v1beta2.PostRender
}

// Renderer renders requests. It is safe for concurrent use.
type Renderer interface {
	// Render returns the bundle of a request, or *Error or *ValuesError, several of them joined. Errors of ctx are
	// ErrDeadline if it was the deadline, and context.Canceled otherwise.
	Render(ctx context.Context, r Request) (*bundle.Bundle, error)
}

// Func is a function that is a Renderer.
type Func func(ctx context.Context, r Request) (*bundle.Bundle, error)

// Render calls the function.
func (f Func) Render(ctx context.Context, r Request) (*bundle.Bundle, error) { return f(ctx, r) }

// Told tells of each rendering of another renderer that takes longer than some time: begin is called then, what begin returns after it.
func Told(next Renderer, after time.Duration, begin func(ctx context.Context) (end func())) Renderer {
	return Func(func(ctx context.Context, r Request) (*bundle.Bundle, error) {
		ends := make(chan func(), 1)
		late := time.AfterFunc(after, func() { ends <- begin(ctx) })
		defer func() {
			if !late.Stop() {
				(<-ends)()
			}
		}()
		return next.Render(ctx, r)
	})
}

// Options of New.
type Options struct {
	// Timeout of one rendering, default 20 s.
	Timeout time.Duration
	// Memory that the process may hold, in bytes, beyond what it held before, until a rendering is given up with
	// ErrMemory. The template goes on eating until the process ends: the caller should end it. Default: no limit.
	Memory int64
	// Limits of what it may render to.
	Limits Limits
}

const defaultTimeout = 20 * time.Second

// InProcess renders in this process.
type InProcess struct {
	timeout time.Duration
	memory  int64
	limits  Limits
}

var _ Renderer = (*InProcess)(nil)

// New returns a renderer that renders in this process. Use it for trusted sources only: a template that loops is given
// up at the deadline but runs on, and one that eats memory takes the process with it. Helm's warnings about values of
// the wrong shape go to the bundle; a few others of Helm's go to the standard logger.
func New(o Options) *InProcess {
	return &InProcess{timeout: cmp.Or(o.Timeout, defaultTimeout), memory: o.Memory, limits: o.Limits.withDefaults()}
}

// Render implements Renderer.
func (p *InProcess) Render(ctx context.Context, r Request) (*bundle.Bundle, error) {
	if err := r.validate(); err != nil {
		return nil, inModule(err, r.Module)
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	type result struct {
		bundle *bundle.Bundle
		err    error
	}
	ctx, cancelMemory := watchMemory(ctx, p.memory)
	defer cancelMemory()
	done := make(chan result, 1)
	go func() { // given up, not stopped, at the deadline: see New
		b, err := render(ctx, &r, p.limits)
		done <- result{b, err}
	}()
	select {
	case res := <-done:
		return res.bundle, inModule(res.err, r.Module)
	case <-ctx.Done():
		if errors.Is(context.Cause(ctx), ErrMemory) {
			return nil, tooMuchMemory(&r, p.memory)
		}
		return nil, interrupted(ctx, &r, p.timeout)
	}
}

// watchMemory ends a context with ErrMemory as its cause once the process holds limit bytes more than it does now. Without a
// limit it watches nothing.
func watchMemory(ctx context.Context, limit int64) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	if limit > 0 {
		most := usedMemory() + limit
		go func() { // ends with the context
			tick := time.NewTicker(memoryInterval)
			defer tick.Stop()
			for ctx.Err() == nil {
				select {
				case <-ctx.Done():
				case <-tick.C:
					if usedMemory() > most {
						cancel(ErrMemory)
					}
				}
			}
		}()
	}
	return ctx, func() { cancel(nil) }
}

// tooMuchMemory is the error of a rendering that took more than its limit.
func tooMuchMemory(r *Request, limit int64) *Error {
	return &Error{Module: r.Module, Err: ErrMemory, Problem: fmt.Sprintf(
		"rendering %s took more than %d MiB of memory: does a template grow without end?", r.what(), limit>>20)}
}

// interrupted is the error of a rendering that ctx ended.
func interrupted(ctx context.Context, r *Request, timeout time.Duration) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("rendering module %q: %w", r.Module, context.Cause(ctx))
	}
	return tooMuchTime(r, timeout)
}

// tooMuchTime is the error of a rendering that took longer than its limit.
func tooMuchTime(r *Request, timeout time.Duration) *Error {
	return &Error{Module: r.Module, Err: ErrDeadline, Problem: fmt.Sprintf(
		"rendering %s took more than %s: does a template loop?", r.what(), timeout)}
}

// what names the source for people.
func (r *Request) what() string { return fmt.Sprintf("%s %q", r.Kind, r.Module) }

func (r *Request) validate() error {
	problem := func(format string, args ...any) error {
		return &Error{Problem: fmt.Sprintf(format, args...), Err: ErrMalformed}
	}
	switch {
	case r.Tree == nil || len(r.Tree.Files) == 0:
		return problem("the source has no files")
	case r.Kind != Chart && r.Kind != Kustomize && r.Kind != Manifests:
		return problem("%q is no kind of source: use chart, kustomize or manifests", r.Kind)
	case r.Module == "" || r.Namespace == "":
		return problem("a module needs a name and a namespace")
	case len(r.Values) > 0 && r.Kind != Chart:
		return &Error{Problem: fmt.Sprintf("values are given, but only charts take values and this is %q", r.Kind), Err: ErrValues}
	case r.PerRuntime != "" && len(r.Secret) < 16:
		return problem("rendering per runtime needs a secret of at least 16 bytes that stays the same")
	}
	if err := post.Check(r.PostRender); err != nil {
		return problem("%s", err)
	}
	_, err := r.Capabilities.normalise()
	return err
}

// render renders in the current goroutine.
func render(ctx context.Context, r *Request, limits Limits) (b *bundle.Bundle, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &Error{Problem: fmt.Sprintf("rendering %s failed in an unforeseen way", r.what()), Err: ErrCrash}
		}
	}()
	out, err := manifestsOf(ctx, r, limits)
	if err != nil {
		return nil, err
	}
	return out.bundle(r)
}

// output is what a source renders to.
type output struct {
	objects  []object
	hooks    []bundle.Hook
	warnings []string
}

func manifestsOf(ctx context.Context, r *Request, limits Limits) (*output, error) {
	switch r.Kind {
	case Chart:
		return renderChart(ctx, r, limits)
	case Kustomize:
		return renderKustomization(r, limits)
	}
	objects, err := decode(manifestFiles(r.Tree), limits)
	return &output{objects: objects}, err
}

// bundle makes the bundle. Its errors about objects become those of this package.
func (o *output) bundle(r *Request) (*bundle.Bundle, error) {
	report := post.Apply(r.PostRender, o.fields())
	manifests := make([]bundle.Manifest, len(o.objects))
	for i, obj := range o.objects {
		manifests[i] = bundle.Manifest{Object: obj.fields, Origin: obj.place(), Once: obj.once && createdOnce(obj.fields)}
	}
	b, err := bundle.New(manifests, bundle.Options{
		Module: r.Module, Namespace: r.Namespace, ScopeOf: r.ScopeOf, Hooks: o.hooks,
		Images: report.Images, Warnings: slices.Concat(o.warnings, report.Warnings),
	})
	if errors.Is(err, bundle.ErrEmpty) {
		return nil, &Error{Problem: o.emptyProblem(r), Err: ErrEmpty}
	}
	return b, err
}

// fields are the objects without their origins.
func (o *output) fields() []map[string]any {
	out := make([]map[string]any, len(o.objects))
	for i, obj := range o.objects {
		out[i] = obj.fields
	}
	return out
}

func (o *output) emptyProblem(r *Request) string {
	problem := fmt.Sprintf("%s rendered to no object at all, which is never a desired state", r.what())
	if len(o.hooks) > 0 {
		problem += fmt.Sprintf(" (its %d hooks do not count: hooks are never run)", len(o.hooks))
	}
	return problem
}

// place is the origin of an object as the bundle keeps it: file and, in files with several, document.
func (d *document) place() string {
	if d.number <= 1 {
		return d.origin
	}
	return fmt.Sprintf("%s#%d", d.origin, d.number)
}

// createdOnce says whether an object keeps what was generated for it.
func createdOnce(fields map[string]any) bool {
	return fields["apiVersion"] == "v1" && (fields["kind"] == "Secret" || fields["kind"] == "ConfigMap")
}

// manifestFiles are the YAML and JSON files below the tree's root, in order of their paths.
func manifestFiles(tree *source.Tree) []text {
	var texts []text
	for _, f := range filesBelow(tree) {
		switch path.Ext(f.Path) {
		case ".yaml", ".yml", ".json":
			texts = append(texts, text{origin: f.Path, data: f.Data})
		}
	}
	return texts
}

// filesBelow are the files below the tree's root, with paths relative to it, sorted. If the root is a file, it is that
// file alone.
func filesBelow(tree *source.Tree) []source.File {
	root := path.Clean(tree.Root)
	var out []source.File
	for _, f := range tree.Files {
		switch {
		case root == "." || f.Path == root:
			out = append(out, f)
		case len(f.Path) > len(root) && f.Path[:len(root)] == root && f.Path[len(root)] == '/':
			out = append(out, source.File{Path: f.Path[len(root)+1:], Data: f.Data})
		}
	}
	slices.SortStableFunc(out, func(a, b source.File) int { return cmp.Compare(a.Path, b.Path) })
	return out
}

// ByTrust returns a renderer that uses one for sources that are the caller's own, and another for all others.
func ByTrust(trusted, untrusted Renderer) Renderer {
	return Func(func(ctx context.Context, r Request) (*bundle.Bundle, error) {
		if r.Tree != nil && r.Tree.Trusted {
			return trusted.Render(ctx, r)
		}
		return untrusted.Render(ctx, r)
	})
}
