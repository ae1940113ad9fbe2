package crd_test

import (
	"bytes"
	"regexp"
	"slices"
	"testing"

	"github.com/kyma-project/mothership/api/crd"
)

// definitionName is metadata.name of a definition.
var definitionName = regexp.MustCompile(`(?m)^  name: (\S+)$`)

func TestAllAreThereAndSorted(t *testing.T) {
	t.Parallel()
	var names []string
	for _, file := range crd.All() {
		name := definitionName.FindSubmatch(file)
		if name == nil || !bytes.Contains(file, []byte("\nkind: CustomResourceDefinition\n")) {
			t.Fatalf("not a definition:\n%s", file)
		}
		names = append(names, string(name[1]))
	}
	want := []string{
		"kymas.operator.kyma-project.io", "modulereleasemetas.operator.kyma-project.io",
		"moduletemplates.operator.kyma-project.io", "runtimes.operator.kyma-project.io",
	}
	if !slices.Equal(names, want) {
		t.Errorf("definitions %q, want %q", names, want)
	}
}

func TestAllReturnsCopies(t *testing.T) {
	t.Parallel()
	clear(crd.All()[0])
	if first := crd.All()[0]; bytes.Count(first, []byte{0}) > 0 {
		t.Error("a change of what All returned changed the definitions")
	}
}
