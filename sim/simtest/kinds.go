package simtest

import "strings"

// kindCase is one object of a kind, and where its kind is.
type kindCase struct{ path, body string }

const (
	pod     = "{metadata: {labels: {app: x}}, spec: {containers: [{name: c, image: 'example.com/c:1', ports: [{containerPort: 80}], resources: {limits: {cpu: 1000m, memory: 64Mi}}, env: [{name: A, value: b}]}]}}"
	podOnce = "{spec: {restartPolicy: Never, containers: [{name: c, image: example.com/c}]}}"
)

var kinds = []kindCase{
	{"/api/v1/namespaces/$NS/configmaps", "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, annotations: {a: b}}, data: {a: b}}"},
	{"/api/v1/namespaces/$NS/secrets", "{apiVersion: v1, kind: Secret, metadata: {name: x}, data: {a: Yg==}}"},
	{"/api/v1/namespaces/$NS/serviceaccounts", "{apiVersion: v1, kind: ServiceAccount, metadata: {name: x}, automountServiceAccountToken: false}"},
	{"/api/v1/namespaces/$NS/services", "{apiVersion: v1, kind: Service, metadata: {name: x}, spec: {selector: {app: x}, ports: [{name: http, port: 80, targetPort: web}, {name: b, port: 81}]}}"},
	{"/api/v1/namespaces/$NS/persistentvolumeclaims", "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: x}, spec: {storageClassName: none, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1024Mi}}}}"},
	{"/apis/apps/v1/namespaces/$NS/deployments", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}, spec: {selector: {matchLabels: {app: x}}, template: " + pod + "}}"},
	{"/apis/apps/v1/namespaces/$NS/statefulsets", "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: x}, spec: {serviceName: x, selector: {matchLabels: {app: x}}, template: " + pod + "}}"},
	{"/apis/apps/v1/namespaces/$NS/daemonsets", "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: x}, spec: {selector: {matchLabels: {app: x}}, template: " + pod + "}}"},
	{"/apis/batch/v1/namespaces/$NS/cronjobs", "{apiVersion: batch/v1, kind: CronJob, metadata: {name: x}, spec: {schedule: '0 0 1 1 *', suspend: true, jobTemplate: {spec: {template: " + podOnce + "}}}}"},
	{"/apis/rbac.authorization.k8s.io/v1/namespaces/$NS/roles", "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: 'x:y'}, rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}"},
	{"/apis/rbac.authorization.k8s.io/v1/namespaces/$NS/rolebindings", "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: x}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: x}, subjects: [{kind: ServiceAccount, name: x, namespace: $NS}, {kind: User, name: u}]}"},
	{"/apis/rbac.authorization.k8s.io/v1/clusterroles", "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: $NS}, rules: [{nonResourceURLs: [/metrics], verbs: [get]}]}"},
	{"/apis/networking.k8s.io/v1/namespaces/$NS/networkpolicies", "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: x}, spec: {podSelector: {}, egress: [{ports: [{port: 53}]}]}}"},
	{"/apis/networking.k8s.io/v1/namespaces/$NS/ingresses", "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: x}, spec: {rules: [{host: a.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: x, port: {number: 80}}}}]}}]}}"},
	{"/apis/policy/v1/namespaces/$NS/poddisruptionbudgets", "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: x}, spec: {minAvailable: 1, selector: {matchLabels: {app: x}}}}"},
	{"/apis/scheduling.k8s.io/v1/priorityclasses", "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: $NS}, value: 10}"},
	{"/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: $NS}, webhooks: [{name: a.example.com, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {service: {name: x, namespace: $NS}}, rules: [{apiGroups: [none.example.com], apiVersions: [v1], resources: [things], operations: [CREATE]}]}]}"},
	{"/apis/coordination.k8s.io/v1/namespaces/$NS/leases", "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: x}, spec: {holderIdentity: a, leaseDurationSeconds: 15}}"},
	{"/apis/storage.k8s.io/v1/storageclasses", "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: $NS}, provisioner: example.com/none}"},
}

// nameOf is the name of a case's object.
func (k kindCase) nameOf() string {
	_, rest, _ := strings.Cut(k.body, "metadata: {name: ")
	name := strings.Trim(rest[:strings.IndexAny(rest, ",}")], "'")
	return name
}

// applyKinds applies an object of each kind, applies it again, changes a label as somebody else, and drops it.
func applyKinds() []Step {
	var out []Step
	for _, k := range kinds {
		at := k.path + "/" + k.nameOf()
		apply := Step{Do: "PATCH " + at + "?fieldManager=one&force=true", Type: applyType, Body: k.body, Code: 201}
		again := apply
		again.Code = 200
		out = append(out, apply, again,
			Step{Do: "PATCH " + at + "?fieldManager=two", Type: mergeType, Body: "{metadata: {labels: {two: x}}}", Code: 200},
			Step{Do: "GET " + at, Accept: oneMeta, Code: 200},
			Step{Do: "DELETE " + at, Code: 200, Only: "-"},
		)
	}
	return out
}

// createKinds makes an object of each kind by POST, and takes a part of it over by apply.
func createKinds() []Step {
	var out []Step
	for _, k := range kinds {
		at := k.path + "/" + k.nameOf()
		out = append(out,
			Step{Do: "POST " + k.path, Body: k.body, Code: 201},
			Step{Do: "PATCH " + at + "?fieldManager=one&force=true", Type: applyType, Body: k.body, Code: 200},
			Step{Do: "DELETE " + at, Code: 200, Only: "-"},
		)
	}
	return out
}

const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.sim.example.com}
spec:
  group: sim.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, shortNames: [wd]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, minimum: 1}
              colour: {type: string, default: red, enum: [red, blue]}
              parts:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items: {type: object, required: [name], properties: {name: {type: string}, n: {type: integer}}}
          status: {type: object, properties: {phase: {type: string}}}
`

const (
	crds    = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	widgets = "/apis/sim.example.com/v1/namespaces/$NS/widgets"
)

func widget(rest string) string {
	return "{apiVersion: sim.example.com/v1, kind: Widget, metadata: {name: w}, " + rest + "}"
}

var definitions = []Step{
	{Do: "GET " + widgets, Code: 404, Only: "-"},
	{Do: "PATCH " + crds + "/widgets.sim.example.com?fieldManager=one", Type: applyType, Body: definition, Code: 201},
	{Do: "GET " + crds + "/widgets.sim.example.com", Code: 200, Until: "InitialNamesAccepted", Only: "spec"},
	{Do: "GET " + widgets, Code: 200, Until: "-"},
	{Do: "GET /apis/sim.example.com/v1", Code: 200, Until: "widgets/status", Only: "groupVersion"},
	{Do: "POST " + widgets, Body: widget("spec: {colour: red}"), Code: 422},
	{Do: "POST " + widgets, Body: widget("spec: {size: 0}"), Code: 422},
	{Do: "POST " + widgets, Body: widget("spec: {size: 1, colour: green}"), Code: 422},
	{Do: "PATCH " + widgets + "/w?fieldManager=one", Type: applyType, Body: widget("spec: {size: 1, parts: [{name: a, n: 1}]}"), Code: 201},
	{Do: "PATCH " + widgets + "/w?fieldManager=two", Type: applyType, Body: widget("spec: {parts: [{name: b, n: 2}]}"), Code: 200},
	{Do: "PATCH " + widgets + "/w?fieldManager=two", Type: applyType, Body: widget("spec: {size: 2}"), Code: 409},
	{Do: "PATCH " + widgets + "/w/status?fieldManager=three", Type: mergeType, Body: "{status: {phase: Done}, spec: {size: 7}}", Code: 200},
	{Do: "PATCH " + widgets + "/w?fieldManager=three", Type: mergeType, Body: "{status: {phase: Other}, spec: {size: 3}}", Code: 200},
	{Do: "PATCH " + widgets + "/w/status?fieldManager=four&force=true", Type: applyType, Body: widget("status: {phase: Ready}"), Code: 200},
	{Do: "PUT " + widgets + "/w", Body: widget("spec: {size: 3}"), Code: 422},
	{Do: "GET " + widgets, Accept: listMeta, Code: 200},
	{Do: "DELETE " + crds + "/widgets.sim.example.com", Code: 200, Only: "-"},
	{Do: "GET " + crds + "/widgets.sim.example.com", Code: 404, Until: "-"},
	{Do: "GET " + widgets, Code: 404, Until: "-", Only: "-"},
}
