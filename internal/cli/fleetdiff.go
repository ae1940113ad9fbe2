package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership"
	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/controlplane"
	"github.com/kyma-project/mothership/internal/access"
	"github.com/kyma-project/mothership/internal/catalog"
	"github.com/kyma-project/mothership/internal/remote"
	"github.com/kyma-project/mothership/internal/values"
)

// moduleDiff is what the control plane would change of one module.
type moduleDiff struct {
	Module  string `json:"module"`
	Version string `json:"version,omitempty"`
	// Comparison with what is in the runtime; nil where there is none to make.
	*mothership.Comparison `json:"comparison,omitempty"`
	// Note says why nothing is compared, or what else will happen.
	Note string `json:"note,omitempty"`
	// Error says why it could not be compared.
	Error string `json:"error,omitempty"`

	removed bool
	err     error
}

// kymaDiff is what `mothership diff KYMA -o json` prints.
type kymaDiff struct {
	Kyma    string       `json:"kyma"`
	Modules []moduleDiff `json:"modules"`
}

// differs says whether anything would be changed.
func (d *kymaDiff) differs() bool {
	for _, m := range d.Modules {
		if m.removed || (m.Comparison != nil && !m.Equal()) {
			return true
		}
	}
	return false
}

// diffFleet compares a Kyma with its runtime.
func (a *app) diffFleet(cmd *cobra.Command, f *flags, args []string) error {
	if err := f.checkFleetDiff(cmd); err != nil {
		return err
	}
	ff := &fleetFlags{kubeconfig: f.kubeconfig, context: f.context, namespace: f.namespace, output: f.output}
	if ff.namespace == "" {
		ff.namespace = controlplane.DefaultNamespace
	}
	if err := ff.checkOutput(cmd, asTable, asJSON, asYAML); err != nil {
		return err
	}
	fl, err := a.connect(cmd, ff)
	if err != nil {
		return err
	}
	c, err := a.comparer(cmd, f, fl, args[0])
	if err != nil {
		return err
	}
	if c.kyma.Spec.Suspend {
		a.note("note", "the Kyma is suspended: nothing of this happens until mothership resume "+args[0])
	}
	only := ""
	if len(args) > 1 {
		only = args[1]
	}
	out, err := c.all(cmd.Context(), only)
	if err != nil {
		return err
	}
	return a.printDiff(f, out)
}

// checkFleetDiff refuses the flags of a comparison without a control plane.
func (f *flags) checkFleetDiff(cmd *cobra.Command) error {
	for _, name := range []string{"name", "chart", "kustomize", "filename", "digest", "values", "set", "set-string", "set-file", "set-json", "set-literal", "adopt", "per-runtime", "yield"} {
		if cmd.Flags().Changed(name) {
			return usage(cmd, "--%s is for a comparison without a control plane: leave KYMA away", name)
		}
	}
	if f.timeout <= 0 {
		return usage(cmd, "--timeout %s: it must be more than 0", f.timeout)
	}
	return nil
}

// comparer compares the modules of one Kyma.
type comparer struct {
	fleet     *fleet
	kyma      v1beta2.Kyma
	catalog   catalog.Catalog
	runtime   *rest.Config
	installer *mothership.Installer
	timeout   time.Duration
}

func (a *app) comparer(cmd *cobra.Command, f *flags, fl *fleet, name string) (*comparer, error) {
	c := &comparer{fleet: fl, timeout: f.timeout}
	ctx := cmd.Context()
	if err := fl.get(ctx, name, &c.kyma); err != nil {
		return nil, err
	}
	var err error
	if c.catalog, err = fl.catalog(cmd); err != nil {
		return nil, err
	}
	if c.runtime, err = fl.runtimeConfig(ctx, name); err != nil {
		return nil, err
	}
	owner, err := fl.uid(ctx)
	if err != nil {
		return nil, err
	}
	isolation, err := a.isolation(cmd, f)
	if err != nil {
		return nil, err
	}
	c.installer = mothership.New(mothership.Options{
		Isolate: isolation, IsolateAll: f.isolate, RenderMemory: isolation.MemoryBytes, Owner: owner, PostRender: f.post,
	})
	return c, nil
}

// kubeconfig reads a Runtime's kubeconfig.
func (f *fleet) kubeconfig(ctx context.Context, name string) (data []byte, from string, err error) {
	var r v1beta2.Runtime
	if err := f.get(ctx, name, &r); err != nil {
		return nil, "", err
	}
	ref := access.SecretOf(&r)
	from = fmt.Sprintf("Secret %s, key %s", ref.Name, ref.Key)
	var secret corev1.Secret
	err = f.get(ctx, ref.Name, &secret)
	if errors.As(err, new(*missingError)) || (err == nil && len(secret.Data[ref.Key]) == 0) {
		message, _ := readyCondition(r.Status.Conditions)
		return nil, from, &hintedError{
			err:  fmt.Errorf("Runtime %q has no kubeconfig (yet) in %s%s", name, from, colon(message)), //nolint:staticcheck // it begins with a kind
			hint: "see mothership describe runtime " + name,
		}
	}
	return secret.Data[ref.Key], from, err
}

// runtimeConfig is the way to a runtime, by the rules that the control plane has for kubeconfigs.
func (f *fleet) runtimeConfig(ctx context.Context, name string) (*rest.Config, error) {
	data, from, err := f.kubeconfig(ctx, name)
	if err != nil {
		return nil, err
	}
	cfg, err := remote.LoadKubeconfig(data, "")
	if err != nil {
		return nil, fmt.Errorf("using the kubeconfig in %s: %w", from, err)
	}
	return cfg, nil
}

// all compares every module, or one.
func (c *comparer) all(ctx context.Context, only string) (*kymaDiff, error) {
	out := &kymaDiff{Kyma: c.kyma.Name, Modules: []moduleDiff{}}
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, fmt.Errorf("not done within %s", c.timeout))
	defer cancel()
	for _, m := range catalog.Resolve(&c.kyma, c.catalog) {
		if only != "" && m.Name != only {
			continue
		}
		d := c.one(ctx, m)
		if d.err != nil {
			d.Error = d.err.Error()
			if ctx.Err() != nil {
				return nil, d.err
			}
		}
		out.Modules = append(out.Modules, d)
	}
	if only != "" && len(out.Modules) == 0 {
		return nil, fmt.Errorf("Kyma %q has no module %q", c.kyma.Name, only) //nolint:staticcheck // it begins with a kind
	}
	return out, nil
}

// one compares a module with what is in the runtime.
func (c *comparer) one(ctx context.Context, m catalog.Module) moduleDiff {
	d := moduleDiff{Module: m.Name, Version: m.Version}
	switch {
	case m.Deleting && m.Unmanaged:
		d.Note = "forgotten: it is left alone in the runtime"
		return d
	case m.Deleting:
		d.Note, d.removed = "removed, with all that it has installed", true
		return d
	case m.Unmanaged:
		d.Note = "left alone on request (managed: false)"
		return d
	case m.Problem != nil:
		d.err = errors.New(m.Problem.Message)
		return d
	case m.Template.Spec.Reconciler != "":
		d.Note = "not compared: it is driven by the reconciler " + m.Template.Spec.Reconciler
		return d
	}
	if m.Notice != nil {
		d.Note = m.Notice.Message
	}
	found, err := values.Read(ctx, c.fleet.reader(), c.kyma.Namespace, m.Spec)
	switch {
	case err != nil:
		d.err = err
		return d
	case found.Problem != "":
		d.err = errors.New(found.Problem)
		return d
	case len(found.Missing) > 0:
		d.Note = "not compared: it waits for " + strings.Join(found.Missing, ", ")
		return d
	}
	d.Comparison, d.err = c.installer.Diff(ctx, c.runtime, moduleOf(m, found.Values), mothership.CompareOptions{Timeout: c.timeout})
	return d
}

// moduleOf is what the control plane would install.
func moduleOf(m catalog.Module, values map[string]any) mothership.Module {
	out := mothership.Module{Name: m.Name, Namespace: m.Namespace, Template: m.Template.Spec, Values: values}
	if m.Spec != nil && m.Spec.CustomResourcePolicy == v1beta2.IgnoreCustomResource {
		out.Template.Data = nil
	}
	return out
}

// reader reads with a deadline for each call.
func (f *fleet) reader() client.Reader { return boundedReader{f.client} }

type boundedReader struct{ client.Reader }

// Get implements client.Reader.
func (r boundedReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, o ...client.GetOption) error {
	ctx, cancel := call(ctx)
	defer cancel()
	return r.Reader.Get(ctx, key, obj, o...)
}

// printDiff prints what would be changed, and says by its error whether anything would.
func (a *app) printDiff(f *flags, d *kymaDiff) error {
	var errs []error
	for _, m := range d.Modules {
		if m.err != nil {
			errs = append(errs, fmt.Errorf("module %s: %w", m.Module, m.err))
		}
		if m.Comparison != nil {
			a.warn(nil, m.Warnings)
		}
	}
	if err := a.print(f, d, func() string { return a.diffText(d) }); err != nil {
		return err
	}
	switch {
	case len(errs) > 0:
		return errors.Join(errs...)
	case d.differs():
		return errDiffers
	}
	return nil
}

func (a *app) diffText(d *kymaDiff) string {
	var b strings.Builder
	for _, m := range d.Modules {
		if m.Note != "" {
			fmt.Fprintf(&b, "%s: %s\n", oneLine(m.Module), oneLine(m.Note))
		}
		if m.Comparison != nil {
			b.WriteString(a.comparisonTable(m.Comparison))
		}
	}
	if len(d.Modules) == 0 {
		b.WriteString("Kyma " + d.Kyma + " has no modules\n")
	}
	return b.String()
}
