package module

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/kyma-project/mothership/internal/apply"
	"github.com/kyma-project/mothership/reconciler"
)

// Drifted is a component that is not in the runtime as it should be.
type Drifted struct {
	// Component is its name.
	Component string
	// Reason names what is not as it should be, the first few objects of it.
	Reason string
}

// Verify compares all components of a runtime with what they shall be, and changes nothing: one list per kind in use, however
// many components use it, one of the inventories, one of Namespaces where a component ships any, and the seed of generated
// secrets where a component has some. Readiness is not looked at. Components that are being deleted are left out; one that
// cannot be rendered counts as drifted, so that its own run says why. Options.Applied is told of those that have not
// drifted.
//
// An error says that some components could not be judged, joined, or, as *RuntimeError, none of them; drifted holds beside it.
func (r *Reconciler) Verify(ctx context.Context, rt *Runtime, components []reconciler.Component) (drifted []Drifted, err error) {
	target, err := rt.target(ctx)
	if err != nil {
		return nil, err
	}
	v := &verification{r: r, rt: rt, seed: once(readSeedOrForget)}
	for _, c := range components {
		if c.Deleting {
			continue
		}
		if err := v.add(ctx, c); err != nil {
			return nil, err
		}
	}
	verdicts, err := r.o.Applier.Verify(ctx, target, v.wanted)
	if err != nil {
		return nil, ofRuntime(ctx, err)
	}
	return v.conclude(verdicts)
}

// verification is one call of Verify.
type verification struct {
	r       *Reconciler
	rt      *Runtime
	seed    seedFunc
	names   []string
	wanted  []apply.Wanted
	drifted []Drifted
}

// add renders a component. Its error is one of the runtime, or the end of the context; that of the component is drift.
func (v *verification) add(ctx context.Context, c reconciler.Component) error {
	rendered, err := v.render(ctx, c)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, new(*RuntimeError)):
		return err
	case err != nil:
		v.drifted = append(v.drifted, Drifted{Component: c.Name, Reason: err.Error()})
	default:
		v.names = append(v.names, c.Name)
		v.wanted = append(v.wanted, apply.Wanted{
			ID: apply.ID{Namespace: c.Namespace, Module: c.Name}, Bundle: rendered.Bundle, Yield: c.Template.Yield,
		})
	}
	return nil
}

func (v *verification) render(ctx context.Context, c reconciler.Component) (*Rendered, error) {
	o, err := optionsFor(ctx, v.rt, c, v.seed)
	if err != nil {
		return nil, err
	}
	return v.r.Render(ctx, c, o)
}

func (v *verification) conclude(verdicts []apply.Verdict) ([]Drifted, error) {
	var errs []error
	for i, verdict := range verdicts {
		switch {
		case verdict.Err != nil:
			errs = append(errs, fmt.Errorf("verifying module %q: %w", v.names[i], verdict.Err))
		case verdict.Drift != "":
			v.drifted = append(v.drifted, Drifted{Component: v.names[i], Reason: verdict.Drift})
		default:
			v.r.o.Applied(v.rt.Name(), verdict.Baseline)
		}
	}
	return v.drifted, errors.Join(errs...)
}

// once asks for a seed at most once, for all components of a call.
func once(seed seedFunc) seedFunc {
	var first sync.Once
	var secret []byte
	var err error
	return func(ctx context.Context, rt *Runtime) ([]byte, error) {
		first.Do(func() { secret, err = seed(ctx, rt) })
		return secret, err
	}
}
