package workload

import (
	"fmt"
	"os"
	"path/filepath"
)

const generatedChart = `apiVersion: v2
name: generated
version: 1.0.0
`

// generatedTemplate makes .Values.count objects, each kind in turn, of the size and shape that such objects have in charts.
const generatedTemplate = `{{- range $i := until (int .Values.count) }}
{{- $name := printf "app-%04d" (div $i 7) }}
---
{{- include (printf "kind-%d" (mod $i 7)) (dict "name" $name "release" $.Release) }}
{{- end }}

{{- define "metadata" }}
metadata:
  name: {{ .name }}
  namespace: {{ .release.Namespace }}
  labels:
    app.kubernetes.io/name: {{ .name }}
    app.kubernetes.io/instance: {{ .release.Name }}
    app.kubernetes.io/managed-by: {{ .release.Service }}
{{- end }}

{{- define "kind-0" }}
apiVersion: v1
kind: ServiceAccount
{{- template "metadata" . }}
{{- end }}

{{- define "kind-1" }}
apiVersion: v1
kind: ConfigMap
{{- template "metadata" . }}
data:
  config.yaml: |
    {{- range $n := until 20 }}
    setting-{{ $n }}: value of {{ $.name }} that takes some room on its line
    {{- end }}
{{- end }}

{{- define "kind-2" }}
apiVersion: v1
kind: Secret
{{- template "metadata" . }}
type: Opaque
data:
  password: {{ printf "not a secret of %s" .name | b64enc }}
{{- end }}

{{- define "kind-3" }}
apiVersion: apps/v1
kind: Deployment
{{- template "metadata" . }}
spec:
  replicas: 1
  selector:
    matchLabels:
      app.kubernetes.io/name: {{ .name }}
  template:
    metadata:
      labels:
        app.kubernetes.io/name: {{ .name }}
    spec:
      serviceAccountName: {{ .name }}
      securityContext:
        runAsNonRoot: true
        seccompProfile: {type: RuntimeDefault}
      containers:
      - name: app
        image: example.org/app:1.0.0
        args: ["--config=/etc/app/config.yaml", "--listen=:8080"]
        ports:
        - {name: http, containerPort: 8080, protocol: TCP}
        - {name: metrics, containerPort: 9090, protocol: TCP}
        env:
        - name: NAMESPACE
          valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
        - name: PASSWORD
          valueFrom: {secretKeyRef: {name: {{ .name }}, key: password}}
        readinessProbe:
          httpGet: {path: /ready, port: http}
        resources:
          requests: {cpu: 10m, memory: 32Mi}
          limits: {memory: 64Mi}
        volumeMounts:
        - {name: config, mountPath: /etc/app, readOnly: true}
      volumes:
      - name: config
        configMap: {name: {{ .name }}}
{{- end }}

{{- define "kind-4" }}
apiVersion: v1
kind: Service
{{- template "metadata" . }}
spec:
  selector:
    app.kubernetes.io/name: {{ .name }}
  ports:
  - {name: http, port: 80, targetPort: http, protocol: TCP}
  - {name: metrics, port: 9090, targetPort: metrics, protocol: TCP}
{{- end }}

{{- define "kind-5" }}
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
{{- template "metadata" . }}
rules:
- apiGroups: [""]
  resources: [configmaps, secrets]
  verbs: [get, list, watch]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, create, update]
{{- end }}

{{- define "kind-6" }}
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
{{- template "metadata" . }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ .name }}
subjects:
- kind: ServiceAccount
  name: {{ .name }}
  namespace: {{ .release.Namespace }}
{{- end }}
`

// Generated is the case of a generated chart of n objects (ServiceAccounts, ConfigMaps, Secrets, Deployments, Services,
// Roles and RoleBindings, in turn), which is written into the folder.
func Generated(folder string, n int) (Case, error) {
	c := Case{
		Name: fmt.Sprintf("module-%d", n), Chart: filepath.Join(folder, fmt.Sprintf("generated-%d", n)),
		Values: map[string]any{"count": n}, Set: []string{fmt.Sprintf("count=%d", n)},
	}
	if err := os.MkdirAll(filepath.Join(c.Chart, "templates"), 0o755); err != nil {
		return c, fmt.Errorf("generating a chart: %w", err)
	}
	for name, content := range map[string]string{
		"Chart.yaml": generatedChart, "values.yaml": "count: 7\n", "templates/objects.yaml": generatedTemplate,
	} {
		if err := os.WriteFile(filepath.Join(c.Chart, name), []byte(content), 0o644); err != nil {
			return c, fmt.Errorf("generating a chart: %w", err)
		}
	}
	return c, nil
}
