package module

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/apply"
	"github.com/kyma-project/mothership/internal/bundle"
	"github.com/kyma-project/mothership/internal/kind"
	"github.com/kyma-project/mothership/internal/render"
	"github.com/kyma-project/mothership/internal/render/post"
	"github.com/kyma-project/mothership/internal/source"
	"github.com/kyma-project/mothership/reconciler"
)

// Rendered is a module as it would be sent to a class of runtimes.
type Rendered struct {
	Bundle *bundle.Bundle
	// SourceDigest is the digest of the source, InputDigest of all that went into the bundle. Without a key there is no
	// input digest: weak values could be guessed from it.
	SourceDigest, InputDigest string
	// Revision is what the source was resolved to, for people; its digest, where there is nothing to resolve.
	Revision string
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
	req, err := r.request(ctx, c, o)
	if err != nil {
		return nil, err
	}
	b, err := r.o.Renderer.Render(ctx, req)
	if err != nil {
		return nil, err
	}
	out := &Rendered{Bundle: b, SourceDigest: req.Tree.Digest, InputDigest: r.digest(c, req), Revision: cmp.Or(req.Tree.Revision, req.Tree.Digest)}
	if err := out.addDefault(c, req.PostRender); err != nil {
		return nil, err
	}
	if !c.Template.PerRuntime { // its input digest does not say everything
		r.recent.add(out)
	}
	return out, nil
}

// request fetches a module's source and says what is to be rendered of it.
func (r *Reconciler) request(ctx context.Context, c reconciler.Component, o RenderOptions) (render.Request, error) {
	ref, err := source.RefOf(c.Template.Source)
	if err != nil {
		return render.Request{}, err
	}
	ref.Stdin = r.o.Stdin
	tree, err := r.o.Sources.Fetch(ctx, ref)
	if err != nil {
		return render.Request{}, err
	}
	values, err := mergedValues(c)
	if err != nil {
		return render.Request{}, err
	}
	return render.Request{
		SourceHost: ref.Host(), Tree: tree, Kind: render.Kind(ref.Kind), Module: c.Name, Namespace: c.Namespace, Values: values,
		Capabilities: o.Capabilities, PerRuntime: o.PerRuntime, Secret: o.Secret, PostRender: post.Merge(r.o.PostRender, c.Template.PostRender),
	}, nil
}

// addDefault adds the module's default custom resource, which is created once and then belongs to its users. It is no part of what
// the renderer made, so that the post-render step has not seen it.
func (out *Rendered) addDefault(c reconciler.Component, options v1beta2.PostRender) error {
	if c.Template.Data == nil || len(c.Template.Data.Raw) == 0 {
		return nil
	}
	var obj map[string]any
	if err := json.Unmarshal(c.Template.Data.Raw, &obj); err != nil {
		return fmt.Errorf("reading the default custom resource (data) of module %q: %w", c.Name, err)
	}
	report := post.Apply(options, []map[string]any{obj})
	b, err := out.Bundle.With([]bundle.Manifest{{Object: obj, Origin: "data", Once: true}}, func(schema.GroupKind) kind.Scope { return kind.ScopeUnknown })
	if err != nil {
		return err
	}
	b.Images = slices.Concat(b.Images, report.Images)
	b.Warnings = slices.Concat(b.Warnings, report.Warnings)
	out.Bundle = b
	return nil
}

func mergedValues(c reconciler.Component) (map[string]any, error) {
	values := map[string]any{}
	if c.Template.Values != nil && len(c.Template.Values.Raw) > 0 {
		if err := json.Unmarshal(c.Template.Values.Raw, &values); err != nil {
			return nil, fmt.Errorf("reading the values of module %q: %w", c.Name, err)
		}
	}
	return Merge(values, c.Values), nil
}

// Merge lays values over others, maps key by key, as Helm does. Neither is changed.
func Merge(base, over map[string]any) map[string]any {
	out := maps.Clone(base)
	if out == nil { // the template's values are null
		out = map[string]any{}
	}
	for k, v := range over {
		inner, ok := v.(map[string]any)
		below, has := out[k].(map[string]any)
		if ok && has {
			v = Merge(below, inner)
		}
		out[k] = v
	}
	return out
}

func validate(c reconciler.Component) error {
	var errs []error
	for _, rule := range c.Template.Health {
		errs = append(errs, apply.CheckHealth(rule))
	}
	return errors.Join(append(errs, validateIdentity(c))...)
}
