// Package byoc is the provider of clusters that exist already ("bring your own cluster"): it makes nothing and takes nothing
// away. The kubeconfig is in a Secret that the Runtime names, which is its user's; whoever works on the cluster reads it there.
//
// It imports the API types and the contract infra only.
package byoc

import (
	"context"

	"github.com/kyma-project/mothership/internal/infra"
)

// Provider of clusters that exist already. The zero value works.
type Provider struct{}

var _ infra.Provider = Provider{}

// noKubeconfig is what a Runtime is told that got past the schema without a reference.
const noKubeconfig = "spec.kubeconfig.secretRef is missing: name a Secret that has the cluster's kubeconfig"

// Ensure says that the cluster is there, which is all that is known without asking it: State has no kubeconfig, and whether
// the cluster answers is seen by who works on it.
func (Provider) Ensure(_ context.Context, r infra.Cluster) (infra.State, error) {
	if r.Spec.Kubeconfig == nil || r.Spec.Kubeconfig.SecretRef.Name == "" {
		return infra.State{Message: noKubeconfig}, nil
	}
	return infra.State{Ready: true}, nil
}

// Delete says that the cluster is gone, as far as it was ever ours: it stays where it is, and its modules were removed before.
func (Provider) Delete(context.Context, infra.Cluster) (gone bool, err error) { return true, nil }
