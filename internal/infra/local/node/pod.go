package node

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// step is what a pod needs next.
type step int

const (
	stepNone    step = iota // as it should be, or not ours
	stepBind                // it has no node
	stepFinish              // it is being deleted, and something waits for its end before it may go
	stepDelete              // it is being deleted
	stepSucceed             // it does its Job
	stepFail                // it was asked to fail its Job
	stepRun                 // it should run, ready or not
)

// podStep decides from the pod alone.
func podStep(pod *corev1.Pod) step {
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	trouble := pod.Annotations[Simulate]
	switch {
	case pod.Spec.NodeName != "" && pod.Spec.NodeName != Name:
		return stepNone
	case pod.DeletionTimestamp != nil:
		return deletionStep(pod, ended)
	case ended:
		return stepNone
	case pod.Spec.NodeName == "":
		return bindStep(pod)
	case ofJob(pod) && trouble == Fail:
		return stepFail
	case ofJob(pod) && trouble != NeverReady:
		return stepSucceed
	case running(pod, wantReady(pod)):
		return stepNone
	}
	return stepRun
}

// deletionStep: a pod with finalizers (of a Job) must have ended, or its Job would wait for that; one that has no grace
// period left waits for its finalizers only.
func deletionStep(pod *corev1.Pod, ended bool) step {
	switch {
	case len(pod.Finalizers) > 0 && !ended:
		return stepFinish
	case pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds == 0:
		return stepNone
	}
	return stepDelete
}

func bindStep(pod *corev1.Pod) step {
	if len(pod.Spec.SchedulingGates) > 0 {
		return stepNone
	}
	return stepBind
}

// ofJob says whether the pod does a Job's work.
func ofJob(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "Job"
}

// wantReady says whether the pod should be Ready: no trouble was asked for, and its readiness gates are open.
func wantReady(pod *corev1.Pod) bool {
	if trouble := pod.Annotations[Simulate]; trouble == Fail || trouble == NeverReady {
		return false
	}
	for _, gate := range pod.Spec.ReadinessGates {
		if !conditionTrue(pod, gate.ConditionType) {
			return false
		}
	}
	return true
}

// running says whether the pod runs already, and is Ready or not as wanted.
func running(pod *corev1.Pod, ready bool) bool {
	return pod.Status.Phase == corev1.PodRunning && pod.Status.PodIP != "" && conditionTrue(pod, corev1.PodReady) == ready
}

func conditionTrue(pod *corev1.Pod, of corev1.PodConditionType) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == of {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// reconcilePod takes one step; what it writes brings the pod back for the next.
func (n *Node) reconcilePod(ctx context.Context, pod *corev1.Pod) error {
	if err := n.takeStep(ctx, pod, podStep(pod)); err != nil {
		return fmt.Errorf("simulating pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

func (n *Node) takeStep(ctx context.Context, pod *corev1.Pod, step step) error {
	client, now := n.core.Pods(pod.Namespace), metav1.Now()
	switch step {
	case stepNone:
		return nil
	case stepBind:
		return client.Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
			Target:     corev1.ObjectReference{Kind: "Node", Name: Name},
		}, metav1.CreateOptions{})
	case stepDelete:
		return client.Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: new(int64), Preconditions: &metav1.Preconditions{UID: &pod.UID},
		})
	case stepSucceed:
		end(pod, corev1.PodSucceeded, 0, now)
	case stepFail:
		end(pod, corev1.PodFailed, 1, now)
	case stepFinish:
		end(pod, corev1.PodFailed, 128+15, now) // as after SIGTERM
	case stepRun:
		run(pod, wantReady(pod), now)
	}
	_, err := client.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}
