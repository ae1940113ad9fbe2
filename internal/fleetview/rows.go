// Package fleetview is the state of the fleet as people look at it: rows of modules and of the catalogue, and the explanation of
// why a Kyma is not ready.
//
// It is pure: it takes objects of the control plane's API, which somebody else has read, and gives what can be printed as it is or
// as JSON. Fields that are missing are left out. The package may import the api module, internal/catalog, internal/values for the
// names of facts, and controlplane for what its HTTP address answers.
package fleetview

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/catalog"
)

// Module is one module of one runtime.
type Module struct {
	// Runtime is the name of the Kyma, and of its Runtime.
	Runtime string `json:"runtime"`
	Module  string `json:"module"`
	// Channel that the version comes from; empty where a version was asked for.
	Channel string `json:"channel,omitempty"`
	Version string `json:"version,omitempty"`
	// Namespace in the runtime.
	Namespace string        `json:"namespace,omitempty"`
	State     v1beta2.State `json:"state"`
	// Since is when the state last changed; nil if that is not known.
	Since *metav1.Time `json:"since,omitempty"`
	// Message says why it is not ready.
	Message      string   `json:"message,omitempty"`
	WaitingFor   []string `json:"waitingFor,omitempty"`
	BundleDigest string   `json:"bundleDigest,omitempty"`
}

// Modules are the modules that a Kyma has or shall have, sorted by name. Those that the status does not know yet are Processing.
func Modules(k *v1beta2.Kyma) []Module {
	var out []Module
	known := map[string]bool{}
	for _, m := range k.Status.Modules {
		known[m.Name] = true
		row := Module{
			Runtime: k.Name, Module: m.Name, Channel: m.Channel, Version: m.Version, Namespace: m.Namespace, State: m.State,
			Message: m.Message, WaitingFor: m.WaitingFor, BundleDigest: m.BundleDigest,
		}
		if !m.LastTransitionTime.IsZero() {
			row.Since = new(m.LastTransitionTime)
		}
		out = append(out, row)
	}
	for _, m := range k.Spec.Modules {
		if !known[m.Name] && k.DeletionTimestamp == nil {
			out = append(out, Module{
				Runtime: k.Name, Module: m.Name, Channel: m.Channel, Version: m.Version, State: v1beta2.StateProcessing,
				Message: "the control plane has not looked at it yet",
			})
		}
	}
	slices.SortFunc(out, func(a, b Module) int { return cmp.Compare(a.Module, b.Module) })
	return out
}

// CatalogEntry is one version of a module in the catalogue.
type CatalogEntry struct {
	Module string `json:"module"`
	// Version is empty where a module has a release and no template.
	Version string `json:"version,omitempty"`
	// Channels that have this version, sorted.
	Channels []string `json:"channels,omitempty"`
	// Mandatory says that every runtime that the release selects gets it.
	Mandatory bool     `json:"mandatory,omitempty"`
	Needs     []string `json:"needs,omitempty"`
	// Namespace in the runtime.
	Namespace string `json:"namespace,omitempty"`
	// Source is where it comes from: chart, kustomize or manifests, and the place.
	Source string `json:"source,omitempty"`
	// Problem is something that makes it unusable.
	Problem string `json:"problem,omitempty"`
}

// Catalog are the versions of the catalogue, sorted by module, the highest version first. A channel whose version has no template
// is an entry too, with a Problem.
func Catalog(store catalog.Catalog) []CatalogEntry {
	var out []CatalogEntry
	for _, name := range store.Modules() {
		release := store.Release(name)
		versions := store.Versions(name)
		for _, version := range versions {
			e := entryOf(name, version, release)
			if t := store.Template(name, version); t != nil {
				e.Needs, e.Namespace, e.Source = t.Spec.Needs, t.Spec.Namespace, sourceOf(t.Spec.Source)
			}
			out = append(out, e)
		}
		for _, version := range released(release) {
			if !slices.Contains(versions, version) {
				e := entryOf(name, version, release)
				e.Problem = "there is no ModuleTemplate " + name + "-" + version
				out = append(out, e)
			}
		}
	}
	return out
}

func entryOf(name, version string, release *v1beta2.ModuleReleaseMeta) CatalogEntry {
	e := CatalogEntry{Module: name, Version: version}
	if release == nil {
		return e
	}
	for _, c := range release.Spec.Channels {
		if c.Version == version {
			e.Channels = append(e.Channels, c.Channel)
		}
	}
	slices.Sort(e.Channels)
	e.Mandatory = release.Spec.Mandatory != nil && release.Spec.Mandatory.Version == version
	return e
}

// released are the versions that a release names, sorted, each once.
func released(release *v1beta2.ModuleReleaseMeta) []string {
	if release == nil {
		return nil
	}
	var out []string
	for _, c := range release.Spec.Channels {
		out = append(out, c.Version)
	}
	if release.Spec.Mandatory != nil {
		out = append(out, release.Spec.Mandatory.Version)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func sourceOf(s v1beta2.Source) string {
	for _, c := range []struct {
		kind string
		ref  *v1beta2.SourceRef
	}{{"chart", s.Chart}, {"kustomize", s.Kustomize}, {"manifests", s.Manifests}} {
		if c.ref == nil {
			continue
		}
		return c.kind + " " + placeOf(c.ref)
	}
	return ""
}

// placeOf is where a source is, without what it takes to get there.
func placeOf(ref *v1beta2.SourceRef) string {
	switch {
	case ref.Git != nil:
		return "git " + ref.Git.URL
	case ref.Helm != nil:
		return ref.Helm.Chart + " of " + ref.Helm.Repository
	case ref.OCI != nil:
		return "oci " + ref.OCI.URL
	case ref.URL != "" && ref.Path != "":
		return ref.URL + " (" + ref.Path + ")"
	}
	return cmp.Or(ref.URL, ref.Path)
}
