package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/kyma-project/mothership"
	"github.com/kyma-project/mothership/api/v1beta2"
)

const aboutRender = `
Prints the objects as install would send them, stage by stage, without a cluster. Secrets are printed as they are.
With -o json it is one List, whose annotations carry the digests; with -o table, the names only.
` + aboutExit

const exampleRender = `
  mothership render --name web --namespace demo --chart ./web --kube-version 1.36 --api-versions monitoring.coreos.com/v1`

func (a *app) render() *cobra.Command {
	f, o := &flags{}, mothership.RenderOptions{}
	cmd := a.command("render --name NAME --namespace NAMESPACE (--chart|--kustomize|-f) SOURCE [flags]",
		"Print a module's objects, without a cluster", aboutRender, exampleRender,
		func(cmd *cobra.Command) error { return a.runRender(cmd, f, o) })
	f.addTo(cmd, asYAML)
	cmd.Flags().StringVar(&o.KubeVersion, "kube-version", "", "the `VERSION` of Kubernetes that charts see (default: the one this program was built for)")
	cmd.Flags().StringSliceVar(&o.APIVersions, "api-versions", nil, "APIs that charts see beside the built-in ones: `GROUP/VERSION[/KIND]`; repeatable")
	hide(cmd, "kubeconfig", "context", "adopt", "yield", "wait", "service-account")
	return cmd
}

func (a *app) runRender(cmd *cobra.Command, f *flags, o mothership.RenderOptions) error {
	j, err := a.offline(cmd, f, true)
	if err != nil {
		return err
	}
	o.Timeout = f.timeout
	r, err := j.installer.Render(cmd.Context(), j.module, o)
	if err != nil {
		return err
	}
	a.warn(r.Hooks, r.Warnings)
	text, err := renderedText(f.output, r)
	if err != nil {
		return err
	}
	return a.write(text)
}

func renderedText(output string, r *mothership.Rendered) (string, error) {
	switch output {
	case asJSON:
		return renderedList(r)
	case asYAML:
		return renderedYAML(r)
	}
	var b strings.Builder
	for _, o := range r.Objects {
		fmt.Fprintf(&b, "%-12s %s\n", o.Stage, o.Ref)
	}
	return b.String(), nil
}

// renderedYAML is documents that kubectl can apply, with the digests and stages in comments.
func renderedYAML(r *mothership.Rendered) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "# module %s in namespace %s\n# source %s\n# bundle %s\n", r.Module, r.Namespace, r.SourceDigest, r.BundleDigest)
	for _, h := range r.Hooks {
		fmt.Fprintf(&b, "# %s\n", clean(hookText(h)))
	}
	stage := ""
	for _, o := range r.Objects {
		doc, err := yaml.JSONToYAML(o.JSON)
		if err != nil {
			return "", fmt.Errorf("printing %s: %w", o.Ref, err)
		}
		b.WriteString("---\n")
		if o.Stage != stage {
			stage = o.Stage
			fmt.Fprintf(&b, "# stage %s\n", stage)
		}
		b.Write(doc)
	}
	return b.String(), nil
}

// Annotations of the List that -o json prints.
const (
	sourceDigestAnnotation = v1beta2.Group + "/source-digest"
	bundleDigestAnnotation = v1beta2.BundleDigestAnnotation
)

// renderedList is a List of the objects in the order in which they are applied.
func renderedList(r *mothership.Rendered) (string, error) {
	list := struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Metadata   map[string]any    `json:"metadata"`
		Items      []json.RawMessage `json:"items"`
	}{"v1", "List", map[string]any{"annotations": map[string]string{
		sourceDigestAnnotation: r.SourceDigest, bundleDigestAnnotation: r.BundleDigest,
	}}, []json.RawMessage{}}
	for _, o := range r.Objects {
		list.Items = append(list.Items, o.JSON)
	}
	return indentedJSON(list)
}

// indentedJSON is JSON for people and programs: indented, and without escapes of <, > and &.
func indentedJSON(v any) (string, error) { return encodedJSON(v, "  ") }

// compactJSON is JSON on one line.
func compactJSON(v any) (string, error) { return encodedJSON(v, "") }

func encodedJSON(v any, indent string) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return "", fmt.Errorf("printing the result: %w", err)
	}
	return b.String(), nil
}
