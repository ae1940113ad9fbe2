package apply

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/bundle"
)

// TestBaselineKnowsWhatTheServerRewrites: a field that the server gave to nobody when it was applied is no drift for ever.
func TestBaselineKnowsWhatTheServerRewrites(t *testing.T) {
	t.Parallel()
	b, err := bundle.New([]bundle.Manifest{{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "data": map[string]any{"kept": "1", "dropped": "2"},
	}}}, bundle.Options{Module: "web", Namespace: "demo"})
	if err != nil {
		t.Fatal(err)
	}
	object := b.Objects[0]
	live := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "a", Namespace: "demo", Labels: map[string]string{v1beta2.ApplySetPartOfLabel: bundle.ApplySetID("demo", "web")},
		Annotations: map[string]string{object.DigestKey: object.Digest},
		ManagedFields: []metav1.ManagedFieldsEntry{{
			Manager: v1beta2.FieldManager, Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:` + v1beta2.ApplySetPartOfLabel + `":{}},"f:annotations":{"f:` + object.DigestKey + `":{}}},"f:data":{"f:kept":{}}}`),
		}},
	}}
	s := New(Options{}).set(Target{UID: "uid"}, ID{Namespace: "demo", Module: "web"})
	step := &Step{Object: object, Resource: configMaps, Ref: object.Ref}
	plan := &Plan{bundle: b, Steps: []*Step{step}}
	before := s.Baseline(plan)
	if before.Holds(configMaps, live) {
		t.Error("a field that is not ours any more is no drift")
	}
	if err := s.learn(step, live); err != nil {
		t.Fatal(err)
	}
	if !s.Baseline(plan).Holds(configMaps, live) {
		t.Error("a field that the server drops is drift")
	}
	if before.Holds(configMaps, live) {
		t.Error("a baseline changes with what is learnt later")
	}
}
