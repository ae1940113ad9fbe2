package node

import (
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// newPod is a pod that was bound and has not run yet, with changes.
func newPod(changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "1"}}
	pod.Spec.NodeName = Name
	pod.Spec.Containers = []corev1.Container{{Name: "web"}}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

// onNode, simulate, deleting ... are changes for newPod.
func onNode(name string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = name } }

func simulate(trouble string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations = map[string]string{Simulate: trouble} }
}

func deleting(grace int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		now := metav1.Now()
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &now, &grace
	}
}

func tracked(p *corev1.Pod) { p.Finalizers = []string{"batch.kubernetes.io/job-tracking"} }

func gated(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "quota"}} }

func readinessGate(p *corev1.Pod) {
	p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "balanced"}}
}

func jobs(p *corev1.Pod) {
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: "migrate", Controller: new(true)}}
}

func started(p *corev1.Pod) { run(p, wantReady(p), metav1.Now()) }

func ended(p *corev1.Pod) { end(p, corev1.PodSucceeded, 0, metav1.Now()) }

func TestPodStep(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		want step
	}{
		"Pending":                 {newPod(onNode("")), stepBind},
		"SchedulingGate":          {newPod(onNode(""), gated), stepNone},
		"OtherNode":               {newPod(onNode("real")), stepNone},
		"OtherNodeDeleting":       {newPod(onNode("real"), deleting(30)), stepNone},
		"Bound":                   {newPod(), stepRun},
		"Ready":                   {newPod(started), stepNone},
		"NeverReady":              {newPod(simulate(NeverReady)), stepRun},
		"NeverReadyStarted":       {newPod(simulate(NeverReady), started), stepNone},
		"TroubleOver":             {newPod(simulate(NeverReady), started, simulate("")), stepRun},
		"Crashing":                {newPod(simulate(Fail), started), stepNone},
		"ReadinessGateShut":       {newPod(readinessGate, started), stepNone},
		"ReadinessGateOpened":     {newPod(readinessGate, started, func(p *corev1.Pod) { setCondition(p, "balanced", true, "", metav1.Now()) }), stepRun},
		"Job":                     {newPod(jobs), stepSucceed},
		"JobToFail":               {newPod(jobs, simulate(Fail)), stepFail},
		"JobWithoutEnd":           {newPod(jobs, simulate(NeverReady)), stepRun},
		"JobEnded":                {newPod(jobs, ended), stepNone},
		"Deleting":                {newPod(started, deleting(30)), stepDelete},
		"DeletingUnbound":         {newPod(onNode(""), deleting(30)), stepDelete},
		"DeletingWithFinalizer":   {newPod(jobs, tracked, deleting(30)), stepFinish},
		"DeletingEndedFinalizer":  {newPod(jobs, tracked, ended, deleting(30)), stepDelete},
		"DeletingFinalizerRemain": {newPod(jobs, tracked, ended, deleting(0)), stepNone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := podStep(test.pod); got != test.want {
				t.Errorf("step %d; want %d", got, test.want)
			}
		})
	}
}

func TestStatusSettles(t *testing.T) {
	t.Parallel()
	pod := newPod(started)
	before := pod.Status.Conditions[0].LastTransitionTime
	run(pod, true, metav1.NewTime(before.AddDate(1, 0, 0)))
	if after := pod.Status.Conditions[0].LastTransitionTime; !after.Equal(&before) {
		t.Errorf("a condition that did not change moved from %s to %s", before, after)
	}
}

func TestAddressesAreOfTheirBlock(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, block := range []netip.Prefix{podAddresses, balancerAddresses} {
		for _, uid := range []types.UID{"a", "b", "8d2c1f6e-0000-4000-8000-000000000000", ""} {
			ip := address(block, uid)
			if !block.Contains(netip.MustParseAddr(ip)) {
				t.Errorf("%s is not in %s", ip, block)
			}
			if seen[ip] {
				t.Errorf("%s was given twice", ip)
			}
			seen[ip] = true
		}
	}
}
