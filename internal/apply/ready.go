package apply

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/bundle"
	"github.com/kyma-project/mothership/internal/cluster"
	"github.com/kyma-project/mothership/internal/kind"
)

// NotReady is an object that is not ready, and why.
type NotReady struct {
	Object bundle.Ref `json:"object"`
	// Failed says that it will not become ready by itself.
	Failed bool `json:"failed,omitempty"`
	// Message says why.
	Message string `json:"message"`
}

// String is the object and why it is not ready.
func (n NotReady) String() string { return n.Object.String() + ": " + n.Message }

// ReadyOptions of Ready.
type ReadyOptions struct {
	// Health are rules for kinds without a standard status. They go before what is known of a kind.
	Health []v1beta2.HealthRule
	// Manager is the custom resource whose state says whether the module is ready.
	Manager *v1beta2.Manager
}

// Ready looks once at the set's objects and returns those that are not ready, sorted. One list per kind that has a status;
// none where Observe has seen whole objects and nothing was changed since.
func (s *Set) Ready(ctx context.Context, p *Plan, o ReadyOptions) ([]NotReady, error) {
	objects, err := s.wholeObjects(ctx, p, o)
	if err != nil {
		return nil, err
	}
	var out []NotReady
	for _, step := range p.Steps {
		if !step.Object.Member || !step.watched(o) {
			continue
		}
		obj, ok := objects[step.Ref]
		if !ok && step.Object.Once {
			if obj, ok, err = s.unlisted(ctx, step); err != nil {
				return nil, err
			}
		}
		if !ok {
			out = append(out, NotReady{Object: step.Ref, Message: "does not exist"})
			continue
		}
		if n := s.judge(step.Ref, obj, o.Health); n != nil {
			out = append(out, *n)
		}
	}
	n, err := s.managerReady(ctx, o.Manager)
	if n != nil {
		out = append(out, *n)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Object.String() < out[j].Object.String() })
	return out, err
}

// unlisted reads an object that is created once: one that somebody else made, or took the label from, is not among the members.
func (s *Set) unlisted(ctx context.Context, step *Step) (*unstructured.Unstructured, bool, error) {
	obj := &unstructured.Unstructured{}
	err := s.t.Client.Get(ctx, step.Resource, step.Ref.Namespace, step.Ref.Name, obj)
	switch {
	case errors.Is(err, cluster.ErrNotFound):
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("reading %s: %w", step.Ref, err)
	}
	return obj, true, nil
}

// watched says whether an object can be anything but ready.
func (step *Step) watched(o ReadyOptions) bool {
	r := step.Resource
	for _, h := range o.Health {
		if h.Group == r.Group && h.Kind == r.Kind {
			return true
		}
	}
	if r.Group == "" && r.Kind == "Service" { // others are ready as soon as they exist
		return bytes.Contains(step.Object.Bytes, []byte(`"LoadBalancer"`))
	}
	return hasStatus(r)
}

// statusKinds are the built-in kinds whose objects take time to become ready. Definitions are waited for while they are
// applied.
var statusKinds = map[schema.GroupKind]bool{
	{Group: "apps", Kind: "Deployment"}: true, {Group: "apps", Kind: "StatefulSet"}: true,
	{Group: "apps", Kind: "DaemonSet"}: true, {Group: "apps", Kind: "ReplicaSet"}: true,
	{Group: "batch", Kind: "Job"}: true, {Kind: "Pod"}: true, {Kind: "PersistentVolumeClaim"}: true,
	{Kind: "Service"}: true, {Kind: "ReplicationController"}: true,
	{Group: "policy", Kind: "PodDisruptionBudget"}:        true,
	{Group: "apiregistration.k8s.io", Kind: "APIService"}: true,
}

func hasStatus(r cluster.Resource) bool {
	return statusKinds[r.GVK().GroupKind()] || !kind.BuiltIn(r.Group)
}

// wholeObjects are the members of the kinds that have a status.
func (s *Set) wholeObjects(ctx context.Context, p *Plan, o ReadyOptions) (map[bundle.Ref]*unstructured.Unstructured, error) {
	if seen := p.full; len(seen) > 0 && !p.Changes() && len(o.Health) == 0 {
		p.full = nil // they are good for one look
		return seen, nil
	}
	kinds := map[schema.GroupKind]cluster.Resource{}
	for _, step := range p.Steps {
		if step.Object.Member && step.watched(o) {
			kinds[step.Ref.GroupKind()] = step.Resource
		}
	}
	lists := make(chan map[bundle.Ref]*unstructured.Unstructured, len(kinds))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(s.a.parallel(ctx))
	for _, r := range kinds {
		g.Go(func() error {
			items, full, err := s.list(ctx, r, true)
			if err != nil {
				return err
			}
			list := map[bundle.Ref]*unstructured.Unstructured{}
			for i := range full {
				list[refOf(r, &items[i])] = &full[i]
			}
			lists <- list
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	close(lists)
	out := map[bundle.Ref]*unstructured.Unstructured{}
	for list := range lists {
		for ref, obj := range list {
			out[ref] = obj
		}
	}
	return out, nil
}

// judge says why an object is not ready; nil if it is.
func (s *Set) judge(ref bundle.Ref, obj *unstructured.Unstructured, rules []v1beta2.HealthRule) *NotReady {
	for _, rule := range rules {
		if rule.Group == ref.Group && rule.Kind == ref.Kind {
			return s.a.health.judge(ref, obj, rule)
		}
	}
	switch ref.GroupKind() {
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		return judgeJob(ref, obj)
	case schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}:
		return judgeCondition(ref, obj, "Available")
	}
	result, err := status.Compute(obj)
	if err != nil {
		return &NotReady{Object: ref, Message: "its status cannot be read: " + err.Error()}
	}
	switch result.Status {
	case status.CurrentStatus:
		return nil
	case status.FailedStatus:
		return &NotReady{Object: ref, Failed: true, Message: result.Message}
	default:
		return &NotReady{Object: ref, Message: result.Message}
	}
}

// condition is one of an object's standard conditions.
type condition struct{ kind, status, reason, message string }

func conditionsOf(obj *unstructured.Unstructured) []condition {
	raw, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	var out []condition
	for _, item := range raw {
		m, ok := item.(map[string]any)
		if !ok {
			continue
		}
		field := func(name string) string { v, _ := m[name].(string); return v }
		out = append(out, condition{kind: field("type"), status: field("status"), reason: field("reason"), message: field("message")})
	}
	return out
}

// judgeJob: a Job is ready only when it is complete; kstatus is content when it has started.
func judgeJob(ref bundle.Ref, obj *unstructured.Unstructured) *NotReady {
	for _, c := range conditionsOf(obj) {
		switch {
		case c.kind == "Complete" && c.status == "True":
			return nil
		case c.kind == "Failed" && c.status == "True":
			return &NotReady{Object: ref, Failed: true, Message: strings.TrimSpace("the job failed: " + c.reason + " " + c.message)}
		}
	}
	count := func(field string) int64 {
		n, _, _ := unstructured.NestedInt64(obj.Object, "status", field)
		return n
	}
	return &NotReady{Object: ref, Message: fmt.Sprintf("the job is not complete: %d active, %d succeeded, %d failed",
		count("active"), count("succeeded"), count("failed"))}
}

func judgeCondition(ref bundle.Ref, obj *unstructured.Unstructured, kind string) *NotReady {
	for _, c := range conditionsOf(obj) {
		if c.kind != kind {
			continue
		}
		if c.status == "True" {
			return nil
		}
		return &NotReady{Object: ref, Message: fmt.Sprintf("%s is %s: %s", kind, c.status, c.message)}
	}
	return &NotReady{Object: ref, Message: "condition " + kind + " is not set yet"}
}

// managerReady asks the custom resource that speaks for the module.
func (s *Set) managerReady(ctx context.Context, m *v1beta2.Manager) (*NotReady, error) {
	if m == nil {
		return nil, nil
	}
	ref := bundle.Ref{Group: m.Group, Kind: m.Kind, Namespace: m.Namespace, Name: m.Name}
	r, err := s.t.Client.Resource(ctx, schema.GroupVersionKind{Group: m.Group, Version: m.Version, Kind: m.Kind})
	if errors.Is(err, cluster.ErrNoKind) {
		return &NotReady{Object: ref, Message: "the kind of the module's manager is not served"}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the module's manager: %w", err)
	}
	namespace := ""
	if r.Namespaced {
		if namespace = m.Namespace; namespace == "" {
			namespace = s.id.Namespace
		}
	}
	ref.Namespace = namespace
	items, err := s.t.Client.List(ctx, r, cluster.ListOptions{Namespace: namespace})
	if errors.Is(err, cluster.ErrNotFound) {
		return &NotReady{Object: ref, Message: "the kind of the module's manager is not served yet"}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the module's manager: %w", err)
	}
	for i := range items {
		if m.Name != "" && items[i].GetName() != m.Name {
			continue
		}
		ref.Name = items[i].GetName()
		return judgeManager(ref, &items[i]), nil
	}
	return &NotReady{Object: ref, Message: "the module's manager does not exist"}, nil
}

// judgeManager reads status.state, as module managers write it; without one, the standard conditions. Error is not final:
// managers recover from it by themselves.
func judgeManager(ref bundle.Ref, obj *unstructured.Unstructured) *NotReady {
	state, found, _ := unstructured.NestedString(obj.Object, "status", "state")
	switch {
	case !found:
		return judgeCondition(ref, obj, "Ready")
	case state == string(v1beta2.StateReady) || state == string(v1beta2.StateWarning):
		return nil
	}
	return &NotReady{Object: ref, Message: "its state is " + state}
}
