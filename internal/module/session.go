package module

import (
	"context"
	"errors"
	"io"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/apply"
	"github.com/kyma-project/mothership/internal/bundle"
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
	// PostRender is done to the objects of every module, besides what its template says.
	PostRender v1beta2.PostRender
	// Stdin is read for a source with the path "-".
	Stdin io.Reader
	// Applied is told what a module's objects look like while nothing drifts: after each time that it was applied to the end, and
	// when Verify found nothing. runtime is Runtime.Name. It must be safe for concurrent use and must not block. Default:
	// nobody is told.
	Applied func(runtime string, b *apply.Baseline)
}

// Reconciler is the built-in module reconciler. It is safe for concurrent use on different modules.
type Reconciler struct {
	o        Options
	patience time.Duration
	recent   *recent
}

var _ reconciler.Reconciler = (*Reconciler)(nil)

// New makes a Reconciler.
func New(o Options) *Reconciler {
	if o.Applied == nil {
		o.Applied = func(string, *apply.Baseline) {}
	}
	return &Reconciler{o: o, patience: defaultPatience, recent: newRecent()}
}

// WithProgress is the same Reconciler, its caches and memory shared, telling somebody else what happens to each object.
func (r *Reconciler) WithProgress(progress func(apply.Event)) *Reconciler {
	q := *r
	q.o.Applier = r.o.Applier.WithProgress(progress)
	return &q
}

// Session is one module on one runtime, from an observation to its end. It is used by one goroutine.
type Session struct {
	r        *Reconciler
	rt       *Runtime
	c        reconciler.Component
	set      *apply.Set
	plan     *apply.Plan
	rendered *Rendered
	applied  bool // to the end
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
	s := &Session{r: r, rt: rt, c: c}
	o, err := optionsFor(ctx, rt, c, seed)
	if err != nil {
		return nil, err
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

// optionsFor says what rendering needs to know of a runtime. Errors are *RuntimeError, or about the seed.
func optionsFor(ctx context.Context, rt *Runtime, c reconciler.Component, seed seedFunc) (RenderOptions, error) {
	version, err := rt.Version(ctx)
	if err != nil {
		return RenderOptions{}, err
	}
	o := RenderOptions{Capabilities: render.Capabilities{KubeVersion: version}}
	if c.Template.PerRuntime {
		err = perRuntime(ctx, rt, seed, &o)
	}
	return o, err
}

// openSet reads the inventory. Errors are *RuntimeError, or apply.ErrForeignSet.
func (r *Reconciler) openSet(ctx context.Context, rt *Runtime, c reconciler.Component) (*apply.Set, error) {
	target, err := rt.target(ctx)
	if err != nil {
		return nil, err
	}
	if name := c.Template.ServiceAccountName; name != "" {
		target.Writer = rt.account(c.Namespace, name)
	}
	set, err := r.o.Applier.Open(ctx, target, apply.ID{Namespace: c.Namespace, Module: c.Name})
	if errors.Is(err, apply.ErrForeignSet) {
		return nil, err
	}
	return set, ofRuntime(ctx, err)
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

// Advance goes straight from the bundle that was applied before to the one that is wanted, where that is enough, and otherwise does
// nothing that Observe and Apply would not do: see apply.Set.Advance. Fields that the template yields are only known by looking.
func (s *Session) Advance(ctx context.Context, from *bundle.Bundle, o apply.ApplyOptions) (advanced bool, err error) {
	if len(s.c.Template.Yield) > 0 || s.c.Template.Adopt {
		return false, nil
	}
	plan, err := s.set.Advance(ctx, from, s.rendered.Bundle, o)
	if plan == nil || err != nil {
		return false, err
	}
	s.plan = plan
	return true, s.finish(ctx)
}

// Apply carries out the plan: apply, prune, and the inventory that says so. Pruning happens only when everything was
// applied. Errors are those of apply.Set.
func (s *Session) Apply(ctx context.Context, o apply.ApplyOptions) error {
	if err := s.set.Apply(ctx, s.plan, o); err != nil {
		return err
	}
	if err := s.set.Prune(ctx, s.plan, o); err != nil {
		return err
	}
	return s.finish(ctx)
}

// finish writes the inventory that says so.
func (s *Session) finish(ctx context.Context) error {
	if err := s.set.Finish(ctx, s.plan, s.rendered.InputDigest); err != nil {
		return err
	}
	s.applied = true
	s.r.o.Applied(s.rt.Name(), s.set.Baseline(s.plan))
	return nil
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
