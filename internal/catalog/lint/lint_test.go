package lint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/bundle"
	"github.com/kyma-project/mothership/internal/catalog/artifact"
)

// TestEveryRuleIsUnderstood compiles all rules of all definitions: one that only an API server understands would be an error in every
// catalogue.
func TestEveryRuleIsUnderstood(t *testing.T) {
	t.Parallel()
	all, err := schemas()
	if err != nil {
		t.Fatal(err)
	}
	env, err := celEnv()
	if err != nil {
		t.Fatal(err)
	}
	rules := 0
	var walk func(s *schema)
	walk = func(s *schema) {
		if s == nil {
			return
		}
		for _, r := range s.Rules {
			if strings.Contains(r.Rule, "oldSelf") {
				continue
			}
			rules++
			if _, issues := env.Compile(r.Rule); issues.Err() != nil {
				t.Errorf("rule %s: %v", r.Rule, issues.Err())
			}
		}
		walk(s.Items)
		for _, p := range s.Properties {
			walk(p)
		}
	}
	for _, kind := range []string{"ModuleTemplate", "ModuleReleaseMeta"} {
		if all[kind] == nil {
			t.Fatalf("there is no definition of %s", kind)
		}
		walk(all[kind])
	}
	if rules < 20 {
		t.Errorf("only %d rules were found", rules)
	}
}

// run lints documents with a renderer that gives each module one ConfigMap of the name in its path.
func run(t *testing.T, documents ...string) []string {
	t.Helper()
	files := artifact.Files{{Path: "a.yaml", Data: []byte(strings.Join(documents, "---\n"))}}
	var out []string
	for _, f := range Run(t.Context(), files, Options{Render: func(_ context.Context, t *v1beta2.ModuleTemplate) (*Rendered, error) {
		name := artifact.RefOf(&t.Spec.Source).Path
		if name == "broken" {
			return nil, errors.New("it cannot be rendered")
		}
		refs := []bundle.Ref{{Kind: "Namespace", Name: "shared"}}
		for i := range len(name) {
			refs = append(refs, bundle.Ref{Kind: "ConfigMap", Namespace: "demo", Name: name[i : i+1]})
		}
		return &Rendered{Objects: ObjectsOf(refs)}, nil
	}}) {
		out = append(out, fmt.Sprintf("%s %d %s: %s", f.Severity, f.Document, f.Object, f.Message))
	}
	return out
}

func template(module, version, more string) string {
	return fmt.Sprintf("apiVersion: operator.kyma-project.io/v1beta2\nkind: ModuleTemplate\nmetadata: {name: %s-%s}\nspec: {moduleName: %s, version: %s, %s}\n",
		module, version, module, version, more)
}

func release(module, spec string) string {
	return fmt.Sprintf("apiVersion: operator.kyma-project.io/v1beta2\nkind: ModuleReleaseMeta\nmetadata: {name: %s}\nspec: {moduleName: %s, %s}\n", module, module, spec)
}

func path(name string) string { return "source: {manifests: {path: " + name + "}}" }

func TestRun(t *testing.T) {
	t.Parallel()
	regular := "channels: [{channel: regular, version: 1.0.0}]"
	tests := map[string]struct {
		documents []string
		want      []string
	}{
		"Right": {[]string{template("a", "1.0.0", path("x")), release("a", regular)}, nil},
		"Empty": {[]string{"# nothing\n"}, []string{"error 0 : the catalogue has no ModuleTemplate and no ModuleReleaseMeta: they are in the *.yaml, *.yml and *.json at its top"}},
		"MandatoryWithoutTemplate": {[]string{release("a", "mandatory: {version: 1.0.0}")}, []string{
			"error 1 ModuleReleaseMeta a: the mandatory version of module \"a\" is 1.0.0, but ModuleTemplate a-1.0.0 does not exist: the catalogue has none"}},
		"ChannelsAndMandatory": {[]string{template("a", "1.0.0", path("x")), release("a", regular+", mandatory: {version: 1.0.0}")}, []string{
			"error 2 ModuleReleaseMeta a: spec: set either channels or mandatory"}},
		"ChannelTwice": {[]string{template("a", "1.0.0", path("x")), release("a", "channels: [{channel: regular, version: 1.0.0}, {channel: regular, version: 1.0.0}]")}, []string{
			"error 2 ModuleReleaseMeta a: spec.channels[1]: channel \"regular\" is there twice"}},
		"NoSource": {[]string{template("a", "1.0.0", "adopt: true"), release("a", regular)}, []string{
			"error 1 ModuleTemplate a-1.0.0: spec.source: is missing"}},
		"Broken": {[]string{template("a", "1.0.0", path("broken")), release("a", regular)}, []string{
			"error 1 ModuleTemplate a-1.0.0: it cannot be rendered"}},
		"VersionsOfOneModuleShare": {[]string{template("a", "1.0.0", path("x")), template("a", "1.1.0", path("x")), release("a", regular)}, nil},
		"ModulesShare": {[]string{template("a", "1.0.0", path("xyzuvw")), release("a", regular), template("b", "1.0.0", path("xyzuvw")), release("b", regular)}, []string{
			`error 3 ModuleTemplate b-1.0.0: module "a" ships the same: ConfigMap demo/u, ConfigMap demo/v, ConfigMap demo/w, ConfigMap demo/x, ConfigMap demo/y …: two modules cannot have one object`}},
		"AReconcilersSourceIsNotRendered": {[]string{template("a", "1.0.0", path("broken")+", reconciler: mine"), release("a", regular)}, nil},
		"FactsOfOthers":                   {[]string{template("a", "1.0.0", path("x")+", needs: [network.name]"), release("a", regular)}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := run(t, tc.documents...)
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
