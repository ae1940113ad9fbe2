// Package catalog decides which modules, in which versions, a runtime shall have: from its Kyma, from the releases and templates
// of the catalogue, and from what is installed already.
//
// Resolve is a pure function; Store is the catalogue in memory, kept by whoever watches its objects. The package may import the
// api module, apimachinery and a library that compares versions: it talks to nobody.
package catalog

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// Catalog is what can be installed: the releases and templates of one namespace. What it returns must not be changed.
type Catalog interface {
	// Release is a module's ModuleReleaseMeta, nil if there is none.
	Release(module string) *v1beta2.ModuleReleaseMeta
	// Template is a version's ModuleTemplate, nil if there is none.
	Template(module, version string) *v1beta2.ModuleTemplate
	// Versions of a module that have a template, the highest first.
	Versions(module string) []string
	// Modules are the names of all modules, sorted.
	Modules() []string
	// Mandatory are the releases of mandatory modules, sorted by module.
	Mandatory() []*v1beta2.ModuleReleaseMeta
}

// Module is what is to become of one module on one runtime.
type Module struct {
	// Name of the module.
	Name string
	// Channel that the version comes from; empty where a version was asked for, or the module is mandatory.
	Channel string
	// Version and Template to install; the template is nil where there is a Problem, or the module is to be removed.
	Version  string
	Template *v1beta2.ModuleTemplate
	// Namespace in the runtime.
	Namespace string
	// Spec is the Kyma's entry, nil if it has none.
	Spec *v1beta2.Module
	// Mandatory says that the module is installed whether the Kyma names it or not.
	Mandatory bool
	// Deleting says that it is to be removed.
	Deleting bool
	// Unmanaged says that it is to be left alone.
	Unmanaged bool
	// Problem says why nothing can be done about it; nil if something can.
	Problem *Problem
	// Notice is something that a person should know although work goes on; nil if there is nothing.
	Notice *Problem
}

// Problem is something that a person has to mend.
type Problem struct {
	// State that the module has because of it: Error or Warning.
	State v1beta2.State
	// Message says what is wrong, what exists, and what to do.
	Message string
}

// Resolve is what a Kyma's runtime shall have, and what it has and shall no longer have, sorted by name.
func Resolve(k *v1beta2.Kyma, c Catalog) []Module {
	r := newResolution(k, c)
	for i := range k.Spec.Modules {
		r.module(k.Spec.Modules[i].Name)
	}
	for _, release := range c.Mandatory() {
		r.module(release.Spec.ModuleName)
	}
	for i := range k.Status.Modules {
		r.module(k.Status.Modules[i].Name)
	}
	out := make([]Module, 0, len(r.modules))
	for _, m := range r.modules {
		if m != nil {
			out = append(out, r.judged(m))
		}
	}
	slices.SortFunc(out, func(a, b Module) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// ResolveOne is Resolve for one module, at the cost of that one and of those that it needs; false if the runtime neither shall have
// it nor has it.
func ResolveOne(k *v1beta2.Kyma, name string, c Catalog) (Module, bool) {
	r := newResolution(k, c)
	m := r.module(name)
	if m == nil {
		return Module{}, false
	}
	return r.judged(m), true
}

// Wanted are the names of the modules that a Kyma's runtime shall have, sorted: those of Resolve that are not to be removed.
func Wanted(k *v1beta2.Kyma, c Catalog) []string {
	if k.DeletionTimestamp != nil {
		return nil
	}
	out := make([]string, 0, len(k.Spec.Modules))
	for i := range k.Spec.Modules {
		out = append(out, k.Spec.Modules[i].Name)
	}
	for _, release := range c.Mandatory() {
		if selects(release.Spec.KymaSelector, k.Labels) {
			out = append(out, release.Spec.ModuleName)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Names are the names of the modules that Resolve returns, sorted, at a tenth of its cost.
func Names(k *v1beta2.Kyma, c Catalog) []string {
	out := Wanted(k, c)
	for i := range k.Status.Modules {
		out = append(out, k.Status.Modules[i].Name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// resolution finds modules when they are asked for, each once.
type resolution struct {
	kyma    *v1beta2.Kyma
	catalog Catalog
	modules map[string]*Module // nil for one that there is not
}

func newResolution(k *v1beta2.Kyma, c Catalog) *resolution {
	return &resolution{kyma: k, catalog: c, modules: map[string]*Module{}}
}

// module is what is to become of one module, but for rings of needs; nil if nothing is.
func (r *resolution) module(name string) *Module {
	m, known := r.modules[name]
	if !known {
		m = r.wanted(name)
		if m == nil {
			m = r.unwanted(name)
		}
		r.modules[name] = m
	}
	return m
}

// wanted is a module that the Kyma names, or that is mandatory.
func (r *resolution) wanted(name string) *Module {
	if r.kyma.DeletionTimestamp != nil {
		return nil
	}
	m := &Module{Name: name}
	if i := slices.IndexFunc(r.kyma.Spec.Modules, func(m v1beta2.Module) bool { return m.Name == name }); i >= 0 {
		m.Spec = &r.kyma.Spec.Modules[i]
		m.Unmanaged = m.Spec.Managed != nil && !*m.Spec.Managed
	} else if release := r.catalog.Release(name); release == nil || release.Spec.Mandatory == nil || !selects(release.Spec.KymaSelector, r.kyma.Labels) {
		return nil
	}
	r.choose(m)
	r.check(m)
	return m
}

// unwanted is a module that is installed and no longer wanted.
func (r *resolution) unwanted(name string) *Module {
	status := statusOf(r.kyma, name)
	if status == nil {
		return nil
	}
	return &Module{
		Name: status.Name, Version: status.Version, Channel: status.Channel, Namespace: namespaceOf(status, nil),
		Deleting: true, Unmanaged: status.State == v1beta2.StateUnmanaged,
	}
}

// choose finds the version and its template.
func (r *resolution) choose(m *Module) {
	release := r.catalog.Release(m.Name)
	switch {
	case release != nil && !selects(release.Spec.KymaSelector, r.kyma.Labels):
		m.Problem = problemf("module %q is not offered to this Kyma: its labels do not match the kymaSelector of ModuleReleaseMeta %s", m.Name, release.Name)
	case release != nil && release.Spec.Mandatory != nil:
		m.Mandatory, m.Version = true, release.Spec.Mandatory.Version
		m.Template = r.template(m, "the mandatory version")
	case m.Spec.Version != "":
		m.Version = m.Spec.Version
		m.Template = r.template(m, "")
	case release == nil:
		m.Problem = r.unknown(m.Name)
	default:
		r.fromChannel(m, release)
	}
}

func (r *resolution) fromChannel(m *Module, release *v1beta2.ModuleReleaseMeta) {
	m.Channel = cmp.Or(m.Spec.Channel, r.kyma.Spec.Channel)
	for _, c := range release.Spec.Channels {
		if c.Channel == m.Channel {
			m.Version = c.Version
			m.Template = r.template(m, "channel "+c.Channel)
			return
		}
	}
	m.Problem = problemf("module %q has no channel %q: it has %s", m.Name, m.Channel, channels(release))
}

// template is the template of the chosen version; without one there is a problem. from says who chose the version, if it
// was not the Kyma.
func (r *resolution) template(m *Module, from string) *v1beta2.ModuleTemplate {
	t := r.catalog.Template(m.Name, m.Version)
	versions := r.catalog.Versions(m.Name)
	switch {
	case t != nil:
	case len(versions) == 0 && from == "" && r.catalog.Release(m.Name) == nil:
		m.Problem = r.unknown(m.Name)
	case from == "":
		m.Problem = problemf("version %s of module %q is not in the catalogue: it has %s", m.Version, m.Name, some(versions))
	default:
		m.Problem = problemf("%s of module %q is %s, but ModuleTemplate %s-%s does not exist: the catalogue has %s",
			from, m.Name, m.Version, m.Name, m.Version, some(versions))
	}
	return t
}

// check looks at what was chosen in the light of what is installed.
func (r *resolution) check(m *Module) {
	installed := statusOf(r.kyma, m.Name)
	if m.Template == nil {
		m.Namespace = namespaceOf(installed, nil)
		return
	}
	r.forbidDowngrade(m, installed)
	m.Namespace = namespaceOf(nil, m.Template)
	if was := namespaceOf(installed, m.Template); isApplied(installed) && was != m.Namespace {
		m.Problem = problemf("version %s of module %q goes into namespace %s, but it is installed in %s: remove the module first",
			m.Version, m.Name, m.Namespace, was)
		m.Template, m.Namespace = nil, was
	}
}

// forbidDowngrade stays with the installed version where the chosen one is lower.
func (r *resolution) forbidDowngrade(m *Module, installed *v1beta2.ModuleStatus) {
	if !isApplied(installed) || compareVersions(m.Version, installed.Version) >= 0 {
		return
	}
	notice := &Problem{State: v1beta2.StateWarning, Message: "version " + m.Version + " is lower than the installed " + installed.Version +
		", and modules are not downgraded: it stays at " + installed.Version + "; to go back, remove the module and add it again"}
	m.Version = installed.Version
	m.Template = r.catalog.Template(m.Name, m.Version)
	if m.Template == nil {
		m.Problem = notice
		return
	}
	m.Notice = notice
}

func isApplied(s *v1beta2.ModuleStatus) bool {
	return s != nil && s.BundleDigest != "" && s.Version != ""
}

// namespaceOf is where a module is installed or, if it is not, where its template wants it.
func namespaceOf(s *v1beta2.ModuleStatus, t *v1beta2.ModuleTemplate) string {
	switch {
	case s != nil && s.Namespace != "":
		return s.Namespace
	case t != nil && t.Spec.Namespace != "":
		return t.Spec.Namespace
	}
	return v1beta2.DefaultModuleNamespace
}

func statusOf(k *v1beta2.Kyma, module string) *v1beta2.ModuleStatus {
	for i := range k.Status.Modules {
		if k.Status.Modules[i].Name == module {
			return &k.Status.Modules[i]
		}
	}
	return nil
}

// selects says whether a selector matches; one that cannot be read matches nothing.
func selects(s *metav1.LabelSelector, of map[string]string) bool {
	if s == nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && selector.Matches(labels.Set(of))
}
