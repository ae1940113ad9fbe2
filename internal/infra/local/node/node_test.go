package node_test

import (
	"os"
	"strings"
	"testing"

	"github.com/kyma-project/mothership/internal/infra/local"
	"github.com/kyma-project/mothership/internal/infra/local/localtest"
)

func TestMain(m *testing.M) {
	os.Exit(localtest.Main(m, func(o *local.Options) {
		o.Nodes, o.Controllers = true, local.WorkloadControllers
	}))
}

// cluster runs kubectl in a namespace of the test's own.
type cluster struct {
	*testing.T
	srv       *local.Server
	namespace string
}

func setup(t *testing.T) cluster {
	t.Helper()
	t.Parallel()
	srv := localtest.Server(t)
	return cluster{t, srv, localtest.Namespace(t, srv)}
}

func (c cluster) kubectl(args ...string) string {
	c.Helper()
	return localtest.Kubectl(c.T, c.srv, append([]string{"-n", c.namespace}, args...)...)
}

// wait waits for a condition, as in "condition=Available".
func (c cluster) wait(what, condition string, args ...string) {
	c.Helper()
	c.kubectl(append([]string{"wait", what, "--for=" + condition, "--timeout=45s"}, args...)...)
}

// field reads one field of an object.
func (c cluster) field(what, path string) string {
	c.Helper()
	return c.kubectl("get", what, "-o", "jsonpath="+path)
}

func TestWorkloadsBecomeReady(t *testing.T) {
	c := setup(t)
	c.kubectl("apply", "-f", "testdata/workloads.yaml")
	c.wait("deployment/web", "condition=Available")
	c.wait("service/web", "jsonpath={.status.loadBalancer.ingress[0].ip}")
	c.wait("statefulset/store", "jsonpath={.status.availableReplicas}=2")
	c.wait("daemonset/agent", "jsonpath={.status.numberReady}=1")
	c.wait("pvc/data-store-1", "jsonpath={.status.phase}=Bound")
	c.wait("endpoints/web", "create")
	c.wait("endpoints/web", "jsonpath={.subsets[0].addresses[2].ip}")
	ips := strings.Fields(c.field("pod", "{.items[*].status.podIP}"))
	if len(ips) != 6 {
		t.Errorf("addresses %q; want one for each of 6 pods", ips)
	}
}

func TestJobs(t *testing.T) {
	c := setup(t)
	c.kubectl("apply", "-f", "testdata/jobs.yaml")
	c.wait("job/good", "condition=Complete")
	c.wait("job/bad", "condition=Failed")
	c.wait("job/endless", "jsonpath={.status.active}=1")
	c.wait("pod", "condition=ContainersReady=false", "-l", "job-name=endless")
	if phase := c.field("pod", `{.items[?(@.metadata.labels.job-name=="endless")].status.phase}`); phase != "Running" {
		t.Errorf("the endless job's pod is %s; want it Running", phase)
	}
}

func TestTroubleIsMadeWhereAskedFor(t *testing.T) {
	c := setup(t)
	c.kubectl("apply", "-f", "testdata/trouble.yaml")
	c.wait("deployment/never-ready", "jsonpath={.status.replicas}=1") // or there may be no pod to wait for
	c.wait("deployment/crashing", "jsonpath={.status.replicas}=1")
	c.wait("pod", "condition=Ready=false", "-l", "app=never-ready")
	c.wait("pod", "jsonpath={.status.containerStatuses[0].state.waiting.reason}=CrashLoopBackOff", "-l", "app=crashing")
	c.kubectl("annotate", "pod", "-l", "app=never-ready", "operator.kyma-project.io/simulate-")
	c.wait("deployment/never-ready", "condition=Available")
}

// The namespace controller begins 5 s after the deletion, and looks again after half of the longest grace period of the pods that
// it deleted: the one that is left for it here has a short one.
func TestDeletionIsNotHeldUp(t *testing.T) {
	c := setup(t)
	c.kubectl("apply", "-f", "testdata/workloads.yaml", "-f", "testdata/jobs.yaml")
	c.wait("deployment/web", "condition=Available")
	c.wait("statefulset/store", "jsonpath={.status.availableReplicas}=2")
	c.wait("pvc/data-store-0", "jsonpath={.status.phase}=Bound")
	c.wait("job/endless", "jsonpath={.status.active}=1")
	c.wait("pod", "condition=ContainersReady=false", "-l", "job-name=endless")
	volume := c.field("pvc/data-store-0", "{.spec.volumeName}")

	c.kubectl("delete", "-f", "testdata/workloads.yaml", "--cascade=foreground", "--timeout=20s")
	c.kubectl("delete", "namespace", c.namespace, "--timeout=45s") // waits until it is gone
	c.kubectl("wait", "pv/"+volume, "--for=delete", "--timeout=45s")
}
