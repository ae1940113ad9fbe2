package apitest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/kyma-project/mothership/api/crd"
	"github.com/kyma-project/mothership/internal/infra/local/localtest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestExplain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, paths := range map[string][]string{
		"kyma":              {"kyma", "kyma.spec", "kyma.spec.modules", "kyma.spec.modules.valuesFrom", "kyma.status", "kyma.status.modules"},
		"moduletemplate":    {"moduletemplate", "moduletemplate.spec", "moduletemplate.spec.source", "moduletemplate.spec.source.chart", "moduletemplate.spec.health", "moduletemplate.spec.yield"},
		"modulereleasemeta": {"modulereleasemeta", "modulereleasemeta.spec", "modulereleasemeta.spec.channels"},
		"runtime":           {"runtime", "runtime.spec", "runtime.status.facts"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got strings.Builder
			for _, path := range paths {
				got.WriteString("$ kubectl explain " + path + "\n" + localtest.Kubectl(t, b.srv, "explain", path))
			}
			golden(t, filepath.Join("testdata", "explain", name+".txt"), got.String())
		})
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s\nIf it reads better now, run: go test ./internal/apitest -update", file, diff)
	}
}

// node is what is read of a definition's schema.
type node struct {
	Description string          `json:"description"`
	Properties  map[string]node `json:"properties"`
	Items       *node           `json:"items"`
}

// TestDescriptionsSpeakOfTheirField makes sure that each field of ours is described, and by the name that users write.
func TestDescriptionsSpeakOfTheirField(t *testing.T) {
	t.Parallel()
	for _, file := range crd.All() {
		var definition struct {
			Spec struct {
				Versions []struct {
					Schema struct {
						Root node `json:"openAPIV3Schema"`
					} `json:"schema"`
				} `json:"versions"`
			} `json:"spec"`
		}
		if err := yaml.Unmarshal(file, &definition); err != nil {
			t.Fatal(err)
		}
		for _, version := range definition.Spec.Versions {
			for _, name := range []string{"spec", "status"} {
				if field, found := version.Schema.Root.Properties[name]; found {
					described(t, name, field)
				}
			}
		}
	}
}

func described(t *testing.T, path string, field node) {
	t.Helper()
	name := path[strings.LastIndexByte(path, '.')+1:]
	if rest, found := strings.CutPrefix(field.Description, name); !found || rest == "" || strings.IndexAny(rest, " ,(") != 0 || !strings.HasSuffix(rest, ".") {
		t.Errorf("%s is described by %q: begin with the field's name, end with a full stop", path, field.Description)
	}
	if name == "conditions" || name == "kymaSelector" {
		return // types of Kubernetes itself
	}
	properties := field.Properties
	if field.Items != nil {
		properties = field.Items.Properties
	}
	for child, schema := range properties {
		described(t, path+"."+child, schema)
	}
}
