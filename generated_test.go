package mothership_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kyma-project/mothership"
)

// drawing is a chart that draws a password.
const drawing = `
apiVersion: v1
kind: Secret
metadata: {name: generated}
stringData: {password: {{ randAlphaNum 20 | quote }} }
---
` + config

func TestGeneratedSecretsAreMadeOnce(t *testing.T) {
	t.Parallel()
	s := setup(t)
	m := mothership.Module{Name: "drawing", Namespace: s.namespace}
	m.Template.Source, m.Template.PerRuntime = chartOf(t, drawing), true
	drawn := func() string { return s.kubectl("get", "secret", "generated", "-o", "jsonpath={.data.password}") }

	if r := s.install(m); r.Count(mothership.ActionCreate) != 2 {
		t.Errorf("fresh: %v", actions(r.Objects))
	}
	first := drawn()
	s.installer = mothership.New(mothership.Options{}) // another process
	if r := s.install(m); r.Changed() {
		t.Errorf("again: %v", actions(r.Objects))
	}
	s.kubectl("patch", "secret", "generated", "-p", `{"data":{"password":"bWluZQ=="}}`)
	if r := s.install(m); r.Changed() || drawn() != "bWluZQ==" {
		t.Errorf("a rotated password is put back: %v", actions(r.Objects))
	}
	s.kubectl("delete", "secret", "generated")
	if s.install(m); drawn() != first {
		t.Error("the lost password is drawn anew, and not the same")
	}
	s.uninstall(m)
	if left := s.members(m); left != "" {
		t.Errorf("left: %s", left)
	}
}

func TestDiffAndVerifyChangeNothing(t *testing.T) {
	t.Parallel()
	s := setup(t)
	m := mothership.Module{Name: "drawing", Namespace: s.namespace + "-new"}
	m.Template.Source, m.Template.PerRuntime = chartOf(t, drawing+"---"+s.fill(widgets)+"---"+s.fill(widget)), true
	want := []string{
		"CustomResourceDefinition widgets." + s.namespace + ".test: created", "ConfigMap config: created", "Secret generated: created", "Widget one: created",
	}
	c := s.diff(m)
	if diff := cmp.Diff(want, changes(c)); diff != "" {
		t.Errorf("diff (-want +got):\n%s", diff)
	}
	if n := writes(c.Requests); n > c.Requests["apply"] {
		t.Errorf("diff wrote: %v", c.Requests)
	}
	if c = s.verify(m); writes(c.Requests) != 0 {
		t.Errorf("verify wrote: %v", c.Requests)
	}
	if s.parent(m) != nil || strings.Contains(s.kubectl("get", "namespaces,crds", "-o", "name"), s.namespace+"-new") || s.members(m) != "" {
		t.Error("something was made")
	}
}
