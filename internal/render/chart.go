package render

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	chartvalues "helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	"helm.sh/helm/v4/pkg/ignore"

	"github.com/kyma-project/mothership/internal/bundle"
	"github.com/kyma-project/mothership/internal/source"
)

// renderChart does what `helm template --include-crds` does, with Helm's own code for each step.
func renderChart(ctx context.Context, r *Request, limits Limits) (*output, error) {
	texts, warnings, err := executeChart(ctx, r)
	if err != nil {
		return nil, err
	}
	objects, err := decode(texts, limits)
	if err != nil {
		return nil, err
	}
	out := &output{warnings: warnings}
	out.takeOutHooks(objects)
	return out, nil
}

// executeChart executes a chart's templates and returns what they say, the definitions of crds/ first, and warnings.
func executeChart(ctx context.Context, r *Request) (texts []text, warnings []string, err error) {
	ch, err := loadChart(r.Tree)
	if err != nil {
		return nil, nil, err
	}
	caps, err := checkChart(ch, r)
	if err != nil {
		return nil, nil, err
	}
	values, warnings, err := chartValues(ch, r, caps)
	if err != nil {
		return nil, nil, err
	}
	// Compiling a schema takes as long as executing the templates, so both are done at once, but templates are not to
	// blame for values that the schema refuses.
	checked, err := startSchemaCheck(ch, values)
	if err != nil {
		return nil, nil, err
	}
	s := newSession(r)
	announceTemplates(ch)
	e := engine.Engine{CustomTemplateFuncs: s.functions()}
	files, err := e.RenderWithContext(ctx, ch, values)
	if err := <-checked; err != nil {
		return nil, nil, err
	}
	if err != nil {
		return nil, nil, templateError(err, s)
	}
	return slices.Concat(definitions(ch), renderedTexts(files, s)), warnings, nil
}

// loadChart loads a chart from memory as Helm loads one from a directory.
func loadChart(tree *source.Tree) (*chart.Chart, error) {
	files := filesBelow(tree)
	rules, err := ignoreRules(files)
	if err != nil {
		return nil, err
	}
	var kept []*archive.BufferedFile
	for _, f := range files {
		if !ignored(rules, f.Path) {
			kept = append(kept, &archive.BufferedFile{Name: f.Path, Data: bytes.TrimPrefix(f.Data, bom)})
		}
	}
	if !slices.ContainsFunc(kept, func(f *archive.BufferedFile) bool { return f.Name == "Chart.yaml" }) {
		return nil, &Error{Origin: tree.Root, Problem: "no chart here: Chart.yaml is missing", Err: ErrMalformed}
	}
	if err := checkChartFiles(kept); err != nil {
		return nil, err
	}
	ch, err := loader.LoadFiles(kept)
	if err != nil {
		return nil, &Error{Origin: tree.Root, Problem: "the chart cannot be loaded: " + err.Error(), Err: ErrMalformed}
	}
	return ch, nil
}

// checkChartFiles reads Chart.yaml and values.yaml strictly first: Helm's errors name neither line nor duplicate.
func checkChartFiles(files []*archive.BufferedFile) error {
	var texts []text
	for _, f := range files {
		if f.Name == "Chart.yaml" || f.Name == "values.yaml" {
			texts = append(texts, text{origin: f.Name, data: f.Data, values: true})
		}
	}
	_, err := decode(texts, Limits{}.withDefaults())
	return err
}

func ignoreRules(files []source.File) (*ignore.Rules, error) {
	rules := ignore.Empty()
	for _, f := range files {
		if f.Path == ignore.HelmIgnore {
			var err error
			if rules, err = ignore.Parse(bytes.NewReader(f.Data)); err != nil {
				return nil, &Error{Origin: f.Path, Problem: err.Error(), Err: ErrMalformed}
			}
		}
	}
	rules.AddDefaults()
	return rules, nil
}

// ignored says whether .helmignore leaves out a file or one of the directories above it.
func ignored(rules *ignore.Rules, file string) bool {
	for i, c := range file {
		if c == '/' && rules.Ignore(file[:i], entry{path.Base(file[:i]), fs.ModeDir}) {
			return true
		}
	}
	return rules.Ignore(file, entry{path.Base(file), 0})
}

// entry is what the rules of .helmignore want to know of a file or a directory.
type entry struct {
	name string
	mode fs.FileMode
}

func (e entry) Name() string       { return e.name }
func (e entry) Size() int64        { return 0 }
func (e entry) Mode() fs.FileMode  { return e.mode }
func (e entry) ModTime() time.Time { return time.Time{} }
func (e entry) IsDir() bool        { return e.mode.IsDir() }
func (e entry) Sys() any           { return nil }

// checkChart refuses what Helm would not install, and returns the capabilities that templates see.
func checkChart(ch *chart.Chart, r *Request) (*common.Capabilities, error) {
	problem := func(format string, args ...any) error {
		return &Error{Origin: "Chart.yaml", Problem: fmt.Sprintf(format, args...), Err: ErrMalformed}
	}
	m := ch.Metadata
	if m.APIVersion != chart.APIVersionV1 && m.APIVersion != chart.APIVersionV2 {
		return nil, problem("apiVersion %q is not accepted: charts of v1 and v2 are", m.APIVersion)
	}
	if m.Type != "" && m.Type != "application" {
		return nil, problem("a chart of type %q is part of other charts and cannot be installed", m.Type)
	}
	if err := chartutil.ValidateReleaseName(r.Module); err != nil {
		return nil, &Error{Problem: fmt.Sprintf("the name %q cannot be a release of a chart: at most 53 lower-case letters, digits, - and .", r.Module), Err: ErrMalformed}
	}
	if missing := missingDependencies(ch); len(missing) > 0 {
		return nil, problem("dependencies are missing in charts/: %s: run helm dependency build", strings.Join(missing, ", "))
	}
	class, err := r.Capabilities.normalise()
	if err != nil {
		return nil, err
	}
	caps, err := class.helm()
	if err != nil {
		return nil, err
	}
	if m.KubeVersion != "" && !chartutil.IsCompatibleRange(m.KubeVersion, caps.KubeVersion.String()) {
		return nil, problem("the chart needs Kubernetes %s, but the runtime has %s", m.KubeVersion, caps.KubeVersion.Version)
	}
	return caps, nil
}

// missingDependencies are those that Chart.yaml declares and charts/ lacks; even if a condition leaves them out, as
// Helm has it.
func missingDependencies(ch *chart.Chart) []string {
	present := map[string]bool{}
	for _, d := range ch.Dependencies() {
		present[d.Name()] = true
	}
	var missing []string
	for _, d := range ch.Metadata.Dependencies {
		if d != nil && !present[d.Name] {
			missing = append(missing, d.Name)
		}
	}
	return missing
}

// chartValues merges the values, decides which subcharts take part, and makes what templates see.
func chartValues(ch *chart.Chart, r *Request, caps *common.Capabilities) (common.Values, []string, error) {
	given, err := cloneValues(r.Values)
	if err != nil {
		return nil, nil, err
	}
	release := common.ReleaseOptions{Name: r.Module, Namespace: r.Namespace, Revision: 1, IsInstall: true}
	var values common.Values
	warnings := captureWarnings(func() {
		if err = chartutil.ProcessDependencies(ch, given); err != nil {
			return
		}
		values, err = chartvalues.ToRenderValuesWithSchemaValidation(ch, given, release, caps, true)
	})
	if err != nil {
		return nil, nil, &Error{Problem: "the values cannot be merged: " + scrub(err.Error(), r.Values), Err: ErrValues}
	}
	return values, warnings, nil
}

// startSchemaCheck checks the schemas in a goroutine that ends by itself, on a copy: templates may change values.
func startSchemaCheck(ch *chart.Chart, values common.Values) (<-chan error, error) {
	merged, err := values.Table("Values")
	if err != nil {
		return nil, fmt.Errorf("merging the values: %w", err)
	}
	merged, err = cloneValues(merged)
	if err != nil {
		return nil, err
	}
	checked := make(chan error, 1)
	go func() { checked <- checkSchemas(ch, merged) }()
	return checked, nil
}

// notesSuffix marks templates whose output is for people; Helm leaves them out of the manifests.
const notesSuffix = "NOTES.txt"

// announceTemplates lets each template say first that it is being rendered, on its first line, so that line numbers
// stay.
func announceTemplates(ch *chart.Chart) {
	templates := make([]*common.File, 0, len(ch.Templates))
	for _, t := range ch.Templates {
		if t != nil && !strings.HasPrefix(path.Base(t.Name), "_") {
			name := path.Join(ch.ChartFullPath(), t.Name)
			call := fmt.Sprintf("{{%s %q %v}}", enterFunc, name, strings.HasSuffix(name, notesSuffix))
			t = &common.File{Name: t.Name, ModTime: t.ModTime, Data: slices.Concat([]byte(call), t.Data)}
		}
		templates = append(templates, t)
	}
	ch.Templates = templates // not in place: aliases of a subchart share the files
	for _, d := range ch.Dependencies() {
		announceTemplates(d)
	}
}

// definitions are the CRDs of the folders crds/ of a chart and its subcharts. They are no templates.
func definitions(ch *chart.Chart) []text {
	var texts []text
	for _, crd := range ch.CRDObjects() {
		texts = append(texts, text{origin: crd.Filename, data: crd.File.Data})
	}
	return texts
}

// renderedTexts are the outputs of the templates, in order of their names.
func renderedTexts(files map[string]string, s *session) []text {
	var texts []text
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, notesSuffix) || strings.HasPrefix(path.Base(name), "_") {
			continue
		}
		texts = append(texts, text{origin: name, data: []byte(files[name]), rendered: true, template: true, once: s.drew[name]})
	}
	return texts
}

// hookEvents are Helm's, by the names that charts may use.
var hookEvents = map[string]string{
	"pre-install": "pre-install", "post-install": "post-install", "pre-delete": "pre-delete",
	"post-delete": "post-delete", "pre-upgrade": "pre-upgrade", "post-upgrade": "post-upgrade",
	"pre-rollback": "pre-rollback", "post-rollback": "post-rollback", "test": "test", "test-success": "test",
}

// takeOutHooks separates hooks, which are reported and never run, from objects. Objects of crds/ are never hooks.
func (o *output) takeOutHooks(objects []object) {
	for _, obj := range objects {
		meta, _ := obj.fields["metadata"].(map[string]any)
		annotations, _ := meta["annotations"].(map[string]any)
		value, isHook := annotations["helm.sh/hook"].(string)
		if !isHook || !obj.rendered {
			o.objects = append(o.objects, obj)
			continue
		}
		hook, unknown := newHook(obj, value)
		if unknown != "" {
			o.warnings = append(o.warnings, fmt.Sprintf("%s: %s is left out, as Helm does: %q is no hook", hook.Origin, hook.Ref, unknown))
			continue
		}
		o.hooks = append(o.hooks, hook)
	}
}

// newHook describes a hook, and names the event that Helm does not know, if there is one.
func newHook(obj object, value string) (hook bundle.Hook, unknown string) {
	hook = bundle.Hook{Ref: refOf(obj.fields), Origin: obj.place()}
	for name := range strings.SplitSeq(value, ",") {
		name = strings.ToLower(strings.TrimSpace(name))
		event, ok := hookEvents[name]
		if !ok {
			return hook, name
		}
		hook.Events = append(hook.Events, event)
	}
	return hook, ""
}

// refOf names an object as far as it says what it is.
func refOf(fields map[string]any) bundle.Ref {
	apiVersion, _ := fields["apiVersion"].(string)
	group, _, ok := strings.Cut(apiVersion, "/")
	if !ok {
		group = ""
	}
	meta, _ := fields["metadata"].(map[string]any)
	ref := bundle.Ref{Group: group}
	ref.Kind, _ = fields["kind"].(string)
	ref.Name, _ = meta["name"].(string)
	ref.Namespace, _ = meta["namespace"].(string)
	return ref
}
