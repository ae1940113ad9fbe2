package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/controlplane"
)

const (
	// space is the namespace of the control plane's objects, target that of the modules in the runtime.
	space  = controlplane.DefaultNamespace
	target = "bench"
	// maxModules is how many modules a Kyma may have.
	maxModules = 1024
	version    = "1.0.0"
	channel    = "regular"
)

// smallChart has four objects of its own name each; text is a value.
const smallChart = `apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
data:
  text: {{ .Values.text | quote }}
---
apiVersion: v1
kind: Secret
metadata:
  name: {{ .Release.Name }}
stringData:
  text: not a secret of {{ .Release.Name }}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .Release.Name }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ .Release.Name }}
spec:
  selector:
    app: {{ .Release.Name }}
  ports:
    - port: 80
`

// configsChart has a number of ConfigMaps.
const configsChart = `{{- range $i := until (int .Values.count) }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ $.Release.Name }}-{{ $i }}
data:
  text: {{ $.Values.text | quote }}
{{- end }}
`

// original is the text of all ConfigMaps at first.
const original = "as it should be"

// writeChart writes a chart into a folder.
func writeChart(folder, template string) error {
	for name, content := range map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: bench\nversion: 1.0.0\n", "values.yaml": "text: " + original + "\ncount: 1\n", "templates/all.yaml": template,
	} {
		file := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return fmt.Errorf("writing a chart: %w", err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			return fmt.Errorf("writing a chart: %w", err)
		}
	}
	return nil
}

// moduleName of a numbered module.
func moduleName(i int) string { return fmt.Sprintf("m%04d", i) }

// offer puts n modules of one chart into the catalogue.
func (p *plane) offer(ctx context.Context, chart string, n int, values string) error {
	for i := range n {
		name := moduleName(i)
		t := &v1beta2.ModuleTemplate{ObjectMeta: named(name + "-" + version), Spec: v1beta2.ModuleTemplateSpec{
			ModuleName: name, Version: version, Namespace: target, Source: v1beta2.Source{Chart: &v1beta2.SourceRef{Path: chart}},
			Values: &runtime.RawExtension{Raw: []byte(values)},
		}}
		r := &v1beta2.ModuleReleaseMeta{ObjectMeta: named(name), Spec: v1beta2.ModuleReleaseMetaSpec{
			ModuleName: name, Channels: []v1beta2.ChannelVersion{{Channel: channel, Version: version}},
		}}
		if err := p.create(ctx, t, r); err != nil {
			return err
		}
	}
	return nil
}

// kymaOf asks for n modules, each with a text of its own.
func kymaOf(name string, n int) *v1beta2.Kyma {
	k := &v1beta2.Kyma{ObjectMeta: named(name), Spec: v1beta2.KymaSpec{Channel: channel}}
	for i := range n {
		k.Spec.Modules = append(k.Spec.Modules, v1beta2.Module{Name: moduleName(i), Values: &runtime.RawExtension{Raw: []byte(`{"text": "` + original + `"}`)}})
	}
	return k
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: space, Name: name} }

func (p *plane) create(ctx context.Context, objects ...client.Object) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for _, obj := range objects {
		if err := p.client.Create(ctx, obj); err != nil {
			return fmt.Errorf("creating %T %s: %w", obj, obj.GetName(), err)
		}
	}
	return nil
}

// localRuntime makes a Runtime of provider local, waits until it is there, and returns a client of it.
func (p *plane) localRuntime(ctx context.Context, name string, drift v1beta2.DriftDetection) (client.WithWatch, error) {
	err := p.create(ctx, &v1beta2.Runtime{ObjectMeta: named(name), Spec: v1beta2.RuntimeSpec{Provider: v1beta2.ProviderLocal, DriftDetection: drift}})
	if err != nil {
		return nil, err
	}
	err = patience.Until(ctx, "Runtime "+name+" is ready", func(ctx context.Context) (bool, error) {
		var r v1beta2.Runtime
		err := p.client.Get(ctx, types.NamespacedName{Namespace: space, Name: name}, &r)
		return r.Status.State == v1beta2.StateReady, err
	})
	if err != nil {
		return nil, err
	}
	var secret corev1.Secret
	if err := p.client.Get(ctx, types.NamespacedName{Namespace: space, Name: name + "-kubeconfig"}, &secret); err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of %s: %w", name, err)
	}
	cfg, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["kubeconfig"])
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of %s: %w", name, err)
	}
	cfg.QPS, cfg.Burst = -1, 0
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: p.scheme})
	if err != nil {
		return nil, fmt.Errorf("making a client of %s: %w", name, err)
	}
	return c, nil
}
