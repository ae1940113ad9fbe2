package node

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// bindCompleted is the annotation by which volume controllers mark a claim that was bound once.
const bindCompleted = "pv.kubernetes.io/bind-completed"

// claimStep says whether the claim needs a volume of ours: volumes are called after their claim's UID, so that a claim
// that was bound half-way before a restart is bound to the same.
func claimStep(claim *corev1.PersistentVolumeClaim) bool {
	mine := claim.Spec.VolumeName == "" || claim.Spec.VolumeName == volumeName(claim)
	return mine && claim.DeletionTimestamp == nil && claim.Status.Phase != corev1.ClaimBound
}

func volumeName(claim *corev1.PersistentVolumeClaim) string { return "pvc-" + string(claim.UID) }

// reconcileClaim makes the claim's volume and binds the two, as the volume controller and a provisioner do.
func (n *Node) reconcileClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	if !claimStep(claim) {
		return nil
	}
	if err := n.bindClaim(ctx, claim); err != nil {
		return fmt.Errorf("simulating claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return nil
}

func (n *Node) bindClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	if err := n.provision(ctx, claim); err != nil {
		return err
	}
	client := n.core.PersistentVolumeClaims(claim.Namespace)
	if claim.Spec.VolumeName == "" {
		claim.Spec.VolumeName = volumeName(claim)
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, bindCompleted, "yes")
		updated, err := client.Update(ctx, claim, metav1.UpdateOptions{})
		if err != nil {
			return err
		}
		claim = updated
	}
	claim.Status.Phase = corev1.ClaimBound
	claim.Status.AccessModes = claim.Spec.AccessModes
	claim.Status.Capacity = claim.Spec.Resources.Requests
	_, err := client.UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	return err
}

// provision makes the volume of a claim, unless it exists.
func (n *Node) provision(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	client := n.core.PersistentVolumes()
	volume, err := client.Create(ctx, newVolume(claim), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		volume, err = client.Get(ctx, volumeName(claim), metav1.GetOptions{})
	}
	if err != nil || volume.Status.Phase == corev1.VolumeBound {
		return err
	}
	volume.Status.Phase = corev1.VolumeBound
	_, err = client.UpdateStatus(ctx, volume, metav1.UpdateOptions{})
	return err
}

// newVolume is a volume that is just what the claim asks for.
func newVolume(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: volumeName(claim), Labels: map[string]string{Label: "true"}},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: claim.Spec.AccessModes, Capacity: claim.Spec.Resources.Requests, VolumeMode: claim.Spec.VolumeMode,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/simulated"}},
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim",
				Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
		},
	}
	if claim.Spec.StorageClassName != nil {
		volume.Spec.StorageClassName = *claim.Spec.StorageClassName
	}
	return volume
}

// reconcileVolume deletes a volume of ours whose claim is gone. It asks the server, since the claims that are watched may be
// older than the volume.
func (n *Node) reconcileVolume(ctx context.Context, volume *corev1.PersistentVolume) error {
	ref := volume.Spec.ClaimRef
	if volume.Labels[Label] != "true" || ref == nil || volume.DeletionTimestamp != nil {
		return nil
	}
	claim, err := n.core.PersistentVolumeClaims(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if err == nil && claim.UID == ref.UID {
		return nil
	}
	if err == nil || apierrors.IsNotFound(err) {
		err = n.release(ctx, volume)
	}
	if err != nil {
		return fmt.Errorf("simulating volume %s: %w", volume.Name, err)
	}
	return nil
}

// release deletes a volume. The protection controller lets it go only when it is not bound any more.
func (n *Node) release(ctx context.Context, volume *corev1.PersistentVolume) error {
	volume.Status.Phase = corev1.VolumeReleased
	if _, err := n.core.PersistentVolumes().UpdateStatus(ctx, volume, metav1.UpdateOptions{}); err != nil {
		return err
	}
	return n.core.PersistentVolumes().Delete(ctx, volume.Name, metav1.DeleteOptions{})
}
