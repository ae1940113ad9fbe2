// Package workload has what is installed in a comparison: cert-manager's real chart, and generated charts of any size. Each
// can be rendered to the very bytes that Mothership sends, for contestants that do not render.
//
// It may import the root module's public library and internal/kind.
package workload

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/kyma-project/mothership"
	"github.com/kyma-project/mothership/api/v1beta2"
)

// Case is a module to install.
type Case struct {
	// Name of the case, and of the module and Helm release made of it.
	Name string
	// Chart is the directory of its Helm chart.
	Chart string
	// Values over those of the chart. They are the same as Set.
	Values map[string]any
	// Set are the arguments of --set that give Values.
	Set []string
}

// CertManager is the case of cert-manager's chart, with its definitions. The chart is taken from the Go module cache, as the
// go.mod of the module around the working directory pins it.
func CertManager(ctx context.Context) (Case, error) {
	const module = "github.com/cert-manager/cert-manager"
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return Case{}, fmt.Errorf("finding the module %s: %w", module, err)
	}
	return Case{
		Name:   "cert-manager",
		Chart:  filepath.Join(strings.TrimSpace(string(out)), "deploy", "charts", "cert-manager"),
		Values: map[string]any{"crds": map[string]any{"enabled": true}},
		Set:    []string{"crds.enabled=true"},
	}, nil
}

// Module is the case as the library knows it, in a namespace.
func (c Case) Module(namespace string) mothership.Module {
	return mothership.Module{
		Name: c.Name, Namespace: namespace, Values: c.Values,
		Template: v1beta2.ModuleTemplateSpec{Source: mothership.Chart(c.Chart)},
	}
}
