package mothership_test

import (
	"strings"
	"testing"

	"github.com/kyma-project/mothership"
)

// sharedSpace is a Namespace that two modules ship, and an object of the module's own in it.
const sharedSpace = `
apiVersion: v1
kind: Namespace
metadata: {name: $NS-shared, labels: {team: a}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: MODULE, namespace: $NS-shared}
data: {a: b}
`

func TestModulesShareANamespaceOfWhichTheySayTheSame(t *testing.T) {
	t.Parallel()
	s := setup(t)
	one := s.module("one", strings.ReplaceAll(sharedSpace, "MODULE", "one"))
	two := s.module("two", strings.ReplaceAll(sharedSpace, "MODULE", "two"))
	s.install(one)
	s.install(two)
	for _, m := range []mothership.Module{one, two} {
		if r := s.install(m); r.Changed() {
			t.Errorf("%s is changed again, though nobody changed it: %v", m.Name, actions(r.Objects))
		}
	}

	other := s.module("other", strings.NewReplacer("MODULE", "other", "team: a", "team: b").Replace(sharedSpace))
	wants(t, s.refused(other).Error(), s.fill(`Namespace $NS-shared: .metadata.labels.team is "a" there, as module $NS/`))
	if got := s.kubectl("get", "namespace", s.namespace+"-shared", "-o", "jsonpath={.metadata.labels.team}"); got != "a" {
		t.Errorf("the refused module changed the label to %q", got)
	}

	s.kubectl("label", "namespace", s.namespace+"-shared", "team=c", "--overwrite")
	if c := s.verify(one); c.Equal() {
		t.Error("a label of the namespace that a person changed is no drift")
	}
	s.install(one)
	if got := s.kubectl("get", "namespace", s.namespace+"-shared", "-o", "jsonpath={.metadata.labels.team}"); got != "a" {
		t.Errorf("the label that a person changed is %q after the repair", got)
	}

	s.uninstall(one)
	s.uninstall(two)
	s.install(other) // nobody says otherwise any more
	s.uninstall(other)
	s.kubectl("delete", "namespace", s.namespace+"-shared", "--wait=false")
}
