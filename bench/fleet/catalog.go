package main

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/controlplane"
)

const (
	// space is the namespace of the control plane's objects, target that of the modules in the runtimes.
	space  = controlplane.DefaultNamespace
	target = "bench"
	// fewestObjects is one of each kind.
	fewestObjects = 5
	first         = "1.0.0"
	channel       = "regular"
)

// chart has a ConfigMap with the text, and of each of four more kinds one and of the rest ConfigMaps. All say their release, so
// that an upgrade changes all.
const chart = `{{- define "meta" }}
  annotations:
    release: {{ .Values.release | quote }}
{{- end }}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
  {{- include "meta" . }}
data:
  text: {{ .Values.text | quote }}
---
apiVersion: v1
kind: Secret
metadata:
  name: {{ .Release.Name }}
  {{- include "meta" . }}
stringData:
  text: not a secret of {{ .Release.Name }}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .Release.Name }}
  {{- include "meta" . }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ .Release.Name }}
  {{- include "meta" . }}
spec:
  selector:
    app: {{ .Release.Name }}
  ports:
    - port: 80
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ .Release.Name }}
  {{- include "meta" . }}
rules:
  - apiGroups: [""]
    resources: [configmaps]
    verbs: [get]
{{- range $i := until (int .Values.more) }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ $.Release.Name }}-{{ $i }}
  {{- include "meta" $ }}
data:
  number: {{ $i | quote }}
{{- end }}
`

// original is the text of all modules at first.
const original = "as it should be"

// moduleName of a numbered module.
func moduleName(i int) string { return fmt.Sprintf("m%04d", i) }

// runtimeName of a numbered runtime, in the simulator and in the control plane.
func runtimeName(i int) string { return fmt.Sprintf("%s%d", runtimePrefix, i) }

const (
	runtimePrefix = "runtime-"
	// template is the runtime that the others are clones of.
	template = "template"
)

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: space, Name: name} }

// templateOf is a version of a module.
func (b *bench) templateOf(module, version string) *v1beta2.ModuleTemplate {
	values := fmt.Appendf(nil, `{"release": %q, "more": %d}`, version, b.o.objects-fewestObjects)
	return &v1beta2.ModuleTemplate{ObjectMeta: named(module + "-" + version), Spec: v1beta2.ModuleTemplateSpec{
		ModuleName: module, Version: version, Namespace: target, Source: v1beta2.Source{Chart: &v1beta2.SourceRef{URL: b.charts.url, Digest: b.charts.digest}},
		Values: &runtime.RawExtension{Raw: values},
	}}
}

// catalogue is all modules in their first version.
func (b *bench) catalogue() []client.Object {
	var out []client.Object
	for i := range b.o.modules {
		name := moduleName(i)
		out = append(out, b.templateOf(name, first), &v1beta2.ModuleReleaseMeta{ObjectMeta: named(name), Spec: v1beta2.ModuleReleaseMetaSpec{
			ModuleName: name, Channels: []v1beta2.ChannelVersion{{Channel: channel, Version: first}},
		}})
	}
	return out
}

// kymaOf asks for all modules.
func (b *bench) kymaOf(name string) *v1beta2.Kyma {
	k := &v1beta2.Kyma{ObjectMeta: named(name), Spec: v1beta2.KymaSpec{Channel: channel}}
	for i := range b.o.modules {
		k.Spec.Modules = append(k.Spec.Modules, v1beta2.Module{Name: moduleName(i), Values: &runtime.RawExtension{Raw: []byte(`{"text": "` + original + `"}`)}})
	}
	return k
}
