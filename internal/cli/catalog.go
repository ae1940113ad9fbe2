package cli

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership"
	"github.com/kyma-project/mothership/api/v1beta2"
)

const aboutCatalogs = `
A catalogue is a folder, whose *.yaml, *.yml and *.json hold ModuleTemplates and ModuleReleaseMetas, or an OCI artifact of one. add
changes what a control plane offers; mothership get catalog says what that is. The others need no control plane.
`

const aboutCatalog = `
Either applies ModuleTemplates and ModuleReleaseMetas from YAML files; of a folder, its *.yaml, *.yml and *.json, without
those of folders below it; or of an artifact that was pushed. Source paths in them that are relative are relative to their file. Or,
with --name, makes a module's template of a chart, a kustomization or manifests, and adds the version to channels.
`

const exampleCatalog = `
  mothership catalog add ./catalog
  mothership catalog add oci://registry.example.com/team/catalog:1.0
  mothership catalog add --chart ./web --name web --version 1.2.3 --channel regular --channel fast`

// cataloging is one call of catalog add.
type cataloging struct {
	fleetFlags
	servers                     serverFlags
	chart, kustomize, manifests string
	name, version, into         string
	channels, needs             []string
	mandatory                   bool
}

func (a *app) catalog() *cobra.Command {
	return a.group("catalog COMMAND", "Make, check, copy and add catalogues of modules", aboutCatalogs,
		a.catalogAdd(), a.catalogLint(), a.catalogPush(), a.catalogPull(), a.catalogMirror())
}

func (a *app) catalogAdd() *cobra.Command {
	f := &cataloging{}
	cmd := a.verb("add (DIR|FILE|oci://…... | --name NAME --version VERSION (--chart|--kustomize|--manifests) SOURCE) [flags]",
		"Add modules and versions to the catalogue", aboutCatalog, exampleCatalog, []string{"[FILE...]"},
		func(cmd *cobra.Command, args []string) error { return a.runCatalogAdd(cmd, f, args) })
	cmd.ValidArgsFunction = nil // files
	f.addTo(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.name, "name", "", "the module's `NAME`")
	flags.StringVar(&f.version, "version", "", "its `VERSION`")
	flags.StringVar(&f.chart, "chart", "", "a Helm chart: `DIR|FILE.tgz|URL`")
	flags.StringVar(&f.kustomize, "kustomize", "", "a kustomization: `DIR|URL` of an archive")
	flags.StringVar(&f.manifests, "manifests", "", "plain manifests: `FILE|DIR|URL`")
	flags.StringVar(&f.into, "into", "", "the `NAMESPACE` in runtimes that it is installed into (default: "+v1beta2.DefaultModuleNamespace+")")
	flags.StringArrayVar(&f.channels, "channel", nil, "a `CHANNEL` that has this version from now on; repeatable")
	flags.StringArrayVar(&f.needs, "needs", nil, "a `MODULE` that must be ready before; repeatable")
	flags.BoolVar(&f.mandatory, "mandatory", false, "every runtime gets this version, whether its Kyma names it or not")
	f.servers.addTo(flags)
	return cmd
}

func (a *app) runCatalogAdd(cmd *cobra.Command, f *cataloging, args []string) error {
	entries, err := f.entries(a, cmd, args)
	if err != nil {
		return err
	}
	fl, err := a.connect(cmd, &f.fleetFlags)
	if err != nil {
		return err
	}
	if f.name != "" {
		if entries, err = f.withRelease(cmd, fl, entries); err != nil {
			return err
		}
	}
	did, err := fl.applyAll(cmd.Context(), entries)
	for i := range did {
		if err := a.say("%s %s %s", kindOf(entries[i].object), entries[i].object.GetName(), did[i]); err != nil {
			return err
		}
	}
	return err
}

// applyAll makes objects be as they are given, in their order, and says what it did with each of them up to an error.
func (f *fleet) applyAll(ctx context.Context, entries []entry) (did []string, err error) {
	for _, e := range entries {
		one, err := f.apply(ctx, e.object)
		if err != nil {
			if e.file != "" {
				err = fmt.Errorf("%s: %w", e.file, err)
			}
			return did, err
		}
		did = append(did, one)
	}
	return did, nil
}

// entries are what the arguments or flags describe.
func (f *cataloging) entries(a *app, cmd *cobra.Command, args []string) ([]entry, error) {
	sources := slices.DeleteFunc([]string{f.chart, f.kustomize, f.manifests}, func(s string) bool { return s == "" })
	described := f.name != "" || f.version != "" || len(sources) > 0
	switch {
	case len(args) > 0 && (described || len(f.channels)+len(f.needs) > 0 || f.mandatory || f.into != ""):
		return nil, usage(cmd, "give files, or describe a module with flags, not both")
	case len(args) > 0:
		return a.readCatalog(cmd.Context(), &f.servers, args, f.namespace)
	case !described:
		return nil, usage(cmd, "name files, or describe a module with --name, --version and --chart")
	case f.name == "" || f.version == "":
		return nil, usage(cmd, "--name and --version are needed")
	case len(sources) != 1:
		return nil, usage(cmd, "give exactly one of --chart, --kustomize and --manifests, not %d", len(sources))
	case f.mandatory && len(f.channels) > 0:
		return nil, usage(cmd, "give --mandatory or --channel, not both")
	}
	if problems := validation.IsDNS1123Label(f.name); len(problems) > 0 {
		return nil, usage(cmd, "--name %q: %s", f.name, strings.Join(problems, "; "))
	}
	t, err := f.template()
	if err != nil {
		return nil, err
	}
	return []entry{{object: t}}, nil
}

// template of the module that the flags describe.
func (f *cataloging) template() (*v1beta2.ModuleTemplate, error) {
	t := &v1beta2.ModuleTemplate{}
	t.Namespace, t.Name = f.namespace, f.name+"-"+f.version
	t.Spec = v1beta2.ModuleTemplateSpec{ModuleName: f.name, Version: f.version, Namespace: cmp.Or(f.into, v1beta2.DefaultModuleNamespace)}
	switch {
	case f.chart != "":
		t.Spec.Source = mothership.Chart(f.chart)
	case f.kustomize != "":
		t.Spec.Source = mothership.Kustomization(f.kustomize)
	default:
		t.Spec.Source = mothership.Manifests(f.manifests)
	}
	for _, need := range f.needs {
		t.Spec.Needs = append(t.Spec.Needs, v1beta2.FactModulePrefix+need)
	}
	wd, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("finding the working directory: %w", err)
	}
	return t, absolute(&t.Spec.Source, wd)
}

// absolute makes local paths independent of where a command was called; they must exist.
func absolute(s *v1beta2.Source, dir string) error {
	for _, ref := range []*v1beta2.SourceRef{s.Chart, s.Kustomize, s.Manifests} {
		if ref == nil || ref.URL != "" || ref.Git != nil || ref.Helm != nil || ref.OCI != nil || ref.Path == "" {
			continue
		}
		if !filepath.IsAbs(ref.Path) {
			ref.Path = filepath.Join(dir, ref.Path)
		}
		if _, err := os.Stat(ref.Path); err != nil {
			return fmt.Errorf("finding the source: %w", err)
		}
	}
	return nil
}

// withRelease adds the release that names the version, based on the one that exists.
func (f *cataloging) withRelease(cmd *cobra.Command, fl *fleet, entries []entry) ([]entry, error) {
	if len(f.channels) == 0 && !f.mandatory {
		return entries, nil
	}
	r := &v1beta2.ModuleReleaseMeta{}
	r.Namespace, r.Name, r.Spec.ModuleName = f.namespace, f.name, f.name
	ctx, cancel := call(cmd.Context())
	defer cancel()
	if err := fl.client.Get(ctx, client.ObjectKeyFromObject(r), r); err != nil && !apierrors.IsNotFound(err) {
		return nil, problemOfAPI("reading ModuleReleaseMeta "+f.name, err)
	}
	if f.mandatory {
		r.Spec.Mandatory, r.Spec.Channels = &v1beta2.MandatoryVersion{Version: f.version}, nil
	} else {
		r.Spec.Mandatory = nil
	}
	for _, channel := range f.channels {
		i := slices.IndexFunc(r.Spec.Channels, func(c v1beta2.ChannelVersion) bool { return c.Channel == channel })
		if i < 0 {
			r.Spec.Channels, i = append(r.Spec.Channels, v1beta2.ChannelVersion{Channel: channel}), len(r.Spec.Channels)
		}
		r.Spec.Channels[i].Version = f.version
	}
	return append(entries, entry{object: r}), nil
}

// apply makes an object be as it is given, and says what it did: added, changed or unchanged.
func (f *fleet) apply(ctx context.Context, obj client.Object) (did string, err error) {
	doing := "applying " + kindOf(obj) + " " + obj.GetName()
	for range maxAttempts {
		did, err = f.applyOnce(ctx, obj)
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return did, problemOfAPI(doing, err)
		}
	}
	return "", fmt.Errorf("%s: %w", doing, errBusy)
}

func (f *fleet) applyOnce(ctx context.Context, obj client.Object) (did string, err error) {
	ctx, cancel := call(ctx)
	defer cancel()
	live, _ := obj.DeepCopyObject().(client.Object)
	err = f.client.Get(ctx, client.ObjectKeyFromObject(obj), live)
	if apierrors.IsNotFound(err) {
		fresh, _ := obj.DeepCopyObject().(client.Object)
		fresh.SetResourceVersion("")
		return "added", f.client.Create(ctx, fresh)
	}
	if err != nil {
		return "", err
	}
	base, _ := live.DeepCopyObject().(client.Object)
	overlay(live, obj)
	if equality.Semantic.DeepEqual(base, live) {
		return "unchanged", nil
	}
	if err := f.client.Update(ctx, live); err != nil {
		return "", err
	}
	if live.GetResourceVersion() == base.GetResourceVersion() {
		return "unchanged", nil // what differed were the API's defaults
	}
	return "changed", nil
}

// overlay gives a live object the labels, annotations and spec of another.
func overlay(live, want client.Object) {
	live.SetLabels(merged(live.GetLabels(), want.GetLabels()))
	live.SetAnnotations(merged(live.GetAnnotations(), want.GetAnnotations()))
	switch live := live.(type) {
	case *v1beta2.ModuleTemplate:
		if want, ok := want.(*v1beta2.ModuleTemplate); ok {
			live.Spec = want.Spec
		}
	case *v1beta2.ModuleReleaseMeta:
		if want, ok := want.(*v1beta2.ModuleReleaseMeta); ok {
			live.Spec = want.Spec
		}
	}
}

func merged(base, over map[string]string) map[string]string {
	for key, value := range over {
		if base == nil {
			base = map[string]string{}
		}
		base[key] = value
	}
	return base
}

// filesOf are the files that an argument names: itself, or those of a folder, sorted.
func filesOf(arg string) ([]string, error) {
	info, err := os.Stat(arg)
	if err != nil || !info.IsDir() {
		return []string{arg}, err
	}
	found, err := fs.ReadDir(os.DirFS(arg), ".")
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range found {
		if slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) && !e.IsDir() {
			out = append(out, filepath.Join(arg, e.Name()))
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s has no *.yaml, *.yml or *.json", arg)
	}
	return out, nil
}
