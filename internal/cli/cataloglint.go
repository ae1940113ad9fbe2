package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kyma-project/mothership"
	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/catalog/artifact"
	"github.com/kyma-project/mothership/internal/catalog/lint"
)

const aboutLint = `
Says everything that would fail once the catalogue is used: documents that cannot be read, fields that do not exist, what the control
plane would refuse, channels without a template, needs that nobody meets and rings of them, sources that cannot be had, values that a
chart refuses, templates that cannot be rendered with their own values, and objects that two modules ship. Each finding names its file
and document. Sources that are not pinned to a digest, and modules without a channel, are warnings.

Everything is rendered in a child process with limits. No cluster is asked.

Exit codes: 0 nothing is wrong, or with warnings only; 1 there are errors, or with --strict warnings.
`

const exampleLint = `
  mothership catalog lint ./catalog
  mothership catalog lint oci://registry.example.com/team/catalog:1.0 --strict -o json`

// linting is one call of catalog lint.
type linting struct {
	servers serverFlags
	strict  bool
	output  string
}

func (a *app) catalogLint() *cobra.Command {
	f := &linting{}
	cmd := a.verb("lint (DIR|FILE|oci://…) [flags]", "Say everything that would fail at run time", aboutLint, exampleLint,
		[]string{"CATALOGUE"}, func(cmd *cobra.Command, args []string) error { return a.runCatalogLint(cmd, f, args[0]) })
	cmd.ValidArgsFunction = nil // files
	flags := cmd.Flags()
	f.servers.addTo(flags)
	f.servers.addSecretsTo(flags)
	flags.BoolVar(&f.strict, "strict", false, "warnings are errors, too")
	addOutput(cmd, &f.output)
	return cmd
}

// addOutput adds -o of commands whose result is a table or data.
func addOutput(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVarP(output, "output", "o", asTable, "`FORMAT`: table, json or yaml")
	complete(cmd, "output", asTable, asJSON, asYAML)
}

// checkOutput refuses what is no format.
func checkOutput(cmd *cobra.Command, output string) error {
	if output != asTable && output != asJSON && output != asYAML {
		return usage(cmd, "--output %q: it is table, json or yaml", output)
	}
	return nil
}

func (a *app) runCatalogLint(cmd *cobra.Command, f *linting, name string) error {
	if err := checkOutput(cmd, f.output); err != nil {
		return err
	}
	p, err := a.open(cmd.Context(), &f.servers, name)
	if err != nil {
		return err
	}
	defer p.close()
	outfit, err := a.outfit(cmd, &f.servers, p.dir)
	if err != nil {
		return err
	}
	r, err := a.renderer(cmd, outfit)
	if err != nil {
		return err
	}
	findings := lint.Run(cmd.Context(), p.files, lint.Options{Render: r.forLint})
	errs, warnings := 0, 0
	for _, found := range findings {
		if found.Severity == lint.Error {
			errs++
		} else {
			warnings++
		}
	}
	if findings == nil {
		findings = []lint.Finding{}
	}
	if err := a.print(&flags{output: f.output}, map[string]any{"findings": findings}, func() string { return a.findings(findings) }); err != nil {
		return err
	}
	said := count(errs, "error") + ", " + count(warnings, "warning")
	if errs > 0 || f.strict && warnings > 0 {
		return errors.New(said)
	}
	if f.output == asTable {
		a.note("note", said)
	}
	return nil
}

// findings is a line for each.
func (a *app) findings(all []lint.Finding) string {
	paint := a.palette(a.p.Stdout)
	var b strings.Builder
	for _, f := range all {
		severity := paint.yellow(string(f.Severity) + ":")
		if f.Severity == lint.Error {
			severity = paint.red(string(f.Severity) + ":")
		}
		fmt.Fprintf(&b, "%s %s\n", severity, oneLine(f.String()))
	}
	return b.String()
}

// templateRenderer renders templates of a catalogue with their own values, in a child process.
type templateRenderer struct {
	installer *mothership.Installer
	outfit    *outfit
}

func (a *app) renderer(cmd *cobra.Command, o *outfit) (*templateRenderer, error) {
	installer, err := a.isolated(cmd, o, &flags{memoryLimit: defaultMemory})
	return &templateRenderer{installer, o}, err
}

// isolated is an Installer that trusts no source: a catalogue's may come from anywhere.
func (a *app) isolated(cmd *cobra.Command, o *outfit, f *flags) (*mothership.Installer, error) {
	isolation, err := a.isolation(cmd, f)
	if err != nil {
		return nil, err
	}
	return mothership.New(mothership.Options{Isolate: isolation, IsolateAll: true, Sources: o.sources(), PostRender: f.post}), nil
}

func (r *templateRenderer) render(ctx context.Context, t *v1beta2.ModuleTemplate) (*mothership.Rendered, error) {
	m := mothership.Module{Name: t.Spec.ModuleName, Namespace: namespaceOf(t), Template: t.Spec}
	var err error
	if m.Template.Source, err = r.outfit.dressed(ctx, t.Spec.Source); err != nil {
		return nil, err
	}
	return r.installer.Render(ctx, m, mothership.RenderOptions{})
}

// namespaceOf is where a template's module goes.
func namespaceOf(t *v1beta2.ModuleTemplate) string {
	if t.Spec.Namespace == "" {
		return v1beta2.DefaultModuleNamespace
	}
	return t.Spec.Namespace
}

func (r *templateRenderer) forLint(ctx context.Context, t *v1beta2.ModuleTemplate) (*lint.Rendered, error) {
	got, err := r.render(ctx, t)
	if err != nil {
		return nil, err
	}
	out := &lint.Rendered{Warnings: got.Warnings}
	for _, o := range got.Objects {
		out.Objects = append(out.Objects, o.Ref)
	}
	out.Objects = lint.ObjectsOf(out.Objects)
	for _, h := range got.Hooks {
		out.Warnings = append(out.Warnings, hookText(h))
	}
	return out, nil
}

// images are the container images in a template's objects.
func (r *templateRenderer) images(ctx context.Context, t *v1beta2.ModuleTemplate) ([]string, error) {
	got, err := r.render(ctx, t)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, o := range got.Objects {
		var content any
		if err := json.Unmarshal(o.JSON, &content); err != nil {
			return nil, fmt.Errorf("reading %s: %w", o.Ref, err)
		}
		out = artifact.Images(content, out)
	}
	return out, nil
}
