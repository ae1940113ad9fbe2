package render

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	chartvalues "helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"

	"github.com/kyma-project/mothership/internal/bundle"
)

// featureChart uses what charts use: helpers, subcharts with conditions, tags, aliases and imported values, globals,
// files, capabilities, loops, tpl, CRDs, hooks and notes.
const featureChart = `
-- Chart.yaml --
apiVersion: v2
name: feature
version: 1.2.3
appVersion: "4.5"
kubeVersion: ">=1.25.0-0"
dependencies:
- {name: first, version: 0.1.0, condition: first.enabled}
- {name: second, version: 0.1.0, condition: second.enabled}
- {name: tagged, version: 0.1.0, tags: [extra]}
- {name: first, version: 0.1.0, alias: twin, import-values: [{child: exported, parent: imported}]}
- {name: lib, version: 0.1.0}
-- values.yaml --
global: {team: blue}
second: {enabled: false}
tags: {extra: false}
replicas: 2
big: 1000000
text: "{{ .Release.Name }}-{{ .Values.global.team }}"
gone: {a: 1}
-- .helmignore --
ignored/
*.bak
-- files/one.txt --
line
-- ignored/templates.txt --
x
-- crds/things.yaml --
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec: {group: example.com, scope: Cluster, names: {kind: Thing, plural: things}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}
-- templates/_helpers.tpl --
{{- define "feature.labels" }}
app: {{ .Chart.Name }}
version: {{ .Chart.AppVersion | quote }}
{{- end }}
-- templates/all.yaml --
{{- range $i := until (int .Values.replicas) }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: part-{{ $i }}
  labels: {{- include "feature.labels" $ | nindent 4 }}
data:
  release: {{ $.Release.Name }}/{{ $.Release.Namespace }}/{{ $.Release.Service }}/{{ $.Release.Revision }}/{{ $.Release.IsInstall }}
  template: {{ $.Template.Name }}
  kube: {{ $.Capabilities.KubeVersion.Version }}
  text: {{ tpl $.Values.text $ }}
  file: {{ $.Files.Get "files/one.txt" | quote }}
  ignored: {{ $.Files.Get "ignored/templates.txt" | quote }}
  missing: {{ $.Values.nothing | default "none" }}{{ $.Values.unset }}
  big: {{ $.Values.big | quote }}
  imported: {{ $.Values.imported | toJson | quote }}
{{- end }}
---
{{- if .Values.never }}
bad: [
{{- end -}}

# trimmed
apiVersion: v1
kind: Secret
metadata: {name: kept, annotations: {helm.sh/resource-policy: keep}}
stringData:
  pem: |
    -----BEGIN X-----
    ---
-- templates/.hidden.yaml --
not: [yaml
-- templates/backup.yaml.bak --
not: [yaml
-- templates/empty.yaml --
{{- if false }}x{{ end }}
-- templates/hooks.yaml --
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, annotations: {helm.sh/hook: "pre-install, Post-Upgrade", helm.sh/hook-weight: "-5"}}
---
apiVersion: v1
kind: Pod
metadata: {name: probe, annotations: {helm.sh/hook: test-success}}
---
apiVersion: v1
kind: Pod
metadata: {name: odd, annotations: {helm.sh/hook: crd-install}}
-- templates/NOTES.txt --
Thank you for {{ .Release.Name }}.
-- charts/first/Chart.yaml --
apiVersion: v2
name: first
version: 0.1.0
-- charts/first/values.yaml --
exported: {port: 80}
-- charts/first/crds/others.yaml --
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: others.example.com}
spec: {group: example.com, scope: Namespaced, names: {kind: Other, plural: others}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}
-- charts/first/templates/cm.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: on-{{ .Chart.Name }}}
data: {team: {{ .Values.global.team }}, lib: {{ include "lib.name" . }}, template: {{ .Template.Name }}}
-- charts/second/Chart.yaml --
apiVersion: v2
name: second
version: 0.1.0
-- charts/second/templates/cm.yaml --
{{ fail "the subchart is off" }}
-- charts/tagged/Chart.yaml --
apiVersion: v2
name: tagged
version: 0.1.0
-- charts/tagged/templates/cm.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: tagged}
-- charts/lib/Chart.yaml --
apiVersion: v2
name: lib
version: 0.1.0
type: library
-- charts/lib/templates/_lib.tpl --
{{ define "lib.name" }}lib-{{ .Release.Name }}{{ end }}
`

func featureRequest() Request {
	r := request(Chart, strings.TrimPrefix(featureChart, "\n"))
	// The second CRD of an alias is the same object as the first: Helm installs both, one after the other.
	for i, f := range r.Tree.Files {
		if f.Path == "charts/first/crds/others.yaml" {
			r.Tree.Files = append(r.Tree.Files[:i:i], r.Tree.Files[i+1:]...)
			break
		}
	}
	return r
}

func TestChart(t *testing.T) {
	t.Parallel()
	b := mustRender(t, featureRequest())
	want := []string{
		"ConfigMap demo-system/on-first", "ConfigMap demo-system/on-twin", "ConfigMap demo-system/part-0", "ConfigMap demo-system/part-1",
		"CustomResourceDefinition.apiextensions.k8s.io things.example.com", "Secret demo-system/kept",
	}
	if diff := cmp.Diff(want, refs(b)); diff != "" {
		t.Error(diff)
	}
	wantHooks := []bundle.Hook{
		{Ref: bundle.Ref{Group: "batch", Kind: "Job", Name: "migrate"}, Events: []string{"pre-install", "post-upgrade"}, Origin: "feature/templates/hooks.yaml"},
		{Ref: bundle.Ref{Kind: "Pod", Name: "probe"}, Events: []string{"test"}, Origin: "feature/templates/hooks.yaml#2"},
	}
	if diff := cmp.Diff(wantHooks, b.Hooks); diff != "" {
		t.Error(diff)
	}
	wantWarnings := []string{`feature/templates/hooks.yaml#3: Pod odd is left out, as Helm does: "crd-install" is no hook`}
	if diff := cmp.Diff(wantWarnings, b.Warnings); diff != "" {
		t.Error(diff)
	}
	part := bytesOf(t, b, "part-1")
	for _, text := range []string{
		`"release":"demo/demo-system/Helm/1/true"`, `"text":"demo-blue"`, `"kube":"v1.36.0"`, `"file":"line\n"`, `"ignored":""`,
		`"big":"1e+06"`, `"imported":"{\"port\":80}"`, `"template":"feature/templates/all.yaml"`, `"version":"4.5"`,
	} {
		if !strings.Contains(part, text) {
			t.Errorf("no %s in %s", text, part)
		}
	}
	for _, o := range b.Objects {
		if o.Keep != (o.Name == "kept") {
			t.Errorf("%s: keep is %v", o.Ref, o.Keep)
		}
	}
}

func TestChartValuesDecide(t *testing.T) {
	t.Parallel()
	r := featureRequest()
	r.Values = map[string]any{
		"replicas": 0, "tags": map[string]any{"extra": true}, "first": map[string]any{"enabled": false}, "unknown": map[string]any{"key": 1},
		"gone": nil,
	}
	b := mustRender(t, r)
	want := []string{
		"ConfigMap demo-system/on-twin", "ConfigMap demo-system/tagged",
		"CustomResourceDefinition.apiextensions.k8s.io things.example.com", "Secret demo-system/kept",
	}
	if diff := cmp.Diff(want, refs(b)); diff != "" {
		t.Error(diff)
	}
	r.Values = map[string]any{"second": map[string]any{"enabled": true}}
	_, err := New(Options{}).Render(context.Background(), r)
	wantError(t, err, ErrTemplate, "feature/charts/second/templates/cm.yaml, line 1: the subchart is off")
}

// helmManifests is what Helm itself makes of a chart: its functions, its way to cut documents, its decoding.
func helmManifests(t *testing.T, r *Request) []map[string]any {
	t.Helper()
	var files []*archive.BufferedFile
	for _, f := range filesBelow(r.Tree) {
		if !strings.HasSuffix(f.Path, ".bak") && !strings.HasPrefix(f.Path, "ignored/") && !strings.HasPrefix(f.Path, "templates/.") {
			files = append(files, &archive.BufferedFile{Name: f.Path, Data: f.Data})
		}
	}
	ch, err := loader.LoadFiles(files)
	if err != nil {
		t.Fatal(err)
	}
	values, err := cloneValues(r.Values)
	if err != nil {
		t.Fatal(err)
	}
	if err := chartutil.ProcessDependencies(ch, values); err != nil {
		t.Fatal(err)
	}
	class, _ := r.Capabilities.normalise()
	caps, err := class.helm()
	if err != nil {
		t.Fatal(err)
	}
	release := common.ReleaseOptions{Name: r.Module, Namespace: r.Namespace, Revision: 1, IsInstall: true}
	top, err := chartvalues.ToRenderValues(ch, values, release, caps)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := engine.Engine{}.RenderWithContext(context.Background(), ch, top)
	if err != nil {
		t.Fatal(err)
	}
	for name := range rendered {
		if strings.HasSuffix(name, notesSuffix) {
			delete(rendered, name)
		}
	}
	_, manifests, err := releaseutil.SortManifests(rendered, nil, releaseutil.InstallOrder)
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]any
	for _, crd := range ch.CRDObjects() {
		out = append(out, kubectlMap(t, crd.File.Data))
	}
	for _, m := range manifests {
		if m := kubectlMap(t, []byte(m.Content)); m != nil {
			out = append(out, m)
		}
	}
	return out
}

func kubectlMap(t *testing.T, data []byte) map[string]any {
	t.Helper()
	v, err := kubectlDecode(data)
	if err != nil {
		t.Fatal(err)
	}
	m, _ := v.(map[string]any)
	return m
}

func TestSameAsHelm(t *testing.T) {
	t.Parallel()
	certManager := certManager(t)
	monitored := certManager
	monitored.Capabilities = Capabilities{APIVersions: []string{"monitoring.coreos.com/v1"}}
	monitored.Values = map[string]any{
		"crds":         map[string]any{"enabled": true, "keep": false},
		"prometheus":   map[string]any{"servicemonitor": map[string]any{"enabled": true}},
		"replicaCount": 3, "podDisruptionBudget": map[string]any{"enabled": true},
	}
	for name, r := range map[string]Request{"Feature": featureRequest(), "CertManager": certManager, "Monitored": monitored} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := renderChart(context.Background(), &r, Limits{}.withDefaults())
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]map[string]any{}
			for _, o := range out.objects {
				got[refOf(o.fields).String()] = o.fields
			}
			want := map[string]map[string]any{}
			for _, m := range helmManifests(t, &r) {
				want[refOf(m).String()] = m
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestChartErrors(t *testing.T) {
	t.Parallel()
	one := "-- templates/a.yaml --\n" + configMap("a")
	for name, tc := range map[string]struct {
		archive string
		values  map[string]any
		kind    error
		text    string
	}{
		"NoChart":         {one, nil, ErrMalformed, "Chart.yaml is missing"},
		"Library":         {chartYAML + "type: library\n" + one, nil, ErrMalformed, `Chart.yaml: a chart of type "library" is part of other charts`},
		"VersionThree":    {"-- Chart.yaml --\napiVersion: v3\nname: demo\nversion: 1.0.0\n" + one, nil, ErrMalformed, `apiVersion "v3" is not accepted`},
		"KubeVersion":     {chartYAML + "kubeVersion: \">=1.99.0\"\n" + one, nil, ErrMalformed, "needs Kubernetes >=1.99.0, but the runtime has v1.36.0"},
		"Dependencies":    {chartYAML + "dependencies: [{name: redis, version: 1.x}, {name: mongo, version: 1.x}]\n" + one, nil, ErrMalformed, "missing in charts/: redis, mongo: run helm dependency build"},
		"ChartTwice":      {chartYAML + "name: again\n" + one, nil, ErrMalformed, `Chart.yaml, document 1, line 4: key "name" is set twice`},
		"ValuesBroken":    {chartYAML + "-- values.yaml --\na: 1\nb: [\n" + one, nil, ErrMalformed, "values.yaml, document 1, line"},
		"NoVersion":       {"-- Chart.yaml --\napiVersion: v2\nname: demo\n" + one, nil, ErrMalformed, "version is required"},
		"SubchartBroken":  {chartYAML + "-- charts/sub/Chart.yaml --\nname: [\n" + one, nil, ErrMalformed, "error unpacking subchart sub"},
		"Fail":            {chartYAML + "-- templates/a.yaml --\n\n{{ fail \"no \\\"good\\\": values\" }}\n", nil, ErrTemplate, `demo/templates/a.yaml, line 2: no "good": values`},
		"Required":        {chartYAML + "-- templates/a.yaml --\na: {{ required \"host is needed\" .Values.host }}\n", nil, ErrTemplate, "demo/templates/a.yaml, line 1: host is needed"},
		"UnknownFunction": {chartYAML + "-- templates/a.yaml --\na: 1\nb: {{ nope }}\n", nil, ErrTemplate, `demo/templates/a.yaml, line 2: the template cannot be parsed: function "nope" not defined`},
		"Syntax":          {chartYAML + "-- templates/a.yaml --\n{{ if }}\n", nil, ErrTemplate, "demo/templates/a.yaml, line 1: the template cannot be parsed: missing value for if"},
		"NilPointer":      {chartYAML + "-- templates/a.yaml --\na: 1\nb: {{ .Values.x.y.z }}\n", nil, ErrTemplate, "demo/templates/a.yaml, line 2: {{.Values.x.y.z}}: nil pointer evaluating"},
		"InHelper": {
			chartYAML + "-- templates/_h.tpl --\n{{ define \"h\" }}\n{{ .Values.x.y }}\n{{ end }}\n-- templates/a.yaml --\na: 1\nb: {{ include \"h\" . }}\n", nil, ErrTemplate,
			"demo/templates/_h.tpl, line 2: {{.Values.x.y}}: nil pointer evaluating interface {}.y (from demo/templates/a.yaml, line 2)",
		},
		"NoTemplate":       {chartYAML + "-- templates/a.yaml --\na: {{ include \"h\" . }}\n", nil, ErrTemplate, "demo/templates/a.yaml, line 1: "},
		"RecursiveInclude": {chartYAML + "-- templates/a.yaml --\n{{ define \"r\" }}{{ include \"r\" . }}{{ end }}a: {{ include \"r\" . }}\n", nil, ErrTemplate, "nested reference name: r"},
		"RenderedYAML":     {chartYAML + "-- templates/a.yaml --\n{{ range until 3 }}\n\n{{ end }}a: 1\na: 2\n", nil, ErrMalformed, `demo/templates/a.yaml, document 1, line 8 of the rendered text: key "a" is set twice`},
		"RenderedText":     {chartYAML + "-- templates/a.txt --\nhello\n", nil, ErrMalformed, "demo/templates/a.txt, document 1: not an object but a string"},
		"NoName":           {chartYAML + "-- templates/a.yaml --\napiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: x-}\n", nil, ErrMalformed, "demo/templates/a.yaml: ConfigMap: metadata.generateName"},
		"HelmIgnore":       {chartYAML + "-- .helmignore --\n**/x\n" + one, nil, ErrMalformed, ".helmignore: double-star"},
		"BadValue":         {chartYAML + one, map[string]any{"a": struct{}{}}, ErrValues, "type struct {} is not accepted"},
		"RandomInTpl":      {chartYAML + "-- templates/a.yaml --\na: {{ tpl .Values.t . }}\n", map[string]any{"t": "{{ uuidv4 }}"}, ErrRandom, `function "uuidv4" draws randomness`},
		"RandomInHelper": {
			chartYAML + "-- templates/_h.tpl --\n{{ define \"h\" }}\n{{ genCA \"x\" 1 }}\n{{ end }}\n-- templates/a.yaml --\na: {{ include \"h\" . }}\n", nil, ErrRandom,
			`demo/templates/_h.tpl, line 2: function "genCA" draws randomness, so that every rendering would differ: set the value explicitly in values, or set perRuntime: true on the template (from demo/templates/a.yaml, line 1)`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := request(Chart, tc.archive)
			r.Values = tc.values
			_, err := New(Options{}).Render(context.Background(), r)
			wantError(t, err, tc.kind, tc.text)
			wantError(t, err, tc.kind, `module "demo": `)
			if strings.Contains(err.Error(), "HELM_ERR") || strings.Contains(err.Error(), enterFunc) {
				t.Errorf("noise in %v", err)
			}
		})
	}
}

func TestTemplateErrorsHideSecrets(t *testing.T) {
	t.Parallel()
	for name, template := range map[string]string{
		"Fail":      `{{ fail (printf "bad password %s" .Values.auth.password) }}`,
		"Tpl":       `{{ tpl .Values.auth.password . }}`,
		"Regex":     `{{ mustRegexMatch .Values.auth.password "x" }}`,
		"NotParsed": "kind: Secret\nstringData: {a: [{{ .Values.auth.password }}",
		"Duplicate": "kind: Secret\nstringData:\n  {{ .Values.auth.password | quote }}: 1\n  {{ .Values.auth.password | quote }}: 1\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := request(Chart, chartYAML+"-- templates/a.yaml --\n"+template+"\n")
			r.Values = map[string]any{"auth": map[string]any{"password": "hunter2{{ ( nope"}}
			_, err := New(Options{}).Render(context.Background(), r)
			if err == nil || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestLongReleaseName(t *testing.T) {
	t.Parallel()
	r := featureRequest()
	r.Module = strings.Repeat("x", 54)
	_, err := New(Options{}).Render(context.Background(), r)
	wantError(t, err, ErrMalformed, "cannot be a release of a chart")
}

func TestChartInFolder(t *testing.T) {
	t.Parallel()
	r := request(Chart, "-- other.yaml --\nx: [\n-- deploy/demo/Chart.yaml --\napiVersion: v2\nname: demo\nversion: 1.2.3\n-- deploy/demo/templates/a.yaml --\n"+configMap("a"))
	r.Tree.Root = "deploy/demo"
	if diff := cmp.Diff([]string{"ConfigMap demo-system/a"}, refs(mustRender(t, r))); diff != "" {
		t.Error(diff)
	}
}

func TestShapeWarnings(t *testing.T) {
	t.Parallel()
	r := request(Chart, chartYAML+"-- values.yaml --\nauth: {deep: {password: x}}\n-- templates/a.yaml --\n"+configMap("a"))
	r.Values = map[string]any{"auth": map[string]any{"deep": "hunter2"}}
	b := mustRender(t, r)
	if len(b.Warnings) == 0 || !strings.Contains(b.Warnings[0], "auth.deep is a table") || strings.Contains(strings.Join(b.Warnings, ""), "hunter2") {
		t.Errorf("warnings: %q", b.Warnings)
	}
}

func TestCapabilities(t *testing.T) {
	t.Parallel()
	r := request(Chart, chartYAML+"-- templates/a.yaml --\n"+configMap("a")+`data:
  version: {{ .Capabilities.KubeVersion.Version }}
  minor: {{ .Capabilities.KubeVersion.Minor | quote }}
  policy: {{ .Capabilities.APIVersions.Has "policy/v1" | quote }}
  beta: {{ .Capabilities.APIVersions.Has "policy/v1beta1" | quote }}
  kind: {{ .Capabilities.APIVersions.Has "networking.k8s.io/v1/Ingress" | quote }}
  crd: {{ .Capabilities.APIVersions.Has "apiextensions.k8s.io/v1" | quote }}
  declared: {{ .Capabilities.APIVersions.Has "example.com/v1" | quote }}
`)
	r.Capabilities = Capabilities{KubeVersion: "1.34.7-gke.12", APIVersions: []string{"example.com/v1"}}
	got := bytesOf(t, mustRender(t, r), "a")
	want := `"data":{"beta":"false","crd":"true","declared":"true","kind":"true","minor":"34","policy":"true","version":"v1.34.0"}`
	if !strings.Contains(got, want) {
		t.Errorf("%s has no %s", got, want)
	}
}
