package mothership

import (
	"context"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kyma-project/mothership/internal/apply"
	"github.com/kyma-project/mothership/internal/module"
)

// CompareOptions of Diff and Verify. The zero value works.
type CompareOptions struct {
	// Timeout of the whole call. Default: 5 m.
	Timeout time.Duration
}

// Diff says what Install would change, object by object and field by field, by server-side dry-run. It changes nothing.
// Values of Secrets are masked. Errors are those of Install.
func (i *Installer) Diff(ctx context.Context, cfg *rest.Config, m Module, o CompareOptions) (*Comparison, error) {
	return i.compare(ctx, cfg, m, o, func(ctx context.Context, s *module.Session) ([]Change, error) { return s.Diff(ctx) })
}

// Verify says which objects are not as the module says: one list per kind, no dry-run. Fields that somebody changed are
// named, with who changed them, but not their values.
func (i *Installer) Verify(ctx context.Context, cfg *rest.Config, m Module, o CompareOptions) (*Comparison, error) {
	return i.compare(ctx, cfg, m, o, func(ctx context.Context, s *module.Session) ([]Change, error) {
		pruned, err := s.Pruned(ctx)
		return append(drift(s.Plan()), pruned...), err
	})
}

func (i *Installer) compare(ctx context.Context, cfg *rest.Config, m Module, o CompareOptions,
	changes func(context.Context, *module.Session) ([]Change, error),
) (*Comparison, error) {
	ctx, rt, end, err := i.begin(ctx, cfg, o.Timeout)
	if err != nil {
		return nil, err
	}
	defer end()
	started := time.Now()
	s, err := i.shared.OpenReadOnly(ctx, rt, m.component())
	if err != nil {
		return nil, err
	}
	if err := s.Observe(ctx, false); err != nil {
		return nil, err
	}
	found, err := changes(ctx, s)
	if err != nil {
		return nil, err
	}
	if found == nil {
		found = []Change{} // "changes": [] in JSON
	}
	b := s.Rendered().Bundle
	return &Comparison{
		Module: m.Name, Namespace: m.Namespace, BundleDigest: b.Digest, Changes: found,
		Unchanged: len(s.Plan().Steps) - len(s.Plan().Todo()), Hooks: b.Hooks, Warnings: b.Warnings,
		Requests: rt.Stats(), Duration: time.Since(started),
	}, nil
}

// drift is what an observation alone says.
func drift(plan *apply.Plan) []Change {
	var out []Change
	for _, step := range plan.Todo() {
		c := Change{Object: step.Ref, Action: step.Action, Reason: step.Reason, Hint: step.Hint}
		for _, d := range step.Drift {
			c.Fields = append(c.Fields, FieldChange{Path: d.Path, Manager: d.Manager})
		}
		out = append(out, c)
	}
	return out
}
