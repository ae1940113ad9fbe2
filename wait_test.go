package mothership_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kyma-project/mothership"
	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/infra/local/node"
)

// simulating is web with trouble in its pods.
func simulating(trouble string) string {
	return strings.Replace(web, "    metadata: {labels: {app: web}}",
		"    metadata: {labels: {app: web}, annotations: {"+node.Simulate+": "+trouble+"}}", 1)
}

// job is a Job that is tried once.
const job = `
apiVersion: batch/v1
kind: Job
metadata: {name: migrate}
spec:
  backoffLimit: 0
  template:
    metadata: {annotations: {TROUBLE}}
    spec: {restartPolicy: Never, containers: [{name: migrate, image: "migrate:1"}]}
`

// waiting installs a module and waits for it.
func (s *site) waiting(m mothership.Module, timeout time.Duration) (*mothership.Result, error) {
	s.t.Helper()
	start := time.Now()
	r, err := s.installer.Install(s.t.Context(), s.cfg, m, mothership.InstallOptions{Wait: true, Timeout: timeout})
	if took := time.Since(start); took > timeout+5*time.Second {
		s.t.Errorf("it took %s of %s", took, timeout)
	}
	return r, err
}

func TestWaitUntilReady(t *testing.T) {
	t.Parallel()
	s := setup(t)
	m := s.module("web", web+"---"+strings.Replace(job, "TROUBLE", "", 1))
	r, err := s.waiting(m, time.Minute)
	if err != nil || len(r.NotReady) != 0 {
		t.Fatalf("%v, not ready: %v", err, r.NotReady)
	}
	if got := s.kubectl("get", "deployment", "web", "-o", "jsonpath={.status.readyReplicas}"); got != "2" {
		t.Errorf("ready replicas: %s", got)
	}
	again, err := s.waiting(m, time.Minute)
	if err != nil || again.Changed() {
		t.Errorf("again: %v, %v", err, actions(again.Objects))
	}
	if n := again.Requests["list"]; n != 5 {
		t.Errorf("%d lists for 5 kinds: readiness comes with the observation", n)
	}
}

func TestWaitNamesWhatIsNotReady(t *testing.T) {
	t.Parallel()
	s := setup(t)
	r, err := s.waiting(s.module("web", simulating(node.NeverReady)), 4*time.Second)
	var timeout *mothership.TimeoutError
	if !errors.As(err, &timeout) {
		t.Fatalf("error = %v, want a timeout", err)
	}
	wants(t, err.Error(), "waiting until web is ready", "Deployment.apps "+s.namespace+"/web", "0/2")
	if len(r.NotReady) != 1 || r.NotReady[0].Object.Kind != "Deployment" {
		t.Errorf("not ready: %v", r.NotReady)
	}
}

func TestFailedJob(t *testing.T) {
	t.Parallel()
	s := setup(t)
	m := s.module("web", config)
	s.install(m)
	m.Template.Source = s.module("web", strings.Replace(job, "TROUBLE", node.Simulate+": "+node.Fail, 1)+"---"+strings.Replace(config, `"1"`, `"2"`, 1)).Template.Source
	_, err := s.waiting(m, 30*time.Second)
	var failed *mothership.FailedError
	if !errors.As(err, &failed) {
		t.Fatalf("error = %v, want that it failed", err)
	}
	wants(t, err.Error(), "Job.batch "+s.namespace+"/migrate", "failed", "BackoffLimitExceeded")
}

func TestHealthRules(t *testing.T) {
	t.Parallel()
	s := setup(t)
	m := s.module("widgets", widgets+"---"+widget, func(t *v1beta2.ModuleTemplateSpec) {
		t.Health = []v1beta2.HealthRule{{
			Group: s.namespace + ".test", Kind: "Widget",
			Ready: `self.?status.phase.orValue("") == "Good"`, Failed: `self.?status.phase.orValue("") == "Bad"`,
		}}
	})
	_, err := s.waiting(m, 2*time.Second)
	if err == nil {
		t.Fatal("no error")
	}
	wants(t, err.Error(), "Widget."+s.namespace+".test "+s.namespace+"/one", "health rule is not met")
	status := func(phase string) {
		s.kubectl("patch", "widgets."+s.namespace+".test", "one", "--subresource=status", "--type=merge", "-p", `{"status":{"phase":"`+phase+`"}}`)
	}
	status("Bad")
	var failed *mothership.FailedError
	if _, err = s.waiting(m, 20*time.Second); !errors.As(err, &failed) {
		t.Errorf("error = %v, want that it failed", err)
	}
	status("Good")
	if _, err = s.waiting(m, 20*time.Second); err != nil {
		t.Error(err)
	}
	m.Template.Health[0].Ready = "self.status.phase =="
	wants(t, s.refused(m).Error(), "health rule of Widget", "self.status.phase ==", "Syntax error")
}

func TestManagerSaysReady(t *testing.T) {
	t.Parallel()
	s := setup(t)
	m := s.module("widgets", widgets+"---"+widget, func(t *v1beta2.ModuleTemplateSpec) {
		t.Manager = &v1beta2.Manager{Group: s.namespace + ".test", Version: "v1", Kind: "Widget", Name: "one"}
	})
	state := func(state string) {
		s.kubectl("patch", "widgets."+s.namespace+".test", "one", "--subresource=status", "--type=merge", "-p", `{"status":{"state":"`+state+`"}}`)
	}
	_, err := s.waiting(m, 2*time.Second)
	if err == nil {
		t.Fatal("no error")
	}
	wants(t, err.Error(), "Widget", "condition Ready is not set yet")
	state("Processing")
	if _, err = s.waiting(m, 2*time.Second); err == nil {
		t.Fatal("no error")
	}
	wants(t, err.Error(), "its state is Processing")
	state("Error") // managers recover by themselves: it is waited for, and said
	var late *mothership.TimeoutError
	if _, err = s.waiting(m, 2*time.Second); !errors.As(err, &late) {
		t.Fatalf("error = %v, want that the time is over", err)
	}
	wants(t, late.Error(), "its state is Error")
	state("Ready")
	if _, err = s.waiting(m, 20*time.Second); err != nil {
		t.Error(err)
	}
}
