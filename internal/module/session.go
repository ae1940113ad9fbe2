package module

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kyma-project/mothership/internal/apply"
	"github.com/kyma-project/mothership/internal/bundle"
	"github.com/kyma-project/mothership/internal/kind"
	"github.com/kyma-project/mothership/internal/render"
	"github.com/kyma-project/mothership/internal/source"
	"github.com/kyma-project/mothership/reconciler"
)

// Options of New.
type Options struct {
	// Sources fetches sources. Needed.
	Sources source.Fetcher
	// Renderer renders them. Needed.
	Renderer render.Renderer
	// Applier applies bundles. Needed.
	Applier *apply.Applier
	// Key of input digests. A control plane has one of its own, so that nobody can guess values from digests; without one,
	// there are none.
	Key []byte
	// Stdin is read for a source with the path "-".
	Stdin io.Reader
}

// Reconciler is the built-in module reconciler. It is safe for concurrent use on different modules.
type Reconciler struct{ o Options }

var _ reconciler.Reconciler = (*Reconciler)(nil)

// New makes a Reconciler.
func New(o Options) *Reconciler { return &Reconciler{o: o} }

// Rendered is a module as it would be sent to a class of runtimes.
type Rendered struct {
	Bundle *bundle.Bundle
	// SourceDigest is the digest of the source, InputDigest of all that went into the bundle. Without a key there is no
	// input digest: weak values could be guessed from it.
	SourceDigest, InputDigest string
}

// RenderOptions say for which runtimes a module is rendered.
type RenderOptions struct {
	// Capabilities of the runtimes.
	Capabilities render.Capabilities
	// PerRuntime and Secret as in render.Request.
	PerRuntime string
	Secret     []byte
}

// Render fetches and renders a module without touching any runtime.
func (r *Reconciler) Render(ctx context.Context, c reconciler.Component, o RenderOptions) (*Rendered, error) {
	if err := validate(c); err != nil {
		return nil, err
	}
	ref, err := source.RefOf(c.Template.Source)
	if err != nil {
		return nil, err
	}
	ref.Stdin = r.o.Stdin
	tree, err := r.o.Sources.Fetch(ctx, ref)
	if err != nil {
		return nil, err
	}
	values, err := mergedValues(c)
	if err != nil {
		return nil, err
	}
	req := render.Request{
		Tree: tree, Kind: render.Kind(ref.Kind), Module: c.Name, Namespace: c.Namespace, Values: values,
		Capabilities: o.Capabilities, PerRuntime: o.PerRuntime, Secret: o.Secret,
	}
	b, err := r.o.Renderer.Render(ctx, req)
	if err != nil {
		return nil, err
	}
	out := &Rendered{Bundle: b, SourceDigest: tree.Digest}
	if len(r.o.Key) > 0 {
		out.InputDigest = render.InputDigest(r.o.Key, req)
	}
	return out, out.addDefault(c)
}

// addDefault adds the module's default custom resource, which is created once and then belongs to its users.
func (out *Rendered) addDefault(c reconciler.Component) error {
	if c.Template.Data == nil || len(c.Template.Data.Raw) == 0 {
		return nil
	}
	var obj map[string]any
	if err := json.Unmarshal(c.Template.Data.Raw, &obj); err != nil {
		return fmt.Errorf("reading the default custom resource (data) of module %q: %w", c.Name, err)
	}
	b, err := out.Bundle.With([]bundle.Manifest{{Object: obj, Origin: "data", Once: true}}, func(schema.GroupKind) kind.Scope { return kind.ScopeUnknown })
	if err != nil {
		return err
	}
	out.Bundle = b
	if out.InputDigest != "" {
		out.InputDigest = bundle.Digest(append([]byte(out.InputDigest), c.Template.Data.Raw...))
	}
	return nil
}

func mergedValues(c reconciler.Component) (map[string]any, error) {
	values := map[string]any{}
	if c.Template.Values != nil && len(c.Template.Values.Raw) > 0 {
		if err := json.Unmarshal(c.Template.Values.Raw, &values); err != nil {
			return nil, fmt.Errorf("reading the values of module %q: %w", c.Name, err)
		}
	}
	return merge(values, c.Values), nil
}

// merge lays values over others, maps key by key, as Helm does. Neither is changed.
func merge(base, over map[string]any) map[string]any {
	out := maps.Clone(base)
	if out == nil { // the template's values are null
		out = map[string]any{}
	}
	for k, v := range over {
		inner, ok := v.(map[string]any)
		below, has := out[k].(map[string]any)
		if ok && has {
			v = merge(below, inner)
		}
		out[k] = v
	}
	return out
}

// Session is one module on one runtime, from an observation to its end. It is used by one goroutine.
type Session struct {
	r        *Reconciler
	c        reconciler.Component
	set      *apply.Set
	plan     *apply.Plan
	rendered *Rendered
}

// Open renders the module for the runtime and reads the runtime's inventory of it, both at the same time.
func (r *Reconciler) Open(ctx context.Context, rt *Runtime, c reconciler.Component) (*Session, error) {
	return r.open(ctx, rt, c, readOrWriteSeed)
}

// OpenReadOnly is Open without ever writing to the runtime: a module that draws randomness there for the first time draws
// some that is forgotten.
func (r *Reconciler) OpenReadOnly(ctx context.Context, rt *Runtime, c reconciler.Component) (*Session, error) {
	return r.open(ctx, rt, c, readSeedOrForget)
}

func (r *Reconciler) open(ctx context.Context, rt *Runtime, c reconciler.Component, seed seedFunc) (*Session, error) {
	s := &Session{r: r, c: c}
	version, err := rt.Version(ctx)
	if err != nil {
		return nil, err
	}
	o := RenderOptions{Capabilities: render.Capabilities{KubeVersion: version}}
	if c.Template.PerRuntime {
		if err := perRuntime(ctx, rt, seed, &o); err != nil {
			return nil, err
		}
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		s.rendered, err = r.Render(gctx, c, o)
		return err
	})
	g.Go(func() (err error) {
		s.set, err = r.openSet(gctx, rt, c)
		return err
	})
	return s, g.Wait()
}

func (r *Reconciler) openSet(ctx context.Context, rt *Runtime, c reconciler.Component) (*apply.Set, error) {
	target, err := rt.target(ctx)
	if err != nil {
		return nil, err
	}
	return r.o.Applier.Open(ctx, target, apply.ID{Namespace: c.Namespace, Module: c.Name})
}

// Rendered is what the module was rendered to.
func (s *Session) Rendered() *Rendered { return s.rendered }

// Plan is the last observation's.
func (s *Session) Plan() *apply.Plan { return s.plan }

// Observe compares the runtime with the bundle. status asks for what Ready needs at the same time.
func (s *Session) Observe(ctx context.Context, status bool) error {
	plan, err := s.set.Observe(ctx, s.rendered.Bundle, apply.ObserveOptions{
		Yield: s.c.Template.Yield, Adopt: s.c.Template.Adopt, Status: status,
	})
	if err != nil {
		return err
	}
	s.plan = plan
	return nil
}

// Apply carries out the plan: apply, prune, and the inventory that says so. Pruning happens only when everything was
// applied.
func (s *Session) Apply(ctx context.Context) error {
	if err := s.set.Apply(ctx, s.plan); err != nil {
		return err
	}
	if err := s.set.Prune(ctx, s.plan); err != nil {
		return err
	}
	return s.set.Finish(ctx, s.plan, s.rendered.InputDigest)
}

// Ready looks once at what is not ready.
func (s *Session) Ready(ctx context.Context) ([]apply.NotReady, error) {
	return s.set.Ready(ctx, s.plan, apply.ReadyOptions{Health: s.c.Template.Health, Manager: s.c.Template.Manager})
}

// Diff says what Apply would change.
func (s *Session) Diff(ctx context.Context) ([]apply.Change, error) { return s.set.Diff(ctx, s.plan) }

// Pruned says what Apply would prune or let go of.
func (s *Session) Pruned(ctx context.Context) ([]apply.Change, error) {
	return s.set.Pruned(ctx, s.plan)
}

// OpenRemoval reads the runtime's inventory of a module that is to be removed. The module's source is not needed.
func (r *Reconciler) OpenRemoval(ctx context.Context, rt *Runtime, c reconciler.Component) (*apply.Set, error) {
	if err := validateIdentity(c); err != nil {
		return nil, err
	}
	return r.openSet(ctx, rt, c)
}

func validate(c reconciler.Component) error {
	var errs []error
	for _, rule := range c.Template.Health {
		errs = append(errs, apply.CheckHealth(rule))
	}
	return errors.Join(append(errs, validateIdentity(c))...)
}
