package catalog

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kyma-project/mothership/api/v1beta2"
)

const space1 = "fleet"

func template(module, version string, change ...func(*v1beta2.ModuleTemplateSpec)) *v1beta2.ModuleTemplate {
	t := &v1beta2.ModuleTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: space1, Name: module + "-" + version},
		Spec:       v1beta2.ModuleTemplateSpec{ModuleName: module, Version: version},
	}
	for _, c := range change {
		c(&t.Spec)
	}
	return t
}

func needing(modules ...string) func(*v1beta2.ModuleTemplateSpec) {
	return func(t *v1beta2.ModuleTemplateSpec) {
		for _, m := range modules {
			t.Needs = append(t.Needs, v1beta2.FactModulePrefix+m)
		}
	}
}

func in(namespace string) func(*v1beta2.ModuleTemplateSpec) {
	return func(t *v1beta2.ModuleTemplateSpec) { t.Namespace = namespace }
}

// release has channels given as "channel version".
func release(module string, channels ...string) *v1beta2.ModuleReleaseMeta {
	r := &v1beta2.ModuleReleaseMeta{ObjectMeta: metav1.ObjectMeta{Namespace: space1, Name: module}, Spec: v1beta2.ModuleReleaseMetaSpec{ModuleName: module}}
	for _, c := range channels {
		channel, version, _ := strings.Cut(c, " ")
		r.Spec.Channels = append(r.Spec.Channels, v1beta2.ChannelVersion{Channel: channel, Version: version})
	}
	return r
}

func mandatory(module, version string, selector map[string]string) *v1beta2.ModuleReleaseMeta {
	r := release(module)
	r.Spec.Mandatory = &v1beta2.MandatoryVersion{Version: version}
	if selector != nil {
		r.Spec.KymaSelector = &metav1.LabelSelector{MatchLabels: selector}
	}
	return r
}

func store(objects ...any) *Store {
	s := NewStore()
	for _, obj := range objects {
		switch obj := obj.(type) {
		case *v1beta2.ModuleTemplate:
			s.PutTemplate(obj)
		case *v1beta2.ModuleReleaseMeta:
			s.PutRelease(obj)
		}
	}
	return s
}

// full is a catalogue with something of everything.
func full() *Store {
	selective := release("selective", "regular 1.0.0")
	selective.Spec.KymaSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"plan": "large"}}
	unreadable := release("unreadable", "regular 1.0.0")
	unreadable.Spec.KymaSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
	return store(
		template("istio", "1.0.0"), template("istio", "1.10.0"), template("istio", "1.9.0"), release("istio", "regular 1.9.0", "fast 1.10.0"),
		template("moved", "1.0.0", in("here")), template("moved", "2.0.0", in("there")), release("moved", "regular 2.0.0"),
		template("unreleased", "1.0.0"),
		release("empty", "regular 3.0.0"),
		selective, template("selective", "1.0.0"), unreadable, template("unreadable", "1.0.0"),
		mandatory("must", "1.0.0", nil), template("must", "1.0.0"),
		mandatory("large", "1.0.0", map[string]string{"plan": "large"}), template("large", "1.0.0"),
		mandatory("lost", "9.0.0", map[string]string{"lost": "yes"}),
		template("self", "1.0.0", needing("self")), release("self", "regular 1.0.0"),
		template("a", "1.0.0", needing("b")), template("b", "1.0.0", needing("a")), release("a", "regular 1.0.0"), release("b", "regular 1.0.0"),
		template("x", "1.0.0", needing("y")), template("y", "1.0.0", needing("z")), template("z", "1.0.0", needing("x", "istio")),
		release("x", "regular 1.0.0"), release("y", "regular 1.0.0"), release("z", "regular 1.0.0"),
		template("upper", "1.0.0", needing("x", "nowhere")), release("upper", "regular 1.0.0"),
	)
}

func named(name string, change ...func(*v1beta2.Module)) v1beta2.Module {
	m := v1beta2.Module{Name: name}
	for _, c := range change {
		c(&m)
	}
	return m
}

func version(v string) func(*v1beta2.Module) { return func(m *v1beta2.Module) { m.Version = v } }
func channel(c string) func(*v1beta2.Module) { return func(m *v1beta2.Module) { m.Channel = c } }
func unmanaged(m *v1beta2.Module)            { m.Managed = new(bool) }

func kyma(modules ...v1beta2.Module) *v1beta2.Kyma {
	return &v1beta2.Kyma{ObjectMeta: metav1.ObjectMeta{Namespace: space1, Name: "eu-1"}, Spec: v1beta2.KymaSpec{Channel: "regular", Modules: modules}}
}

// installed is a Kyma with a module in its status.
func installed(k *v1beta2.Kyma, name, version string, change ...func(*v1beta2.ModuleStatus)) *v1beta2.Kyma {
	m := v1beta2.ModuleStatus{Name: name, Version: version, Namespace: v1beta2.DefaultModuleNamespace, State: v1beta2.StateReady, BundleDigest: "sha256:it"}
	for _, c := range change {
		c(&m)
	}
	k.Status.Modules = append(k.Status.Modules, m)
	return k
}

func at(namespace string) func(*v1beta2.ModuleStatus) {
	return func(m *v1beta2.ModuleStatus) { m.Namespace = namespace }
}
func unapplied(m *v1beta2.ModuleStatus) { m.BundleDigest = "" }
func leftAlone(m *v1beta2.ModuleStatus) { m.State = v1beta2.StateUnmanaged }

func deleted(k *v1beta2.Kyma) *v1beta2.Kyma {
	k.DeletionTimestamp = &metav1.Time{}
	return k
}

func labelled(k *v1beta2.Kyma, key, value string) *v1beta2.Kyma {
	k.Labels = map[string]string{key: value}
	return k
}

// line is a module in one line.
func line(m Module) string {
	out := m.Name
	if m.Template != nil {
		out += " template"
	}
	out += " " + m.Version
	if m.Channel != "" {
		out += " from " + m.Channel
	}
	if m.Namespace != v1beta2.DefaultModuleNamespace {
		out += " in " + m.Namespace
	}
	for _, w := range []struct {
		is   bool
		word string
	}{{m.Mandatory, "mandatory"}, {m.Deleting, "deleting"}, {m.Unmanaged, "unmanaged"}} {
		if w.is {
			out += " " + w.word
		}
	}
	if m.Problem != nil {
		out += fmt.Sprintf("; %s: %s", m.Problem.State, m.Problem.Message)
	}
	if m.Notice != nil {
		out += fmt.Sprintf("; notice %s: %s", m.Notice.State, m.Notice.Message)
	}
	return out
}

const must = "must template 1.0.0 mandatory"

func TestResolve(t *testing.T) {
	t.Parallel()
	const all = "a, b, empty, istio, large, lost, moved, must, selective, self and 6 more"
	const downgrade = "version 1.9.0 is lower than the installed 1.10.0, and modules are not downgraded: it stays at 1.10.0; to go back, remove the module and add it again"
	for name, test := range map[string]struct {
		kyma *v1beta2.Kyma
		want []string // besides the mandatory one
	}{
		"Empty":               {kyma(), nil},
		"Channel":             {kyma(named("istio")), []string{"istio template 1.9.0 from regular"}},
		"ChannelOfModule":     {kyma(named("istio", channel("fast"))), []string{"istio template 1.10.0 from fast"}},
		"Version":             {kyma(named("istio", version("1.0.0"), channel("fast"))), []string{"istio template 1.0.0"}},
		"VersionWithoutMeta":  {kyma(named("unreleased", version("1.0.0"))), []string{"unreleased template 1.0.0"}},
		"UnknownModule":       {kyma(named("istoi")), []string{`istoi ; Error: module "istoi" is not in the catalogue: it has ` + all}},
		"UnknownWithVersion":  {kyma(named("istoi", version("1.0.0"))), []string{`istoi 1.0.0; Error: module "istoi" is not in the catalogue: it has ` + all}},
		"UnknownChannel":      {kyma(named("istio", channel("rapid"))), []string{`istio  from rapid; Error: module "istio" has no channel "rapid": it has fast (1.10.0), regular (1.9.0)`}},
		"UnknownVersion":      {kyma(named("istio", version("2.0.0"))), []string{`istio 2.0.0; Error: version 2.0.0 of module "istio" is not in the catalogue: it has 1.10.0, 1.9.0, 1.0.0`}},
		"NoTemplates":         {kyma(named("empty", version("2.0.0"))), []string{`empty 2.0.0; Error: version 2.0.0 of module "empty" is not in the catalogue: it has none`}},
		"TemplateMissing":     {kyma(named("empty")), []string{`empty 3.0.0 from regular; Error: channel regular of module "empty" is 3.0.0, but ModuleTemplate empty-3.0.0 does not exist: the catalogue has none`}},
		"MandatoryMissing":    {labelled(kyma(), "lost", "yes"), []string{`lost 9.0.0 mandatory; Error: the mandatory version of module "lost" is 9.0.0, but ModuleTemplate lost-9.0.0 does not exist: the catalogue has none`}},
		"NoRelease":           {kyma(named("unreleased")), []string{`unreleased ; Error: module "unreleased" has no ModuleReleaseMeta, so no channel has it: name one of its versions (1.0.0)`}},
		"Selector":            {labelled(kyma(named("selective")), "plan", "large"), []string{"large template 1.0.0 mandatory", "selective template 1.0.0 from regular"}},
		"SelectorRefuses":     {kyma(named("selective")), []string{`selective ; Error: module "selective" is not offered to this Kyma: its labels do not match the kymaSelector of ModuleReleaseMeta selective`}},
		"SelectorUnreadable":  {kyma(named("unreadable")), []string{`unreadable ; Error: module "unreadable" is not offered to this Kyma: its labels do not match the kymaSelector of ModuleReleaseMeta unreadable`}},
		"Upgrade":             {installed(kyma(named("istio")), "istio", "1.0.0"), []string{"istio template 1.9.0 from regular"}},
		"Downgrade":           {installed(kyma(named("istio")), "istio", "1.10.0"), []string{"istio template 1.10.0 from regular; notice Warning: " + downgrade}},
		"DowngradeByVersion":  {installed(kyma(named("istio", version("1.9.0"))), "istio", "1.10.0"), []string{"istio template 1.10.0; notice Warning: " + downgrade}},
		"DowngradeNotApplied": {installed(kyma(named("istio")), "istio", "1.10.0", unapplied), []string{"istio template 1.9.0 from regular"}},
		"DowngradeNoTemplate": {installed(kyma(named("istio", version("1.9.0"))), "istio", "1.11.0"), []string{"istio 1.11.0; Warning: " + strings.ReplaceAll(downgrade, "1.10.0", "1.11.0")}},
		"NamespaceChanged":    {installed(kyma(named("moved")), "moved", "1.0.0", at("here")), []string{`moved 2.0.0 from regular in here; Error: version 2.0.0 of module "moved" goes into namespace there, but it is installed in here: remove the module first`}},
		"NamespaceNotApplied": {installed(kyma(named("moved")), "moved", "1.0.0", at("here"), unapplied), []string{"moved template 2.0.0 from regular in there"}},
		"ProblemWhileThere":   {installed(kyma(named("istio", channel("rapid"))), "istio", "1.0.0", at("elsewhere")), []string{`istio  from rapid in elsewhere; Error: module "istio" has no channel "rapid": it has fast (1.10.0), regular (1.9.0)`}},
		"RingOfOne":           {kyma(named("self")), []string{"self 1.0.0 from regular; Error: a ring of needs: self → self: none of them can ever be installed"}},
		"RingOfTwo":           {kyma(named("a"), named("b")), []string{"a 1.0.0 from regular; Error: a ring of needs: a → b → a: none of them can ever be installed", "b 1.0.0 from regular; Error: a ring of needs: b → a → b: none of them can ever be installed"}},
		"RingIsOpen":          {kyma(named("a")), []string{"a template 1.0.0 from regular"}},
		"RingOfThree":         {kyma(named("x"), named("y"), named("z"), named("istio"), named("upper")), []string{"istio template 1.9.0 from regular", "upper template 1.0.0 from regular", "x 1.0.0 from regular; Error: a ring of needs: x → y → z → x: none of them can ever be installed", "y 1.0.0 from regular; Error: a ring of needs: y → z → x → y: none of them can ever be installed", "z 1.0.0 from regular; Error: a ring of needs: z → x → y → z: none of them can ever be installed"}},
		"Unmanaged":           {kyma(named("istio", unmanaged)), []string{"istio template 1.9.0 from regular unmanaged"}},
		"Removed":             {installed(kyma(), "istio", "1.0.0", at("mesh")), []string{"istio 1.0.0 in mesh deleting"}},
		"RemovedUnmanaged":    {installed(kyma(), "istio", "1.0.0", leftAlone), []string{"istio 1.0.0 deleting unmanaged"}},
		"MandatoryIsNamed":    {kyma(named("must", version("0.1.0"))), nil},
		"MandatoryNoLonger":   {installed(kyma(), "large", "1.0.0"), []string{"large 1.0.0 deleting"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, test.kyma, append(test.want, must))
		})
	}
	t.Run("Deleted", func(t *testing.T) {
		t.Parallel()
		check(t, deleted(installed(kyma(named("istio"), named("a")), "istio", "1.0.0")), []string{"istio 1.0.0 deleting"})
	})
}

func check(t *testing.T, k *v1beta2.Kyma, want []string) {
	t.Helper()
	var got, names []string
	for _, m := range Resolve(k, full().In(space1)) {
		got, names = append(got, line(m)), append(names, m.Name)
		if one, ok := ResolveOne(k, m.Name, full().In(space1)); !ok || line(one) != line(m) {
			t.Errorf("alone it is %s", line(one))
		}
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(got))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(names, Names(k, full().In(space1))); diff != "" {
		t.Errorf("Names says other ones (-want +got):\n%s", diff)
	}
	if _, ok := ResolveOne(k, "nobody", full().In(space1)); ok {
		t.Error("a module is wanted that nobody has named")
	}
}
