package main

import (
	"fmt"
	"path/filepath"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// channel is the one that all runtimes follow.
const channel = "regular"

// runtimes of the fleet, and the greeting of the web server in each.
var runtimes = []struct{ name, greeting string }{
	{"eu-1", "Welkom"}, {"us-1", "Howdy"}, {"ap-1", "Kia ora"},
}

// chosen are the modules that each Kyma names; the mandatory one comes by itself.
var chosen = []string{"cert-manager", "web", "shop", "backup", "portal"}

// modulesEach is how many modules each runtime has then.
var modulesEach = len(chosen) + 1

// catalog is what can be installed: six modules, one of them in two versions.
func (f *fleet) catalog() ([]client.Object, error) {
	examples, err := filepath.Abs("examples")
	if err != nil {
		return nil, fmt.Errorf("finding the examples: %w", err)
	}
	at := func(path string) *v1beta2.SourceRef { return &v1beta2.SourceRef{Path: filepath.Join(examples, path)} }
	return []client.Object{
		template("cert-manager", f.chartVersion, v1beta2.ModuleTemplateSpec{
			Source: v1beta2.Source{Chart: &v1beta2.SourceRef{Path: f.chart}},
			Values: raw(`{"crds": {"enabled": true, "keep": false}}`),
		}),
		template("web", "1.0.0", v1beta2.ModuleTemplateSpec{Source: v1beta2.Source{Chart: at("web")}}),
		template("web", "2.0.0", v1beta2.ModuleTemplateSpec{Source: v1beta2.Source{Chart: at("web-v2")}}),
		template("shop", "1.0.0", v1beta2.ModuleTemplateSpec{Source: v1beta2.Source{Kustomize: at("shop/overlays/prod")}}),
		template("backup", "1.0.0", v1beta2.ModuleTemplateSpec{Source: v1beta2.Source{Manifests: at("backup")}}),
		template("portal", "1.0.0", v1beta2.ModuleTemplateSpec{
			Source: v1beta2.Source{Chart: at("web")}, Values: raw(`{"greeting": "Portal", "metrics": {"enabled": false}}`),
			Needs: []string{v1beta2.FactModulePrefix + "web", v1beta2.FactModulePrefix + "shop"},
		}),
		template("baseline", "1.0.0", v1beta2.ModuleTemplateSpec{Source: v1beta2.Source{Manifests: at("baseline")}}),
		release("cert-manager", f.chartVersion), release("web", "1.0.0"), release("shop", "1.0.0"), release("backup", "1.0.0"), release("portal", "1.0.0"),
		&v1beta2.ModuleReleaseMeta{ObjectMeta: named("baseline"), Spec: v1beta2.ModuleReleaseMetaSpec{
			ModuleName: "baseline", Mandatory: &v1beta2.MandatoryVersion{Version: "1.0.0"},
		}},
	}, nil
}

// template is a version of a module, which goes into a namespace of its own name.
func template(module, version string, spec v1beta2.ModuleTemplateSpec) *v1beta2.ModuleTemplate {
	spec.ModuleName, spec.Version, spec.Namespace = module, version, module
	return &v1beta2.ModuleTemplate{ObjectMeta: named(module + "-" + version), Spec: spec}
}

func release(module, version string) *v1beta2.ModuleReleaseMeta {
	return &v1beta2.ModuleReleaseMeta{ObjectMeta: named(module), Spec: v1beta2.ModuleReleaseMetaSpec{
		ModuleName: module, Channels: []v1beta2.ChannelVersion{{Channel: channel, Version: version}},
	}}
}

// desired are the runtimes, and what each shall have.
func desired() []client.Object {
	var out []client.Object
	for _, r := range runtimes {
		kyma := &v1beta2.Kyma{ObjectMeta: named(r.name), Spec: v1beta2.KymaSpec{Channel: channel}}
		for _, name := range chosen {
			m := v1beta2.Module{Name: name}
			if name == "web" {
				m.Values = greeting(r.greeting)
			}
			kyma.Spec.Modules = append(kyma.Spec.Modules, m)
		}
		out = append(out, &v1beta2.Runtime{ObjectMeta: named(r.name), Spec: v1beta2.RuntimeSpec{
			Provider: v1beta2.ProviderLocal, DriftDetection: v1beta2.DriftWatch,
		}}, kyma)
	}
	return out
}

// greeting are values of the web server.
func greeting(text string) *runtime.RawExtension { return raw(fmt.Sprintf(`{"greeting": %q}`, text)) }

func raw(json string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(json)} }
