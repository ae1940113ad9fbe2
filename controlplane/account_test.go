package controlplane_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// TestServiceAccountIsRefused has a module that may do less than it wants: its status says who may not do what, the module beside it
// is not disturbed, and it comes through as soon as the template asks for no account.
func TestServiceAccountIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.join()
	s.offers("bold", "1.0.0", func(t *v1beta2.ModuleTemplateSpec) { t.ServiceAccountName = "team" })
	s.offers("calm", "1.0.0")
	s.wants(s.entry("bold"), s.entry("calm"))
	s.at("calm", "1.0.0")
	m := s.module("bold", "refused", func(m v1beta2.ModuleStatus) bool {
		return m.State == v1beta2.StateError && strings.Contains(m.Message, "cannot patch")
	})
	for _, word := range []string{
		"ServiceAccount " + s.name + "/team, which does not exist, may not patch configmaps in namespace " + s.name, "system:serviceaccount:" + s.name + ":team",
	} {
		if !strings.Contains(m.Message, word) {
			t.Errorf("%q is not in: %s", word, m.Message)
		}
	}
	if s.has("bold") {
		t.Error("the module is there although its account may not apply it")
	}
	if calm := s.at("calm", "1.0.0"); calm.Message != "" {
		t.Errorf("the module beside it says: %s", calm.Message)
	}
	change(s, &v1beta2.ModuleTemplate{}, s.mod("bold")+"-1.0.0", func(t *v1beta2.ModuleTemplate) { t.Spec.ServiceAccountName = "" })
	s.at("bold", "1.0.0")
	s.object("bold", "there", func(*corev1.ConfigMap) bool { return true })
}
