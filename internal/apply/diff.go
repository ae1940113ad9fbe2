package apply

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/bundle"
	"github.com/kyma-project/mothership/internal/cluster"
)

// Change is what would happen to one object.
type Change struct {
	Object bundle.Ref `json:"object"`
	Action Action     `json:"action"`
	// Fields that would change.
	Fields []FieldChange `json:"fields,omitempty"`
	// Reason says why, where that is not plain; Hint what to do.
	Reason string `json:"reason,omitempty"`
	Hint   string `json:"hint,omitempty"`
}

// FieldChange is one field that would change. Values of Secrets are masked.
type FieldChange struct {
	Path string `json:"path"`
	// From is the value in the runtime; absent where the field would be added.
	From any `json:"from,omitempty"`
	// To is the value afterwards; absent where the field would be removed.
	To any `json:"to,omitempty"`
	// Manager that owns the field now, where it is not us.
	Manager string `json:"manager,omitempty"`
}

// Masked stands for a value of a Secret.
const Masked = "(hidden)"

// Diff says what Apply and Prune would change, object by object and field by field, by server-side dry-run. It changes
// nothing. Objects that would stay as they are are left out.
func (s *Set) Diff(ctx context.Context, p *Plan) ([]Change, error) {
	todo := p.Todo()
	changes := make([]Change, len(todo))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(s.a.o.Parallel)
	for i, step := range todo {
		g.Go(func() error {
			change, err := s.diffOne(gctx, p, step)
			if err != nil {
				return &ObjectError{Object: step.Ref, Hint: hintFor(err, step), Err: err}
			}
			changes[i] = *change
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	pruned, err := s.Pruned(ctx, p)
	return append(changes, pruned...), err
}

// Pruned says what Prune would do: which members it would delete, and which it would keep for good and let go of. A
// definition that is kept for its instances stays as it is, and is not among them.
func (s *Set) Pruned(ctx context.Context, p *Plan) ([]Change, error) {
	if err := s.protect(ctx, p); err != nil {
		return nil, err
	}
	var out []Change
	for _, e := range p.Prune {
		if e.Action == ActionPrune || e.release {
			out = append(out, Change{Object: e.Ref, Action: e.Action, Reason: e.Reason})
		}
	}
	return out, nil
}

func (s *Set) diffOne(ctx context.Context, p *Plan, step *Step) (*Change, error) {
	change := &Change{Object: step.Ref, Action: step.Action, Reason: step.Reason, Hint: step.Hint}
	switch step.Action {
	case ActionRefuse:
		return change, nil
	case ActionCreate:
		return change, s.dryCreate(ctx, p, step)
	}
	if step.live != nil && step.live.DeletionTimestamp != nil {
		return change, nil
	}
	body := step.Object.Bytes
	if step.first() {
		step.yielded = s.yieldedBeforeUs(p, step)
	}
	if len(step.yielded) > 0 {
		var err error
		if body, err = without(step.Object, step.yielded); err != nil {
			return nil, err
		}
	}
	var live, next map[string]any
	if err := s.t.Client.Get(ctx, step.Resource, step.Ref.Namespace, step.Ref.Name, &live); err != nil {
		return nil, err
	}
	if err := s.dryRun(ctx, step, body, &next); err != nil {
		return nil, err
	}
	change.Fields = compareObjects(step, live, next)
	return change, nil
}

// dryCreate asks the server whether it would accept an object, where it can know.
func (s *Set) dryCreate(ctx context.Context, p *Plan, step *Step) error {
	if p.createNamespace && step.Ref.Namespace == s.id.Namespace {
		return nil
	}
	for _, other := range p.Steps {
		if other.Action != ActionCreate {
			continue
		}
		if other.Ref == (bundle.Ref{Kind: "Namespace", Name: step.Ref.Namespace}) {
			return nil
		}
		if other.Object.IsDefinition() && other.Ref.Name == step.Resource.Resource+"."+step.Resource.Group {
			return nil
		}
	}
	return s.dryRun(ctx, step, step.Object.Bytes, nil)
}

func (s *Set) dryRun(ctx context.Context, step *Step, body []byte, into any) error {
	return s.t.Writer.Apply(ctx, step.Resource, step.Ref.Namespace, step.Ref.Name, body,
		cluster.ApplyOptions{Manager: step.Object.Manager, Force: true, DryRun: true}, into)
}

// differ collects the differences of two objects.
type differ struct {
	step   *Step
	others []managed
	out    []FieldChange
}

func compareObjects(step *Step, live, next map[string]any) []FieldChange {
	d := &differ{step: step, others: otherManagers(step)}
	for _, obj := range []map[string]any{live, next} {
		delete(obj, "status")
		meta, _ := obj["metadata"].(map[string]any)
		for _, field := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"} {
			delete(meta, field)
		}
		annotations, _ := meta["annotations"].(map[string]any)
		maps.DeleteFunc(annotations, func(key string, _ any) bool { return strings.HasPrefix(key, v1beta2.DigestAnnotation) })
		if len(annotations) == 0 {
			delete(meta, "annotations")
		}
	}
	d.values(live, next, nil)
	return d.out
}

func (d *differ) values(from, to any, at fieldPath) {
	if reflect.DeepEqual(from, to) {
		return
	}
	switch from := from.(type) {
	case map[string]any:
		if to, ok := to.(map[string]any); ok {
			d.maps(from, to, at)
			return
		}
	case []any:
		if to, ok := to.([]any); ok {
			d.lists(from, to, at)
			return
		}
	}
	d.add(from, to, at)
}

func (d *differ) maps(from, to map[string]any, at fieldPath) {
	both := map[string]bool{}
	for k := range from {
		both[k] = true
	}
	for k := range to {
		both[k] = true
	}
	for _, k := range sortedKeys(both) {
		d.values(from[k], to[k], at.with(step{token: k}))
	}
}

// lists are compared by name where all items have one, by position otherwise.
func (d *differ) lists(from, to []any, at fieldPath) {
	byName, ok := pairByName(from, to)
	if !ok {
		for i := range max(len(from), len(to)) {
			byName = append(byName, [2]any{itemAt(from, i), itemAt(to, i)})
		}
	}
	for i, pair := range byName {
		item := pair[1]
		if item == nil {
			item = pair[0]
		}
		d.values(pair[0], pair[1], at.with(step{token: fmt.Sprint(i), item: item, list: true}))
	}
}

func itemAt(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return nil
}

func pairByName(from, to []any) ([][2]any, bool) {
	index := map[string]int{}
	var out [][2]any
	for side, list := range [][]any{from, to} {
		for _, item := range list {
			m, _ := item.(map[string]any)
			name, ok := m["name"].(string)
			if !ok {
				return nil, false
			}
			at, seen := index[name]
			if !seen {
				at = len(out)
				index[name] = at
				out = append(out, [2]any{})
			}
			if out[at][side] != nil {
				return nil, false
			}
			out[at][side] = item
		}
	}
	return out, true
}

func (d *differ) add(from, to any, at fieldPath) {
	change := FieldChange{Path: at.String(), From: from, To: to, Manager: whoOwns(d.others, at)}
	if d.secret(at) {
		change.From, change.To = mask(from), mask(to)
	}
	d.out = append(d.out, change)
}

// secret says whether a field's value must not be shown: all of a Secret but its type and metadata, and the copy of it that
// kubectl keeps in an annotation.
func (d *differ) secret(at fieldPath) bool {
	if d.step.Ref.GroupKind() != secretKind || len(at) == 0 {
		return false
	}
	switch at[0].token {
	case "type", "immutable", "apiVersion", "kind":
		return false
	case "metadata":
		return len(at) < 3 || strings.Contains(at.String(), "last-applied-configuration")
	}
	return true
}

func mask(v any) any {
	if v == nil {
		return nil
	}
	if m, ok := v.(map[string]any); ok {
		out := map[string]any{}
		for k := range m {
			out[k] = Masked
		}
		return out
	}
	return Masked
}
