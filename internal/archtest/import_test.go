package archtest

import (
	"slices"
	"strings"
	"testing"
)

// imports lists, for each package of the root and api modules, the packages of this repository that it may import.
// As every edge stands here, nothing can come in through a third package either: the siblings render, apply, remote
// and infra meet in module and nowhere else. Tests may import more: the real thing is better than a mock.
//
// A package that is not listed may be below a listed folder that ends in "/...".
var imports = map[string][]string{
	// Words: they know nothing of how modules are made or applied.
	"api/crd":          {},
	"api/v1beta2":      {},
	"internal/kind":    {},
	"internal/engine":  {},
	"internal/shard":   {},
	"internal/cluster": {"internal/kind"},
	"internal/bundle":  {"api/v1beta2", "internal/kind"},
	"internal/source":  {"api/v1beta2", "internal/source/store"},
	// What source keeps on disk: content by its digest, and nothing of sources.
	"internal/source/store": {},

	// Public contract for whoever drives a component. Nothing internal.
	"reconciler": {"api/v1beta2"},

	// Siblings: they never import each other. apply uses the contract that remote fulfils.
	"internal/render":                {"api/v1beta2", "internal/bundle", "internal/kind", "internal/render/post", "internal/source"},
	"internal/render/post":           {"api/v1beta2", "internal/bundle"},
	"internal/apply":                 {"api/v1beta2", "internal/bundle", "internal/cluster", "internal/kind"},
	"internal/remote":                {"internal/cluster", "internal/kind"},
	"internal/infra":                 {"api/v1beta2"},
	"internal/infra/infratest":       {"internal/infra"},
	"internal/infra/byoc":            {"internal/infra"},
	"internal/infra/local":           {"internal/infra/local/node"},
	"internal/infra/local/node":      {},
	"internal/infra/local/localtest": {"internal/infra/local"},
	"internal/infra/local/provider":  {"api/v1beta2", "internal/infra", "internal/infra/local"},

	// Where they meet.
	"internal/module": {
		"api/v1beta2", "internal/apply", "internal/bundle", "internal/cluster", "internal/kind", "internal/remote",
		"internal/render", "internal/render/post", "internal/source", "reconciler",
	},

	// The fleet: what the controllers share, the controllers, and the only place that wires everything.
	"internal/catalog":          {"api/v1beta2"},
	"internal/catalog/artifact": {"api/v1beta2", "internal/source"},
	"internal/catalog/lint":     {"api/crd", "api/v1beta2", "internal/bundle", "internal/catalog", "internal/catalog/artifact"},
	"internal/fleet":            {"internal/engine"},
	"internal/sops":             {},
	"internal/values":           {"api/v1beta2", "internal/module", "internal/sops"},
	"internal/access":           {"api/v1beta2", "internal/cluster", "internal/module", "internal/remote"},
	"internal/journal":          {"api/v1beta2"},
	"internal/informer":         {"api/v1beta2"},
	"internal/controllers": {
		"api/v1beta2", "internal/access", "internal/apply", "internal/catalog", "internal/controllers/catalog", "internal/controllers/kyma/lifecycle",
		"internal/controllers/kyma/module", "internal/controllers/kyma/status", "internal/controllers/poll", "internal/controllers/runtime/drift",
		"internal/controllers/runtime/lifecycle", "internal/controllers/values", "internal/engine", "internal/fleet", "internal/infra",
		"internal/journal", "internal/module", "internal/remote", "internal/render", "internal/shard", "internal/source", "reconciler",
	},
	"internal/controllers/catalog":           {"api/v1beta2", "internal/catalog", "internal/controllers/kyma/status", "internal/engine", "internal/fleet"},
	"internal/controllers/kyma/lifecycle":    {"api/v1beta2", "internal/access", "internal/catalog", "internal/controllers/kyma/status", "internal/engine", "internal/fleet"},
	"internal/controllers/kyma/status":       {"api/v1beta2", "internal/catalog"},
	"internal/controllers/poll":              {"api/v1beta2", "internal/catalog", "internal/engine", "internal/fleet", "internal/source"},
	"internal/controllers/values":            {"api/v1beta2", "internal/engine", "internal/fleet", "internal/values"},
	"internal/controllers/runtime/lifecycle": {"api/v1beta2", "internal/access", "internal/catalog", "internal/engine", "internal/fleet", "internal/infra"},
	"internal/controllers/kyma/module": {
		"api/v1beta2", "internal/access", "internal/apply", "internal/catalog", "internal/cluster", "internal/controllers/kyma/status", "internal/engine",
		"internal/fleet", "internal/journal", "internal/module", "internal/render", "internal/source", "internal/values", "reconciler",
	},
	"internal/controllers/runtime/drift": {
		"api/v1beta2", "internal/access", "internal/apply", "internal/bundle", "internal/cluster", "internal/controllers/kyma/status",
		"internal/engine", "internal/fleet", "internal/module", "reconciler",
	},
	"controlplane": {
		"api/crd", "api/v1beta2", "internal/controllers", "internal/engine", "internal/informer", "internal/infra", "internal/infra/byoc", "internal/infra/local",
		"internal/infra/local/provider", "internal/remote", "internal/render", "internal/render/post", "internal/shard", "internal/source", "reconciler",
	},

	// The library, and the commands on top of it.
	".": {
		"api/v1beta2", "internal/apply", "internal/bundle", "internal/cluster", "internal/kind", "internal/module",
		"internal/remote", "internal/render", "internal/source", "reconciler",
	},
	"internal/statedir":  {"internal/infra/local"},
	"internal/fleetview": {"api/v1beta2", "controlplane", "internal/catalog", "internal/values"},
	"internal/cli": {
		".", "api/v1beta2", "controlplane", "internal/access", "internal/catalog", "internal/catalog/artifact", "internal/catalog/lint",
		"internal/fleetview", "internal/remote", "internal/render", "internal/render/post", "internal/sops", "internal/source",
		"internal/statedir", "internal/values",
	},
	"cmd/mothership": {".", "controlplane", "internal/cli"},

	// The simulator: a process of its own, which the product knows nothing of.
	"sim/...":            {"internal/kind", "sim/content", "sim/dial", "sim/schema", "sim/state", "sim/wire"},
	"cmd/mothership-sim": {"sim"},

	"internal/apitest":  {},
	"internal/archtest": {},
	"hack/reference":    {"api/crd"},
	"hack/testsum":      {},
	"hack/unwrap":       {},
	"hack/demo/...":     {"api/v1beta2", "controlplane", "internal/infra/local"},
}

func TestImportDirections(t *testing.T) {
	t.Parallel()
	for _, p := range append(list(t, ".", "./..."), list(t, "api", "./...")...) {
		allowed, ok := allowedImports(p.name())
		if !ok {
			t.Errorf("package %s has no row in the table of imports: add it to internal/archtest/import_test.go and to ARCHITECTURE.md", p.name())
			continue
		}
		for _, path := range p.Imports {
			if path != self && !strings.HasPrefix(path, self+"/") {
				continue
			}
			if imported := (pkg{ImportPath: path}).name(); !slices.Contains(allowed, imported) {
				t.Errorf("package %s imports %s, which its row in internal/archtest/import_test.go does not allow", p.name(), imported)
			}
		}
	}
}

// allowedImports finds a package's row: its own, or that of the nearest folder with "/...".
func allowedImports(name string) ([]string, bool) {
	if allowed, ok := imports[name]; ok {
		return allowed, true
	}
	for folder := name; ; {
		if allowed, ok := imports[folder+"/..."]; ok {
			return allowed, true
		}
		i := strings.LastIndexByte(folder, '/')
		if i < 0 {
			return nil, false
		}
		folder = folder[:i]
	}
}

// foreign lists, for the packages that promise it in their doc comment, the third-party packages (and what is below
// them) that they may import directly.
var foreign = map[string][]string{
	"api/crd":          {},
	"api/v1beta2":      {"k8s.io/apimachinery"},
	"internal/kind":    {"k8s.io/apimachinery"},
	"internal/engine":  {}, // it is simulated and fuzzed alone
	"internal/shard":   {"k8s.io/api", "k8s.io/apimachinery", "github.com/go-logr/logr"},
	"internal/cluster": {"k8s.io/apimachinery"},
	"internal/bundle":  {"k8s.io/apimachinery", "golang.org/x/sync"},
	"internal/source": {
		"helm.sh/helm/v4/pkg/ignore", "helm.sh/helm/v4/pkg/provenance", "github.com/ProtonMail/go-crypto/openpgp", "sigs.k8s.io/yaml", "github.com/Masterminds/semver/v3", "github.com/go-git/go-git/v5/plumbing",
		"github.com/go-git/go-git/v5/storage/memory", "github.com/opencontainers/image-spec", "oras.land/oras-go/v2", "golang.org/x/crypto/ssh", "golang.org/x/time/rate",
	},
	"internal/source/store": {},
	"internal/render/post":  {"k8s.io/apimachinery"},
	"internal/sops":         {"filippo.io/age", "go.yaml.in/yaml/v3"},
	"internal/infra":        {},
	"internal/archtest":     {},
	"hack/reference":        {"sigs.k8s.io/yaml"},
	"hack/testsum":          {},
	"hack/unwrap":           {"sigs.k8s.io/yaml"},
	"reconciler":            {"k8s.io/apimachinery", "sigs.k8s.io/controller-runtime/pkg/client"},
	// apply speaks to internal/cluster, never to a server.
	"internal/apply": {"k8s.io/apimachinery", "golang.org/x/sync", "github.com/fluxcd/cli-utils/pkg/kstatus", "github.com/google/cel-go"},
	"cmd/mothership": {},
}

func TestForeignImports(t *testing.T) {
	t.Parallel()
	for _, p := range append(list(t, ".", "./..."), list(t, "api", "./...")...) {
		allowed, ok := foreign[p.name()]
		if !ok {
			continue
		}
		for _, path := range p.Imports {
			if isForeign(path) && !slices.ContainsFunc(allowed, func(a string) bool { return path == a || strings.HasPrefix(path, a+"/") }) {
				t.Errorf("package %s imports %s: it promised not to (internal/archtest/import_test.go)", p.name(), path)
			}
		}
	}
}

// isForeign says whether an import path is of another module than the standard library and this repository's.
func isForeign(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return strings.Contains(first, ".") && path != self && !strings.HasPrefix(path, self+"/")
}

// engines are the libraries that exactly one package may know.
var engines = map[string]string{
	"helm.sh/helm/v4":           "internal/render",
	"sigs.k8s.io/kustomize/api": "internal/render",
}

// harmless are parts of engines that others may use: they import nothing else of them.
var harmless = []string{"helm.sh/helm/v4/pkg/ignore", "helm.sh/helm/v4/pkg/provenance"}

func TestEnginesHaveOneUser(t *testing.T) {
	t.Parallel()
	for _, p := range list(t, ".", "./...") {
		for _, path := range p.Imports {
			for engine, user := range engines {
				if strings.HasPrefix(path, engine+"/") && p.name() != user && !slices.Contains(harmless, path) {
					t.Errorf("package %s imports %s: only %s knows it", p.name(), path, user)
				}
			}
		}
	}
}
