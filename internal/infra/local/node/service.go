package node

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reconcileService gives a load balancer its address, and takes it from a service that is none any more.
func (n *Node) reconcileService(ctx context.Context, service *corev1.Service) error {
	balancer := service.Spec.Type == corev1.ServiceTypeLoadBalancer
	if service.DeletionTimestamp != nil || balancer == (len(service.Status.LoadBalancer.Ingress) > 0) {
		return nil
	}
	service.Status.LoadBalancer = corev1.LoadBalancerStatus{}
	if balancer {
		service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: address(balancerAddresses, service.UID)}}
	}
	_, err := n.core.Services(service.Namespace).UpdateStatus(ctx, service, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("simulating service %s/%s: %w", service.Namespace, service.Name, err)
	}
	return nil
}
