package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/access"
	"github.com/kyma-project/mothership/internal/catalog"
	"github.com/kyma-project/mothership/internal/fleetview"
)

// asWide is a table with all columns.
const asWide = "wide"

const aboutGet = `
With --watch it goes on until it is interrupted: on a terminal as a table that is kept up to date, elsewhere as a line for
each change (with -o json: a JSON document on a line).
`

// view is something that can be looked at as a table.
type view struct {
	use, short, example string
	aliases             []string
	// lists are what it is made from.
	lists []client.ObjectList
	// grid of all objects; only narrows it down to one Kyma.
	grid func(objects []client.Object, only string, now time.Time) grid
	// kind of object that a row's data is; empty where it is a row of ours, of which there may be several by one name.
	kind string
}

// views are all that get knows.
func views() []view {
	return []view{
		{
			use: "kyma", aliases: []string{"kymas", "ky"}, short: "Show Kymas: what each runtime shall have, and how that is",
			lists: []client.ObjectList{&v1beta2.KymaList{}}, grid: kymaGrid, kind: "Kyma",
			example: "  mothership get kyma\n  mothership get kyma eu-1 -o yaml",
		},
		{
			use: "modules", aliases: []string{"module"}, short: "Show the modules of all runtimes",
			lists: []client.ObjectList{&v1beta2.KymaList{}}, grid: moduleGrid,
			example: "  mothership get modules --watch\n  mothership get modules istio -o wide\n  mothership get modules --kyma eu-1",
		},
		{
			use: "runtimes", aliases: []string{"runtime", "skr"}, short: "Show the clusters of the fleet",
			lists: []client.ObjectList{&v1beta2.RuntimeList{}}, grid: runtimeGrid, kind: "Runtime",
			example: "  mothership get runtimes --watch",
		},
		{
			use: "catalog", aliases: []string{"templates", "template", "moduletemplates", "mt"}, short: "Show which modules and versions there are",
			lists: []client.ObjectList{&v1beta2.ModuleTemplateList{}, &v1beta2.ModuleReleaseMetaList{}}, grid: catalogGrid,
			example: "  mothership get catalog -o wide",
		},
	}
}

func (a *app) get() *cobra.Command {
	var commands []*cobra.Command
	for _, v := range views() {
		commands = append(commands, a.getView(v))
	}
	return a.group("get (kyma|modules|runtimes|catalog) [NAME]", "Show what a control plane has", "", commands...)
}

// getting is one call of get.
type getting struct {
	fleetFlags
	watch bool
	kyma  string
	name  string
	view  view
}

func (a *app) getView(v view) *cobra.Command {
	g := &getting{view: v}
	cmd := a.verb(v.use+" [NAME] [flags]", v.short, aboutGet, v.example, []string{"[NAME]"}, func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			g.name = args[0]
		}
		return a.runGet(cmd, g)
	})
	cmd.Aliases = v.aliases
	g.addTo(cmd)
	if v.use == "modules" {
		cmd.Flags().StringVar(&g.kyma, "kyma", "", "only the modules of the Kyma `NAME`")
	}
	cmd.Flags().BoolVarP(&g.watch, "watch", "w", false, "go on showing changes until interrupted")
	g.outputTo(cmd, asTable, asWide, asJSON, asYAML)
	if v.kind != "" {
		a.completing(cmd, &g.fleetFlags, v.lists[0])
	}
	return cmd
}

func (a *app) runGet(cmd *cobra.Command, g *getting) error {
	if err := g.checkOutput(cmd, asTable, asWide, asJSON, asYAML); err != nil {
		return err
	}
	f, err := a.connect(cmd, &g.fleetFlags)
	if err != nil {
		return err
	}
	if g.watch {
		return a.watchView(cmd, f, g)
	}
	objects, err := f.readAll(cmd, g.view.lists)
	if err != nil {
		return err
	}
	rows, err := g.rows(objects)
	if err != nil {
		return err
	}
	return a.printGrid(g, rows)
}

// readAll reads all objects of some kinds.
func (f *fleet) readAll(cmd *cobra.Command, lists []client.ObjectList) ([]client.Object, error) {
	var out []client.Object
	for _, list := range lists {
		if err := f.list(cmd.Context(), list); err != nil {
			return nil, err
		}
		objects, err := meta.ExtractList(list)
		if err != nil {
			return nil, fmt.Errorf("reading the control plane: %w", err)
		}
		for _, obj := range objects {
			if o, ok := obj.(client.Object); ok {
				out = append(out, o)
			}
		}
	}
	return out, nil
}

// rows are those that were asked for. A name that nothing has is an error, unless changes are waited for.
func (g *getting) rows(objects []client.Object) (grid, error) {
	all := g.view.grid(objects, g.kyma, time.Now())
	if g.output != asWide {
		all = all.narrow()
	}
	if g.name == "" {
		return all, nil
	}
	names := all.names()
	all.rows = slices.DeleteFunc(all.rows, func(r gridRow) bool { return r.name != g.name })
	if len(all.rows) > 0 || g.watch {
		return all, nil
	}
	err := &missingError{cmp.Or(g.view.kind, "module"), g.name, g.namespace}
	if len(names) == 0 {
		return all, err
	}
	return all, &hintedError{err: err, hint: "there are: " + some(names)}
}

// printGrid prints what was found once.
func (a *app) printGrid(g *getting, rows grid) error {
	switch g.output {
	case asJSON, asYAML:
		return a.print(&flags{output: g.output}, g.data(rows), nil)
	}
	if len(rows.rows) == 0 {
		a.note("note", "there is nothing to show in namespace "+g.namespace)
		return nil
	}
	if a.quiet {
		return nil
	}
	width := 0
	if t := a.terminalOf(a.p.Stdout); t.on && g.output == asTable {
		width, _ = t.size()
	}
	return a.write(strings.Join(rows.lines(a.palette(a.p.Stdout), width), "\n") + "\n")
}

// data is what -o json|yaml prints: the object that was named, or a list.
func (g *getting) data(rows grid) any {
	items := []any{}
	for _, row := range rows.rows {
		items = append(items, row.data)
	}
	if g.view.kind == "" {
		return map[string]any{"items": items}
	}
	if g.name != "" && len(items) == 1 {
		return items[0]
	}
	return map[string]any{
		"apiVersion": v1beta2.GroupVersion.String(), "kind": g.view.kind + "List", "metadata": map[string]any{}, "items": items,
	}
}

// document is one row's data for a stream of changes.
func document(output string, data any) (string, error) {
	if output == asYAML {
		text, err := yaml.Marshal(data)
		return "---\n" + string(text), err
	}
	return compactJSON(data)
}

// dataOf is an object as its API shows it, without what only servers read.
func dataOf(obj client.Object, kind string) client.Object {
	obj, ok := obj.DeepCopyObject().(client.Object)
	if !ok {
		return nil // a copy of an object is one
	}
	obj.SetManagedFields(nil)
	obj.GetObjectKind().SetGroupVersionKind(v1beta2.GroupVersion.WithKind(kind))
	return obj
}

// readyCondition is why an object is not ready, and since when; no message if it is.
func readyCondition(conditions []metav1.Condition) (message string, at *metav1.Time) {
	c := meta.FindStatusCondition(conditions, v1beta2.ConditionReady)
	if c == nil {
		return "", nil
	}
	if c.Status != metav1.ConditionTrue {
		message = c.Message
	}
	return message, &c.LastTransitionTime
}

func kymaGrid(objects []client.Object, _ string, now time.Time) grid {
	g := grid{columns: []column{
		{name: "NAME"}, {name: "CHANNEL"}, {name: "STATE", state: true}, {name: "MODULES"}, {name: "SINCE", clock: true},
		{name: "REACHABLE", wide: true}, {name: "CLUSTER", wide: true}, {name: "AGE", wide: true, clock: true}, {name: "MESSAGE"},
	}}
	for _, obj := range objects {
		k, ok := obj.(*v1beta2.Kyma)
		if !ok {
			continue
		}
		message, at := readyCondition(k.Status.Conditions)
		reachable := ""
		if c := meta.FindStatusCondition(k.Status.Conditions, v1beta2.ConditionReachable); c != nil {
			reachable = c.Reason
		}
		g.rows = append(g.rows, gridRow{key: k.Name, name: k.Name, data: dataOf(k, "Kyma"), cells: cells(
			k.Name, cmp.Or(k.Status.ActiveChannel, k.Spec.Channel), string(k.Status.State), k.Status.ModulesReady, since(at, now),
			reachable, k.Status.RuntimeUID, since(&k.CreationTimestamp, now), message)})
	}
	return g
}

func moduleGrid(objects []client.Object, only string, now time.Time) grid {
	g := grid{columns: []column{
		{name: "RUNTIME"}, {name: "MODULE"}, {name: "CHANNEL"}, {name: "VERSION"}, {name: "STATE", state: true}, {name: "SINCE", clock: true},
		{name: "NAMESPACE", wide: true}, {name: "BUNDLE", wide: true}, {name: "MESSAGE"},
	}}
	for _, obj := range objects {
		k, ok := obj.(*v1beta2.Kyma)
		if !ok || (only != "" && k.Name != only) {
			continue
		}
		for _, m := range fleetview.Modules(k) {
			digest := strings.TrimPrefix(m.BundleDigest, "sha256:")
			g.rows = append(g.rows, gridRow{key: m.Runtime + "/" + m.Module, name: m.Module, data: m, cells: cells(
				m.Runtime, m.Module, m.Channel, m.Version, string(m.State), since(m.Since, now),
				m.Namespace, digest[:min(len(digest), 12)], m.Message)})
		}
	}
	return g
}

func runtimeGrid(objects []client.Object, _ string, now time.Time) grid {
	g := grid{columns: []column{
		{name: "NAME"}, {name: "PROVIDER"}, {name: "STATE", state: true}, {name: "VERSION"}, {name: "DRIFT"}, {name: "SINCE", clock: true},
		{name: "ENDPOINT", wide: true}, {name: "AGE", wide: true, clock: true}, {name: "MESSAGE"},
	}}
	for _, obj := range objects {
		r, ok := obj.(*v1beta2.Runtime)
		if !ok {
			continue
		}
		message, at := readyCondition(r.Status.Conditions)
		g.rows = append(g.rows, gridRow{key: r.Name, name: r.Name, data: dataOf(r, "Runtime"), cells: cells(
			r.Name, r.Spec.Provider, string(r.Status.State), access.FactOf(r, v1beta2.FactKubernetesVersion), string(r.Spec.DriftDetection), since(at, now),
			access.FactOf(r, v1beta2.FactEndpoint), since(&r.CreationTimestamp, now), message)})
	}
	return g
}

func catalogGrid(objects []client.Object, _ string, _ time.Time) grid {
	g := grid{columns: []column{
		{name: "MODULE"}, {name: "VERSION"}, {name: "CHANNELS"}, {name: "NEEDS"},
		{name: "NAMESPACE", wide: true}, {name: "SOURCE", wide: true}, {name: "MESSAGE"},
	}}
	for _, e := range fleetview.Catalog(catalogOf(objects)) {
		channels := strings.Join(e.Channels, ",")
		if e.Mandatory {
			channels = "(mandatory)"
		}
		g.rows = append(g.rows, gridRow{key: e.Module + "/" + e.Version, name: e.Module, data: e, cells: cells(
			e.Module, e.Version, channels, strings.Join(e.Needs, ","), e.Namespace, e.Source, e.Problem)})
	}
	return g
}

// catalogOf is the catalogue that templates and releases of one namespace make.
func catalogOf(objects []client.Object) catalog.Catalog {
	store, namespace := catalog.NewStore(), ""
	for _, obj := range objects {
		namespace = obj.GetNamespace()
		switch o := obj.(type) {
		case *v1beta2.ModuleTemplate:
			store.PutTemplate(o)
		case *v1beta2.ModuleReleaseMeta:
			store.PutRelease(o)
		}
	}
	return store.In(namespace)
}
