package apply

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/bundle"
	"github.com/kyma-project/mothership/internal/cluster"
)

// probe looks up the objects that are not among the members: somebody else's object of the same name must not be
// overwritten. Definitions go first: where a definition is missing, so are the objects of its kind.
func (s *Set) probe(ctx context.Context, p *Plan) error {
	var definitions, rest []*Step
	for _, step := range p.Steps {
		switch {
		case !step.unknown:
		case step.Object.Stage == bundle.StageDefinitions:
			definitions = append(definitions, step)
		default:
			rest = append(rest, step)
		}
	}
	if err := s.probeAll(ctx, p, definitions); err != nil {
		return err
	}
	absent, err := s.absent(ctx, p, rest)
	if err != nil {
		return err
	}
	var exists []*Step
	for _, step := range rest {
		if absent(step) {
			step.Action, step.unknown = ActionCreate, false
			continue
		}
		exists = append(exists, step)
	}
	return s.probeAll(ctx, p, exists)
}

func (s *Set) probeAll(ctx context.Context, p *Plan, steps []*Step) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(s.a.o.Parallel)
	for _, step := range steps {
		g.Go(func() error { return s.probeOne(ctx, p, step) })
	}
	return g.Wait()
}

// absent tells objects that cannot exist: those of kinds whose definition does not exist, and those in the module's
// namespace where that does not exist.
func (s *Set) absent(ctx context.Context, p *Plan, steps []*Step) (func(*Step) bool, error) {
	missing := map[string]bool{}
	for _, step := range p.Steps {
		if step.Object.IsDefinition() && step.Action == ActionCreate {
			missing[step.Ref.Name] = true
		}
	}
	noNamespace, err := s.namespaceMissing(ctx, p, steps)
	if err != nil {
		return nil, err
	}
	return func(step *Step) bool {
		return missing[step.Resource.Resource+"."+step.Resource.Group] ||
			(noNamespace && step.Ref.Namespace == s.id.Namespace)
	}, nil
}

// namespaceMissing asks for the module's namespace, where that saves asking for each object in it.
func (s *Set) namespaceMissing(ctx context.Context, p *Plan, steps []*Step) (bool, error) {
	if s.parent.found {
		return false, nil
	}
	in := 0
	for _, step := range steps {
		if step.Ref.Namespace == s.id.Namespace {
			in++
		}
	}
	if in == 0 {
		return false, nil
	}
	var meta metav1.PartialObjectMetadata
	err := s.t.Client.Get(ctx, namespaces, "", s.id.Namespace, &meta)
	if errors.Is(err, cluster.ErrNotFound) {
		p.createNamespace = true
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading namespace %s: %w", s.id.Namespace, err)
	}
	return false, nil
}

// probeOne looks up one object and decides what is to be done with it.
func (s *Set) probeOne(ctx context.Context, p *Plan, step *Step) error {
	step.unknown = false
	var live metav1.PartialObjectMetadata
	err := s.t.Client.Get(ctx, step.Resource, step.Ref.Namespace, step.Ref.Name, &live)
	if errors.Is(err, cluster.ErrNotFound) {
		step.Action = ActionCreate
		return nil
	}
	if err != nil {
		return &ObjectError{Object: step.Ref, Err: err}
	}
	step.live = &live
	switch {
	case step.Object.Once:
		step.Action = ActionNone
		return nil
	case !step.Object.Member:
		return s.probeShared(ctx, p, step, live)
	case live.Labels[v1beta2.ApplySetIDLabel] != "":
		step.Action, step.Reason = ActionRefuse, "is the inventory of a module"
		step.Hint = "rename the module's object"
		return nil
	case s.isOurs(step, &live):
		return s.compare(p, step, live)
	case p.opts.Adopt && s.mayAdopt(ctx, &live):
		step.Action = ActionAdopt
		step.Reason, _ = s.foreign(ctx, &live)
		return nil
	}
	step.Action = ActionRefuse
	step.Reason, step.Hint = s.foreign(ctx, &live)
	return nil
}

// isOurs says whether an object belongs to the set though it was not listed: it was not asked for, or has lost its
// label. One without label that carries other bytes' digest is another module's, unless this one is installed already: then it is
// more likely an older form of our own.
func (s *Set) isOurs(step *Step, live *metav1.PartialObjectMetadata) bool {
	if set, labelled := live.Labels[v1beta2.ApplySetPartOfLabel]; labelled {
		return set == s.setID
	}
	if ownEntry(live, step.Object.Manager) == nil {
		return false
	}
	digest, marked := live.Annotations[v1beta2.DigestAnnotation]
	return s.parent.found || !marked || digest == step.Object.Digest
}

// mayAdopt says whether an object may be taken over: not from another control plane, which would take it back.
func (s *Set) mayAdopt(ctx context.Context, live *metav1.PartialObjectMetadata) bool {
	set := live.Labels[v1beta2.ApplySetPartOfLabel]
	if set == "" {
		return true
	}
	parent, err := s.findParent(ctx, set)
	if errors.Is(err, errNoSet) {
		return true
	}
	owner := parent.Annotations[v1beta2.OwnerAnnotation]
	return err == nil && (owner == "" || owner == s.a.o.Owner)
}

// foreign says to whom an object belongs, and what to do about it.
func (s *Set) foreign(ctx context.Context, live *metav1.PartialObjectMetadata) (reason, hint string) {
	const adopt = "remove or rename one of the two, or take the object over with --adopt (adopt: true on the template)"
	if set := live.Labels[v1beta2.ApplySetPartOfLabel]; set != "" {
		return "belongs to " + s.describeSet(ctx, set), "two modules cannot ship one object: " + adopt
	}
	if release := live.Annotations["meta.helm.sh/release-name"]; release != "" {
		return fmt.Sprintf("belongs to Helm release %s/%s", live.Annotations["meta.helm.sh/release-namespace"], release), adopt
	}
	if owner := metav1.GetControllerOf(live); owner != nil {
		return fmt.Sprintf("belongs to %s %s, which controls it", owner.Kind, owner.Name), "rename the module's object"
	}
	return "exists already and was not made by this module" + madeBy(live), adopt
}

// describeSet names the module that a set belongs to, as far as its parent can be found.
func (s *Set) describeSet(ctx context.Context, setID string) string {
	if name, err := s.findSet(ctx, setID); err == nil {
		return name
	}
	return "ApplySet " + setID
}

// errNoSet says that a set has no parent.
var errNoSet = errors.New("the set has no parent")

// findSet names the module that a set belongs to, or another tool's set; errNoSet if it has no parent.
func (s *Set) findSet(ctx context.Context, setID string) (string, error) {
	parent, err := s.findParent(ctx, setID)
	if err != nil {
		return "", err
	}
	if module := parent.Annotations[v1beta2.ModuleAnnotation]; module != "" {
		return "module " + module, nil
	}
	return fmt.Sprintf("ApplySet %s/%s", parent.Namespace, parent.Name), nil
}

// findParent is the parent of a set, or errNoSet.
func (s *Set) findParent(ctx context.Context, setID string) (metav1.PartialObjectMetadata, error) {
	parents, err := s.t.Client.ListMeta(ctx, configMaps, cluster.ListOptions{LabelSelector: v1beta2.ApplySetIDLabel + "=" + setID})
	if err != nil {
		return metav1.PartialObjectMetadata{}, fmt.Errorf("looking for the owner of %s: %w", setID, err)
	}
	if len(parents) == 0 {
		return metav1.PartialObjectMetadata{}, errNoSet
	}
	return parents[0], nil
}

func madeBy(live *metav1.PartialObjectMetadata) string {
	seen := map[string]bool{}
	for _, e := range live.ManagedFields {
		if e.Subresource == "" {
			seen[e.Manager] = true
		}
	}
	if len(seen) == 0 {
		return ""
	}
	names := make([]string, 0, len(seen))
	for name := range seen {
		names = append(names, name)
	}
	sort.Strings(names)
	return " (but by " + strings.Join(names, ", ") + ")"
}
