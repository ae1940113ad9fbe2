// Package node stands in for scheduler, kubelet, volume and cloud controllers in clusters that have no machines, so that
// what waits for workloads (Deployments, Jobs, claims, load balancers) can be tried against a real API server.
//
// # Overview
//
// Start makes one Node, honestly labelled as simulated, and watches pods, claims, volumes and load balancer services.
// Each object that is not yet as a cluster would make it is brought there at once:
//
//   - pending pods are bound to the Node, then Running and Ready with an address and the status of every container;
//   - pods of Jobs are Succeeded;
//   - pods being deleted are gone, without their grace period;
//   - claims without a volume get one; volumes whose claim is gone are deleted;
//   - services of type LoadBalancer get an address.
//
// The annotation Simulate on a pod (or pod template) asks for trouble: Fail makes pods of Jobs fail and others crash in a
// loop, NeverReady keeps a pod from ever being Ready, and from ever ending.
//
// # Invariants
//
// What to do with an object follows from the object alone (podStep, claimStep ...): after a restart, or a missed event,
// the next look is enough. Nothing is written that is as it should be. Nothing waits: no image is pulled, no address
// answers, so webhooks and probes of simulated pods do not exist.
//
// # Trade-offs
//
// Node selectors, affinity, taints and resources are not looked at, only scheduling gates are. Claims that name a volume
// themselves are left alone.
//
// The package imports client-go, the Kubernetes API types and logr only.
package node
