package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheReferenceIsCurrent(t *testing.T) {
	t.Parallel()
	want, err := page("../..")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../docs/reference.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("docs/reference.md is not what the types say: run make generate (-want +got):\n%s", diff)
	}
}

func TestTheReferenceHas(t *testing.T) {
	t.Parallel()
	got, err := page("../..")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"FieldOfList":     "| `spec.modules[].name` | string | name of the module in the catalogue",
		"Required":        "Required. |\n",
		"Default":         "must agree on it. Default: kyma-system. |",
		"Enumeration":     "| `Secret` `ConfigMap` |",
		"Rule":            "- `spec.modules[]`: set channel or version, not both\n",
		"Ignored":         "- Kyma `spec.modules[].remoteModuleTemplateRef`\n",
		"Reason":          "- `ClusterTaken`: another Kyma manages the same cluster.\n",
		"ComposedName":    "- `operator.kyma-project.io/reconcile` on a Kyma",
		"MentionedByName": "the control plane that owns the set, or `embedded`.",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s: the reference has no %q", name, want)
		}
	}
	if strings.Contains(got, "| spec.modules[].values.") {
		t.Error("the reference describes what is inside of values")
	}
}
