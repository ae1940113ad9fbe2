package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kyma-project/mothership"
	"github.com/kyma-project/mothership/api/v1beta2"
)

// flags are those of one command. Each command takes those that the others take, so that one set of arguments does for
// all of them; what a command has no use for is hidden.
type flags struct {
	kubeconfig, context string

	chart, kustomize, filename, digest string

	name, namespace string
	adopt           bool
	perRuntime      bool
	serviceAccount  string
	yield           []string
	values          valueFlags
	post            v1beta2.PostRender
	sources         sourceFlags
	all             bool
	catalog         string

	isolate     bool
	memoryLimit string

	wait    bool
	timeout time.Duration
	output  string
}

// outputs of all commands.
const (
	asTable = "table"
	asJSON  = "json"
	asYAML  = "yaml"
)

// addTo defines the flags on a command whose output has the given default.
func (f *flags) addTo(cmd *cobra.Command, output string) {
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.name, "name", "", "the module's `NAME`")
	fs.StringVarP(&f.namespace, "namespace", "n", "", "the `NAMESPACE` it is installed into; made where it is missing")
	fs.StringVar(&f.chart, "chart", "", "a Helm chart, `CHART` is DIR, FILE.tgz, URL, oci://HOST/CHART:TAG, REPO/NAME or git+https://HOST/REPOSITORY@REF#DIR")
	fs.StringVar(&f.kustomize, "kustomize", "", "a kustomization, `PLACE` is DIR, URL of an archive, oci://… or git+https://…")
	fs.StringVarP(&f.filename, "filename", "f", "", "plain manifests, `PLACE` is FILE, DIR, URL, oci://…, git+https://… or - for stdin")
	fs.StringVar(&f.digest, "digest", "", "the digest that the source must have: `sha256:HEX`")
	f.sources.addTo(fs)
	f.values.addTo(fs)
	addPostFlag(fs, &f.post)
	fs.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig `FILE` (default: $KUBECONFIG if it names one file, else ~/.kube/config)")
	fs.StringVar(&f.context, "context", "", "`CONTEXT` of the kubeconfig (default: its current one)")
	fs.BoolVar(&f.adopt, "adopt", false, "take over objects that exist and are not the module's")
	fs.StringArrayVar(&f.yield, "yield", nil, "a field to set once and then leave to others: `[GROUP/]KIND:/POINTER`; repeatable")
	fs.BoolVar(&f.perRuntime, "per-runtime", false, "let templates draw randomness, once per cluster")
	fs.StringVar(&f.serviceAccount, "service-account", "", "write and delete the objects as this service account of the module's namespace: `NAME`")
	fs.BoolVar(&f.isolate, "isolate", false, "render local files too in a child process that can be stopped, as downloads always are")
	fs.StringVar(&f.memoryLimit, "memory-limit", defaultMemory, "memory that rendering may use: `SIZE`")
	fs.BoolVar(&f.wait, "wait", false, "wait until every object is ready")
	fs.DurationVar(&f.timeout, "timeout", 5*time.Minute, "the longest that all of it may take")
	fs.StringVarP(&f.output, "output", "o", output, "`FORMAT`: table, json or yaml")
	complete(cmd, "output", asTable, asJSON, asYAML)
	for _, dir := range []string{"chart", "kustomize"} {
		if err := cmd.MarkFlagDirname(dir); err != nil {
			panic(err) // a flag that was never defined
		}
	}
}

// hide hides flags that are accepted and have no effect.
func hide(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		if err := cmd.Flags().MarkHidden(name); err != nil {
			panic(err) // a flag that was never defined
		}
	}
}

// check refuses what cannot be meant, before anything is read.
func (f *flags) check(cmd *cobra.Command, needsSource bool) error {
	for _, c := range []struct{ flag, value string }{{"name", f.name}, {"namespace", f.namespace}} {
		if c.value == "" {
			return usage(cmd, "--%s is missing", c.flag)
		}
		if problems := validation.IsDNS1123Label(c.value); len(problems) > 0 {
			return usage(cmd, "--%s %q: %s", c.flag, c.value, strings.Join(problems, "; "))
		}
	}
	if n := len(f.places()); n > 1 || n == 0 && needsSource {
		return usage(cmd, "give exactly one of --chart, --kustomize and --filename, not %d", n)
	}
	if !slices.Contains([]string{asTable, asJSON, asYAML}, f.output) {
		return usage(cmd, "--output %q: it is table, json or yaml", f.output)
	}
	if err := f.sources.check(cmd, f); err != nil {
		return err
	}
	if f.timeout <= 0 {
		return usage(cmd, "--timeout %s: it must be more than 0", f.timeout)
	}
	if f.chart == "" && f.values.any() && needsSource {
		return usage(cmd, "values are for charts only: --values and --set… need --chart")
	}
	return nil
}

// places are the sources that are given.
func (f *flags) places() []string {
	return slices.DeleteFunc([]string{f.chart, f.kustomize, f.filename}, func(s string) bool { return s == "" })
}

// source is what the module is made from; nothing where no source is given.
func (f *flags) source() v1beta2.Source {
	var s v1beta2.Source
	switch {
	case f.chart != "":
		s = mothership.Chart(f.chart)
		s.Chart.Digest = f.digest
	case f.kustomize != "":
		s = mothership.Kustomization(f.kustomize)
		s.Kustomize.Digest = f.digest
	case f.filename != "":
		s = mothership.Manifests(f.filename)
		s.Manifests.Digest = f.digest
	}
	return s
}

// module is what the flags describe.
func (f *flags) module(cmd *cobra.Command, needsSource bool, open opener) (mothership.Module, error) {
	m := mothership.Module{Name: f.name, Namespace: f.namespace}
	if err := f.check(cmd, needsSource); err != nil {
		return m, err
	}
	yield, err := f.yieldRules(cmd)
	if err != nil {
		return m, err
	}
	m.Template = v1beta2.ModuleTemplateSpec{Source: f.source(), Adopt: f.adopt, PerRuntime: f.perRuntime, Yield: yield, ServiceAccountName: f.serviceAccount}
	if needsSource {
		m.Values, err = f.values.merge(cmd, open)
	}
	return m, err
}

// yieldRules reads [GROUP/]KIND:/POINTER, a JSON pointer.
func (f *flags) yieldRules(cmd *cobra.Command) ([]v1beta2.YieldRule, error) {
	var rules []v1beta2.YieldRule
	for _, y := range f.yield {
		kind, pointer, ok := strings.Cut(y, ":")
		if !ok || kind == "" || !strings.HasPrefix(pointer, "/") {
			return nil, usage(cmd, "--yield %q: write [GROUP/]KIND:/POINTER, such as apps/Deployment:/spec/replicas", y)
		}
		rule := v1beta2.YieldRule{Kind: kind, Paths: []string{pointer}}
		if group, kind, ok := strings.Cut(kind, "/"); ok {
			rule.Group, rule.Kind = group, kind
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

// defaultMemory is what rendering may use.
const defaultMemory = "512Mi"

// leastMemory is what a rendering needs at least, in bytes: the program itself takes most of it.
const leastMemory = 64 << 20

// isolation is how rendering is kept apart.
func (a *app) isolation(cmd *cobra.Command, f *flags) (*mothership.Isolation, error) {
	limit, err := resource.ParseQuantity(f.memoryLimit)
	if err != nil || limit.Value() < leastMemory {
		return nil, usage(cmd, "--memory-limit %q: it is a size of 64Mi at least, such as 512Mi or 2Gi", f.memoryLimit)
	}
	program, err := a.p.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program for a child process: %w", err)
	}
	return &mothership.Isolation{Command: []string{program, childArgument}, MemoryBytes: limit.Value()}, nil
}
