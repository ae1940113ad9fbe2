package apply

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// comparer decides whether live objects are what a bundle's objects say. It needs their metadata only, and asks nobody. It is safe for
// concurrent use.
type comparer struct {
	memo     *coverageMemo
	contests *contests
	// uid of the runtime: contests are told apart by it.
	uid   string
	rules yieldRules
	// learnt are the fields that the server drops or rewrites, by learntKind. The map is never changed.
	learnt map[string][]string
	// applied says that the bundle was applied to the end: what is missing was taken away, and is not new.
	applied bool
}

// comparer is that of the set's runtime for a plan, with what is learnt by now.
func (s *Set) comparer(p *Plan) comparer {
	return comparer{
		memo: s.a.memo, contests: s.a.contests, uid: s.t.UID, rules: p.rules,
		learnt: s.learntFields(), applied: s.parent.bundle == p.bundle.Digest,
	}
}

// compare decides what is to be done with an object that is a member of the set.
func (s *Set) compare(p *Plan, step *Step, live metav1.PartialObjectMetadata) error {
	return s.comparer(p).compare(step, live)
}

// compare decides what is to be done with an object.
func (c comparer) compare(step *Step, live metav1.PartialObjectMetadata) error {
	step.live = &live
	step.Action = ActionNone
	if step.Object.Once {
		return nil
	}
	if live.DeletionTimestamp != nil {
		step.Action, step.Reason = ActionRepair, "is being deleted"
		return nil
	}
	entry := ownEntry(&live, step.Object.Manager)
	if entry == nil {
		step.Action, step.Reason = ActionRepair, "has lost all fields that were applied"
		return nil
	}
	missing, err := c.memo.uncovered(step.Object, entry)
	if err != nil {
		return fmt.Errorf("comparing %s: %w", step.Ref, err)
	}
	c.sortMissing(step, missing)
	changed := live.Annotations[step.Object.DigestKey] != step.Object.Digest
	switch {
	case len(step.Drift) > 0 && c.applied:
		step.Action = ActionRepair
	case changed && !onlyMissing(step.Drift, ".metadata.annotations["+step.Object.DigestKey+"]"):
		step.Action = ActionUpdate
		step.onlyTaken()
	case len(step.Drift) > 0:
		step.Action = ActionRepair
	case changed:
		step.Action = ActionUpdate
	}
	return nil
}

// onlyTaken leaves of the drift what others took: of an object that the bundle changes, what nobody owns may be new. Neither
// counts as a fight.
func (step *Step) onlyTaken() {
	step.Drift = slices.DeleteFunc(step.Drift, func(d Drift) bool { return d.Manager == "" })
	step.contests = nil
}

func onlyMissing(drift []Drift, path string) bool {
	return len(drift) == 1 && drift[0].Path == path
}

// sortMissing tells fields that were taken from us from those that are not ours to fight for.
func (c comparer) sortMissing(step *Step, missing []fieldPath) {
	var others []managed
	for _, path := range missing {
		if slices.Contains(c.learnt[learntKind(step)], path.pointer()) {
			continue
		}
		if others == nil {
			others = otherManagers(step)
		}
		drift := Drift{Path: path.String(), Manager: whoOwns(others, path)}
		key := c.uid + "|" + step.Ref.String() + "|" + drift.Path
		switch {
		case c.rules.yields(step.Ref, path) || scaled(step.live, path):
			if drift.Manager != "" {
				step.yielded = append(step.yielded, path)
			}
		case c.contests.contested(key):
			step.yielded = append(step.yielded, path)
			step.Contested = append(step.Contested, drift)
		default:
			step.Drift = append(step.Drift, drift)
			step.contests = append(step.contests, key)
		}
	}
}

// managed is what another manager owns.
type managed struct {
	manager string
	fields  fields
}

func otherManagers(step *Step) []managed {
	live := step.live
	own := ownEntry(live, step.Object.Manager)
	out := []managed{}
	for i := range live.ManagedFields {
		e := &live.ManagedFields[i]
		if e == own {
			continue
		}
		if tree, err := parseFields(e.FieldsV1); err == nil {
			out = append(out, managed{manager: e.Manager, fields: tree})
		}
	}
	return out
}

func whoOwns(others []managed, path fieldPath) string {
	for _, m := range others {
		if m.fields.owns(path) {
			return m.manager
		}
	}
	return ""
}

// drifted says in what way an object that was compared or looked for is not as it should be; empty if it is.
func (step *Step) drifted() string {
	switch {
	case step.unknown || step.Action == ActionCreate:
		return step.Ref.String() + ": is missing, or has lost the label of its module"
	case step.Action == ActionNone:
		return ""
	case step.Reason != "":
		return step.Ref.String() + ": " + step.Reason
	case len(step.Drift) > 0:
		return step.Ref.String() + ": " + step.Drift[0].String()
	}
	return step.Ref.String() + ": is another version of it"
}
