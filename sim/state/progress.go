package state

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kyma-project/mothership/sim/schema"
)

// behaviours make the status of an object that has become what its specification says. Each gets the object and its generation.
var behaviours = map[string]func(object map[string]any, generation int64) map[string]any{
	"deployments.apps": deploymentReady, "statefulsets.apps": statefulSetReady, "daemonsets.apps": daemonSetReady,
	"replicasets.apps": replicaSetReady, "jobs.batch": jobComplete, "pods": podReady, "persistentvolumeclaims": claimBound,
	"services": serviceReady, "ingresses.networking.k8s.io": ingressReady, "apiservices.apiregistration.k8s.io": apiServiceAvailable,
	"poddisruptionbudgets.policy": budgetMet,
}

// progress makes an object ready.
func (c *Cluster) progress(t *table, k key) {
	r, ok := t.get(k)
	if !ok || r.content.Deleting {
		return
	}
	ready := behaviours[t.kind.GroupResource().String()]
	generation := int64(r.generation)
	c.edit(t, r, "progress", fmt.Sprint(generation), func(object map[string]any, v *schema.Version) (map[string]any, error) {
		status := ready(object, generation)
		if status == nil {
			return object, nil
		}
		before := copyTree(object)
		object["status"] = status
		return v.Update(before, object, "kube-controller-manager", schema.Status)
	})
}

func replicas(object map[string]any) int64 {
	if n, ok, err := unstructured.NestedInt64(object, "spec", "replicas"); ok && err == nil {
		return n
	}
	return 1
}

func now() string { return time.Now().UTC().Format(time.RFC3339) }

func condition(kind, reason, message string) map[string]any {
	return map[string]any{"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": now()}
}

func deploymentReady(object map[string]any, generation int64) map[string]any {
	name := schema.MetaOf(object).GetName()
	progressing := condition("Progressing", "NewReplicaSetAvailable", fmt.Sprintf("ReplicaSet %q has successfully progressed.", name))
	available := condition("Available", "MinimumReplicasAvailable", "Deployment has minimum availability.")
	progressing["lastUpdateTime"], available["lastUpdateTime"] = now(), now()
	status := map[string]any{"observedGeneration": generation, "conditions": []any{available, progressing}}
	if n := replicas(object); n > 0 {
		for _, f := range []string{"replicas", "updatedReplicas", "readyReplicas", "availableReplicas"} {
			status[f] = n
		}
	}
	return status
}

func statefulSetReady(object map[string]any, generation int64) map[string]any {
	revision := schema.MetaOf(object).GetName() + fmt.Sprintf("-%d", generation)
	n := replicas(object)
	return map[string]any{
		"observedGeneration": generation, "replicas": n, "readyReplicas": n, "currentReplicas": n, "updatedReplicas": n,
		"availableReplicas": n, "currentRevision": revision, "updateRevision": revision, "collisionCount": int64(0),
	}
}

// daemonSetReady is on one node.
func daemonSetReady(_ map[string]any, generation int64) map[string]any {
	return map[string]any{
		"observedGeneration": generation, "currentNumberScheduled": int64(1), "desiredNumberScheduled": int64(1), "numberReady": int64(1),
		"numberAvailable": int64(1), "updatedNumberScheduled": int64(1), "numberMisscheduled": int64(0),
	}
}

func replicaSetReady(object map[string]any, generation int64) map[string]any {
	n := replicas(object)
	return map[string]any{
		"observedGeneration": generation, "replicas": n, "readyReplicas": n, "availableReplicas": n, "fullyLabeledReplicas": n,
	}
}

func jobComplete(object map[string]any, _ int64) map[string]any {
	if suspended, _, _ := unstructured.NestedBool(object, "spec", "suspend"); suspended {
		return nil
	}
	n := int64(1)
	if completions, ok, _ := unstructured.NestedInt64(object, "spec", "completions"); ok {
		n = completions
	}
	done := condition("Complete", "CompletionsReached", "Reached expected number of succeeded pods")
	criteria := condition("SuccessCriteriaMet", "CompletionsReached", "Reached expected number of succeeded pods")
	done["lastProbeTime"], criteria["lastProbeTime"] = now(), now()
	return map[string]any{
		"startTime": now(), "completionTime": now(), "succeeded": n, "ready": int64(0), "terminating": int64(0),
		"uncountedTerminatedPods": map[string]any{}, "conditions": []any{criteria, done},
	}
}

func podReady(object map[string]any, _ int64) map[string]any {
	specs, _, _ := unstructured.NestedSlice(object, "spec", "containers")
	var containers []any
	for _, raw := range specs {
		spec, _ := raw.(map[string]any)
		containers = append(containers, map[string]any{
			"name": spec["name"], "image": spec["image"], "imageID": "", "ready": true, "started": true, "restartCount": int64(0),
			"state": map[string]any{"running": map[string]any{"startedAt": now()}}, "lastState": map[string]any{},
		})
	}
	var conditions []any
	for _, kind := range []string{"Initialized", "Ready", "ContainersReady", "PodScheduled"} {
		conditions = append(conditions, map[string]any{"type": kind, "status": "True", "lastProbeTime": nil, "lastTransitionTime": now()})
	}
	return map[string]any{
		"phase": "Running", "conditions": conditions, "containerStatuses": containers, "startTime": now(),
		"podIP": "10.64.0.1", "podIPs": []any{map[string]any{"ip": "10.64.0.1"}}, "hostIP": "10.0.0.1", "qosClass": "BestEffort",
	}
}

func claimBound(object map[string]any, _ int64) map[string]any {
	modes, _, _ := unstructured.NestedFieldCopy(object, "spec", "accessModes")
	capacity, _, _ := unstructured.NestedFieldCopy(object, "spec", "resources", "requests")
	status := map[string]any{"phase": "Bound"}
	set(status, "accessModes", modes)
	set(status, "capacity", capacity)
	return status
}

func serviceReady(object map[string]any, _ int64) map[string]any {
	if kind, _, _ := unstructured.NestedString(object, "spec", "type"); kind != "LoadBalancer" {
		return nil
	}
	status := balanced()
	ingress, _ := status["loadBalancer"].(map[string]any)["ingress"].([]any)
	ingress[0].(map[string]any)["ipMode"] = "VIP" //nolint:errcheck,forcetypeassert // made by balanced
	return status
}

func ingressReady(map[string]any, int64) map[string]any { return balanced() }

// balanced is a status with the address of the one load balancer.
func balanced() map[string]any {
	return map[string]any{"loadBalancer": map[string]any{"ingress": []any{map[string]any{"ip": "192.0.2.1"}}}}
}

func apiServiceAvailable(map[string]any, int64) map[string]any {
	return map[string]any{"conditions": []any{condition("Available", "Passed", "all checks passed")}}
}

func budgetMet(_ map[string]any, generation int64) map[string]any {
	return map[string]any{
		"observedGeneration": generation, "currentHealthy": int64(1), "desiredHealthy": int64(1), "expectedPods": int64(1),
		"disruptionsAllowed": int64(0), "conditions": []any{condition("DisruptionAllowed", "SufficientPods", "")},
	}
}
