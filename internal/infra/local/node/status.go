package node

import (
	"fmt"
	"hash/fnv"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// hostIP is the address of the Node, of the block kept for documentation (RFC 5737).
const hostIP = "192.0.2.1"

// Addresses that stand for something are drawn from the object's UID, so that nobody has to remember them: pods from
// 10.128.0.0/9, load balancers from 198.18.0.0/15, the block kept for benchmarks (RFC 2544).
var (
	podAddresses      = netip.MustParsePrefix("10.128.0.0/9")
	balancerAddresses = netip.MustParsePrefix("198.18.0.0/15")
)

// address draws the address of an object from a block of IPv4.
func address(block netip.Prefix, uid types.UID) string {
	hash := fnv.New32a()
	hash.Write([]byte(uid))
	base := block.Addr().As4()
	sum := hash.Sum32() >> block.Bits()
	for i := range base {
		base[i] |= byte(sum >> (24 - 8*i))
	}
	return netip.AddrFrom4(base).String()
}

// run makes the pod's status that of a running one.
func run(pod *corev1.Pod, ready bool, now metav1.Time) {
	place(pod, now)
	pod.Status.Phase = corev1.PodRunning
	containersReady := ready || pod.Annotations[Simulate] == "" // then a readiness gate is what is missing
	setConditions(pod, ready, containersReady, "", now)
	pod.Status.InitContainerStatuses = initStatuses(pod, now)
	pod.Status.ContainerStatuses = nil
	for _, c := range pod.Spec.Containers {
		status := containerStatus(c, containersReady)
		if pod.Annotations[Simulate] == Fail {
			status.RestartCount = 5
			status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
				Reason: "CrashLoopBackOff", Message: "simulated, as the pod's annotation asks for",
			}}
		} else {
			status.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
		}
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
	}
}

// end makes the pod's status that of one whose containers all ended with the exit code.
func end(pod *corev1.Pod, phase corev1.PodPhase, code int32, now metav1.Time) {
	place(pod, now)
	pod.Status.Phase = phase
	reason := map[corev1.PodPhase]string{corev1.PodSucceeded: "PodCompleted", corev1.PodFailed: "PodFailed"}[phase]
	setConditions(pod, false, false, reason, now)
	pod.Status.InitContainerStatuses = initStatuses(pod, now)
	pod.Status.ContainerStatuses = nil
	for _, c := range pod.Spec.Containers {
		status := containerStatus(c, false)
		status.State = terminated(code, now)
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
	}
}

// place gives the pod its address and start time.
func place(pod *corev1.Pod, now metav1.Time) {
	pod.Status.HostIP, pod.Status.HostIPs = hostIP, []corev1.HostIP{{IP: hostIP}}
	ip := address(podAddresses, pod.UID)
	if pod.Spec.HostNetwork {
		ip = hostIP
	}
	pod.Status.PodIP, pod.Status.PodIPs = ip, []corev1.PodIP{{IP: ip}}
	if pod.Status.StartTime == nil {
		pod.Status.StartTime = &now
	}
}

// setConditions sets those that a kubelet sets, and leaves the others (readiness gates, PodScheduled) alone.
func setConditions(pod *corev1.Pod, ready, containersReady bool, reason string, now metav1.Time) {
	setCondition(pod, corev1.PodReadyToStartContainers, true, "", now)
	setCondition(pod, corev1.PodInitialized, true, "", now)
	if !containersReady && reason == "" {
		reason = "ContainersNotReady"
	}
	setCondition(pod, corev1.ContainersReady, containersReady, reason, now)
	if !ready && reason == "" {
		reason = "ReadinessGatesNotReady"
	}
	setCondition(pod, corev1.PodReady, ready, reason, now)
}

func setCondition(pod *corev1.Pod, of corev1.PodConditionType, value bool, reason string, now metav1.Time) {
	want := corev1.PodCondition{
		Type: of, Status: corev1.ConditionFalse, Reason: reason, LastTransitionTime: now,
		ObservedGeneration: pod.Generation,
	}
	if value {
		want.Status, want.Reason = corev1.ConditionTrue, ""
	}
	for i, have := range pod.Status.Conditions {
		if have.Type != of {
			continue
		}
		if have.Status == want.Status {
			want.LastTransitionTime = have.LastTransitionTime
		}
		pod.Status.Conditions[i] = want
		return
	}
	pod.Status.Conditions = append(pod.Status.Conditions, want)
}

// initStatuses are those of init containers that did their work, and of sidecars (restartPolicy Always) that run.
func initStatuses(pod *corev1.Pod, now metav1.Time) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for _, c := range pod.Spec.InitContainers {
		status := containerStatus(c, true)
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways && pod.Status.Phase == corev1.PodRunning {
			status.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
		} else {
			status.State = terminated(0, now)
		}
		out = append(out, status)
	}
	return out
}

// containerStatus is what all states of a container share.
func containerStatus(c corev1.Container, ready bool) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		Name: c.Name, Image: c.Image, ImageID: c.Image, ContainerID: "simulated://" + c.Name,
		Ready: ready, Started: &ready,
	}
}

// terminated is the state of a container that ended.
func terminated(code int32, now metav1.Time) corev1.ContainerState {
	reason := "Completed"
	if code != 0 {
		reason = "Error"
	}
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: reason, Message: fmt.Sprintf("simulated exit %d", code), StartedAt: now, FinishedAt: now,
	}}
}
