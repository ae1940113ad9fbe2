package archtest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// requirement is one line of a go.mod, as `go mod edit -json` prints it.
type requirement struct {
	Path     string
	Indirect bool
}

func requirements(t *testing.T, module string) []requirement {
	t.Helper()
	var mod struct{ Require []requirement }
	if err := json.Unmarshal(run(t, module, "mod", "edit", "-json"), &mod); err != nil {
		t.Fatal(err)
	}
	return mod.Require
}

// The parts of a row of a table in docs/dependencies.md: | `module` | why | upkeep | licence | weight |.
var dependencyRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]+) \\| ([^|]+) \\| ([^|]+) \\| ([^|]+) \\|$")

// licences may be linked into an Apache-2.0 program without further thought. A row joins several by ", " and " and ".
var licences = regexp.MustCompile(`^(Apache-2\.0|BSD-3-Clause|MIT|, | and )+$`)

func TestEveryDirectDependencyIsExplained(t *testing.T) {
	t.Parallel()
	explained := map[string]bool{}
	for _, row := range dependencyRow.FindAllStringSubmatch(read(t, "docs/dependencies.md"), -1) {
		explained[row[1]] = true
		if !licences.MatchString(row[4]) {
			t.Errorf("docs/dependencies.md: licence %q of %s is none of those that need no thought", row[4], row[1])
		}
	}
	required := map[string]bool{}
	for _, module := range modules {
		for _, r := range requirements(t, module) {
			if r.Indirect || strings.HasPrefix(r.Path, self) {
				continue
			}
			required[r.Path] = true
			if !explained[r.Path] {
				t.Errorf("%s/go.mod requires %s, which has no row in docs/dependencies.md: say why it is needed", module, r.Path)
			}
		}
	}
	for path := range explained {
		if !required[path] {
			t.Errorf("docs/dependencies.md explains %s, which no go.mod requires directly: remove the row", path)
		}
	}
}

func TestAPIHasAlmostNoDependencies(t *testing.T) {
	t.Parallel()
	allowed := []string{"k8s.io/apimachinery", "github.com/google/go-cmp"} // go-cmp: for tests
	for _, r := range requirements(t, "api") {
		if !r.Indirect && !slices.Contains(allowed, r.Path) {
			t.Errorf("api/go.mod requires %s: every client of the API would inherit it", r.Path)
		}
	}
}

func TestLinkedModules(t *testing.T) {
	t.Parallel()
	var linked []string
	for _, p := range list(t, ".", "-deps", "./cmd/mothership") {
		if !p.Standard && p.Module != nil && !strings.HasPrefix(p.Module.Path, self) {
			linked = append(linked, p.Module.Path)
		}
	}
	slices.Sort(linked)
	got := strings.Join(slices.Compact(linked), "\n") + "\n"

	golden := filepath.Join("testdata", "linked-modules.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("modules linked into bin/mothership (-want +got):\n%s\nIf each new one is worth its weight, run: go test ./internal/archtest -update", diff)
	}
}
