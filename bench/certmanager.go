// Package bench compares Mothership with the tools of its field on one real API server in one run: Helm, kubectl,
// fluxcd/pkg/ssa and a bare loop of PATCH requests.
//
// What only a benchmark needs lives in this Go module, so that it never weighs on users of the library or the binary.
// The package may import the root module's public packages and whatever it compares with; nobody imports it.
package bench

// What is compared is pinned by go.mod and kept there by the imports below.
//
// cert-manager's real chart is a directory of its Go module: it is found in the module cache with
//
//	go list -m -f '{{.Dir}}' github.com/cert-manager/cert-manager
//
// under deploy/charts/cert-manager, and never copied into this repository. Its lightest package stands for it here.
import (
	_ "github.com/cert-manager/cert-manager/pkg/apis/certmanager"
	_ "github.com/fluxcd/pkg/ssa"
	_ "helm.sh/helm/v4/pkg/action"
	_ "helm.sh/helm/v4/pkg/cmd"
)
