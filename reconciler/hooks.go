package reconciler

import "context"

// Hooks are what is special about a component. Each is optional.
type Hooks struct {
	// Default changes the component before anything is done with it, for values that depend on the runtime. It must
	// give the same result for the same request.
	Default func(ctx context.Context, req *Request) error
	// Before runs before the component is installed or changed, on every call. Any outcome but OutcomeDone ends the call
	// with it.
	Before Func
	// After runs once the component is installed and ready, on every call. Its facts are added to the component's.
	After Func
	// BeforeDelete runs before the component is removed, on every call until it is gone. Any outcome but OutcomeDone ends
	// the call with it.
	BeforeDelete Func
}

// With is a reconciler with hooks around it. An error of Hooks.Default is terminal. The request's checkpoint is passed on to the
// base and to every hook; digests are the base's.
func With(base Reconciler, h Hooks) Reconciler { return &hooked{base: base, hooks: h} }

type hooked struct {
	base  Reconciler
	hooks Hooks
}

// Reconcile calls the hooks around the base.
func (h *hooked) Reconcile(ctx context.Context, req Request) Result {
	if h.hooks.Default != nil {
		if err := h.hooks.Default(ctx, &req); err != nil {
			return Terminal(err)
		}
	}
	before, after := h.hooks.Before, h.hooks.After
	if req.Component.Deleting {
		before, after = h.hooks.BeforeDelete, nil
	}
	if before != nil {
		if r := before(ctx, req); r.Outcome != OutcomeDone {
			return r
		}
	}
	result := h.base.Reconcile(ctx, req)
	if result.Outcome != OutcomeDone || after == nil {
		return result
	}
	return followed(result, after(ctx, req))
}

// followed is the result of Hooks.After with what the base did: that was applied to the end, whatever came afterwards.
func followed(base, last Result) Result {
	if last.Outcome == OutcomeDone {
		last.Facts = append(base.Facts, last.Facts...)
	}
	last.InputDigest, last.BundleDigest, last.Revision = base.InputDigest, base.BundleDigest, base.Revision
	last.Warnings = BoundWarnings(append(base.Warnings, last.Warnings...))
	return last
}
