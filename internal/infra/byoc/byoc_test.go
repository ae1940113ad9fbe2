package byoc_test

import (
	"strings"
	"testing"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/infra"
	"github.com/kyma-project/mothership/internal/infra/byoc"
	"github.com/kyma-project/mothership/internal/infra/infratest"
)

func cluster(secret string) infra.Cluster {
	ref := v1beta2.SecretKeyReference{Name: secret, Key: "kubeconfig"}
	return infra.Cluster{
		Namespace: "kcp-system", Name: "mine", UID: "7a6b6a0e-7f9c-4a51-8f6e-0d6c8f1f2b11",
		Spec: v1beta2.RuntimeSpec{Provider: v1beta2.ProviderBYOC, Kubeconfig: &v1beta2.KubeconfigSpec{SecretRef: ref}},
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	infratest.Conforms(t, byoc.Provider{}, cluster("kubeconfig-of-mine"))
}

func TestKubeconfigIsTheUsers(t *testing.T) {
	t.Parallel()
	state, err := byoc.Provider{}.Ensure(t.Context(), cluster("kubeconfig-of-mine"))
	if err != nil || !state.Ready || state.Kubeconfig != nil || state.KubeconfigVersion != "" {
		t.Errorf("state %v, %v; want it ready without a kubeconfig of the provider's", state, err)
	}
}

func TestMissingReference(t *testing.T) {
	t.Parallel()
	noSpec := cluster("")
	noSpec.Spec.Kubeconfig = nil
	for name, r := range map[string]infra.Cluster{"NoName": cluster(""), "NoKubeconfig": noSpec} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state, err := byoc.Provider{}.Ensure(t.Context(), r)
			if err != nil || state.Ready || !strings.Contains(state.Message, "spec.kubeconfig.secretRef") {
				t.Errorf("state %v, %v; want a message that says what is missing", state, err)
			}
		})
	}
}
