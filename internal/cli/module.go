package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/catalog"
)

const aboutModules = `
Each changes one module of one Kyma, and refuses what the control plane could not do: an unknown module, channel or
version, a lower version, a ring of needs. They return when the change is written; mothership wait waits for the rest.
`

// moduleFlags are those of the commands that change a module.
type moduleFlags struct {
	fleetFlags
	force            bool
	channel, version string
	policy           string
	values           valueFlags
}

// moduleChange is a change of one module.
type moduleChange struct {
	kyma, module string
	// edit changes the Kyma's entry, which is nil if it has none, and returns the new one; nil takes it away.
	edit func(*v1beta2.Module) (*v1beta2.Module, error)
	// check refuses what the control plane could not carry out.
	check bool
	// done and nothing say what was done, or that nothing was to be.
	done, nothing string
}

func (a *app) module() *cobra.Command {
	return a.group("module (enable|disable|set-channel|set-version|manage|unmanage) KYMA MODULE", "Change which modules a runtime has", aboutModules,
		a.moduleEnable(), a.moduleDisable(), a.moduleSetChannel(), a.moduleSetVersion(), a.moduleManage(true), a.moduleManage(false))
}

// moduleVerb makes a command that changes a module; more are arguments beside KYMA and MODULE.
func (a *app) moduleVerb(verb, short, about, example string, more []string, f *moduleFlags, change func(*cobra.Command, []string) (moduleChange, error)) *cobra.Command {
	needs := append([]string{"KYMA", "MODULE"}, more...)
	use := verb
	for _, need := range needs {
		use += " " + need
	}
	cmd := a.verb(use+" [flags]", short, about, example, needs, func(cmd *cobra.Command, args []string) error {
		c, err := change(cmd, args)
		if err != nil {
			return err
		}
		c.kyma, c.module = args[0], args[1]
		return a.changeModule(cmd, f, c)
	})
	f.addTo(cmd)
	cmd.Flags().BoolVar(&f.force, "force", false, "write the change even if the control plane cannot carry it out (yet)")
	a.completing(cmd, &f.fleetFlags, &v1beta2.KymaList{}, &v1beta2.ModuleReleaseMetaList{})
	return cmd
}

func (a *app) moduleEnable() *cobra.Command {
	f := &moduleFlags{}
	cmd := a.moduleVerb("enable", "Add a module to a runtime, or change how it is installed",
		"A module that is enabled already is changed as the flags say; what no flag names stays. Values replace those that were there.",
		"  mothership module enable eu-1 istio\n  mothership module enable eu-1 web --version 1.2.3 --set replicas=3", nil, f,
		func(cmd *cobra.Command, _ []string) (moduleChange, error) { return enabling(cmd, f) })
	fs := cmd.Flags()
	fs.StringVar(&f.channel, "channel", "", "take the version from this `CHANNEL` (default: the Kyma's)")
	fs.StringVar(&f.version, "version", "", "install this `VERSION`, whatever the channels have")
	fs.StringVar(&f.policy, "policy", "", "what becomes of the module's default custom resource: `CreateAndDelete|Ignore`")
	f.values.addTo(fs)
	complete(cmd, "policy", string(v1beta2.CreateAndDelete), string(v1beta2.IgnoreCustomResource))
	return cmd
}

func enabling(cmd *cobra.Command, f *moduleFlags) (moduleChange, error) {
	policies := []string{string(v1beta2.CreateAndDelete), string(v1beta2.IgnoreCustomResource)}
	switch {
	case f.channel != "" && f.version != "":
		return moduleChange{}, usage(cmd, "give --channel or --version, not both")
	case f.policy != "" && !slices.Contains(policies, f.policy):
		return moduleChange{}, usage(cmd, "--policy %q: it is %s", f.policy, either(policies))
	}
	var raw *runtime.RawExtension
	if f.values.any() {
		merged, err := f.values.merge(cmd, refuseEncrypted)
		if err != nil {
			return moduleChange{}, err
		}
		data, err := json.Marshal(merged)
		if err != nil {
			return moduleChange{}, fmt.Errorf("reading values: %w", err)
		}
		raw = &runtime.RawExtension{Raw: data}
	}
	edit := func(m *v1beta2.Module) (*v1beta2.Module, error) {
		if m == nil {
			m = &v1beta2.Module{}
		}
		if f.channel != "" || f.version != "" {
			m.Channel, m.Version = f.channel, f.version
		}
		if f.policy != "" {
			m.CustomResourcePolicy = v1beta2.CustomResourcePolicy(f.policy)
		}
		if raw != nil {
			m.Values = raw
		}
		return m, nil
	}
	return moduleChange{edit: edit, check: true, done: "enabled", nothing: "enabled already, as it is asked for"}, nil
}

func (a *app) moduleDisable() *cobra.Command {
	f := &moduleFlags{}
	return a.moduleVerb("disable", "Remove a module from a runtime", "Everything that the module installed is removed.",
		"  mothership module disable eu-1 web", nil, f, func(*cobra.Command, []string) (moduleChange, error) {
			edit := func(m *v1beta2.Module) (*v1beta2.Module, error) { return nil, nil } //nolint:nilnil // no entry, no error
			return moduleChange{edit: edit, done: "disabled", nothing: "not enabled"}, nil
		})
}

// editing edits a module that must be there.
func editing(kyma, module string, edit func(*v1beta2.Module)) func(*v1beta2.Module) (*v1beta2.Module, error) {
	return func(m *v1beta2.Module) (*v1beta2.Module, error) {
		if m == nil {
			return nil, &hintedError{
				err:  fmt.Errorf("module %q is not enabled on %q", module, kyma),
				hint: fmt.Sprintf("to enable it: mothership module enable %s %s", kyma, module),
			}
		}
		edit(m)
		return m, nil
	}
}

func (a *app) moduleSetChannel() *cobra.Command {
	f := &moduleFlags{}
	return a.moduleVerb("set-channel", "Take a module's version from a channel", "It is installed in the version that the channel has, now and in future.",
		"  mothership module set-channel eu-1 istio fast", []string{"CHANNEL"}, f, func(_ *cobra.Command, args []string) (moduleChange, error) {
			edit := editing(args[0], args[1], func(m *v1beta2.Module) { m.Channel, m.Version = args[2], "" })
			return moduleChange{edit: edit, check: true, done: "takes its version from channel " + args[2], nothing: "on channel " + args[2] + " already"}, nil
		})
}

func (a *app) moduleSetVersion() *cobra.Command {
	f := &moduleFlags{}
	return a.moduleVerb("set-version", "Install a module in one version", "It stays at that version, whatever the channels have. A lower one is refused.",
		"  mothership module set-version eu-1 istio 1.2.3", []string{"VERSION"}, f, func(_ *cobra.Command, args []string) (moduleChange, error) {
			edit := editing(args[0], args[1], func(m *v1beta2.Module) { m.Channel, m.Version = "", args[2] })
			return moduleChange{edit: edit, check: true, done: "shall have version " + args[2], nothing: "on version " + args[2] + " already"}, nil
		})
}

func (a *app) moduleManage(managed bool) *cobra.Command {
	verb, short, about := "manage", "Look after a module again", "What somebody changed in the runtime meanwhile is put back."
	done, nothing := "is looked after again", "looked after already"
	if !managed {
		verb, short, about = "unmanage", "Leave a module as it is", "It is neither changed, repaired nor removed until it is managed again."
		done, nothing = "is left as it is", "left as it is already"
	}
	f := &moduleFlags{}
	return a.moduleVerb(verb, short, about, "  mothership module "+verb+" eu-1 istio", nil, f, func(_ *cobra.Command, args []string) (moduleChange, error) {
		edit := editing(args[0], args[1], func(m *v1beta2.Module) { m.Managed = &managed })
		return moduleChange{edit: edit, done: done, nothing: nothing}, nil
	})
}

// changeModule writes a change, unless the control plane could not carry it out.
func (a *app) changeModule(cmd *cobra.Command, f *moduleFlags, c moduleChange) error {
	fl, err := a.connect(cmd, &f.fleetFlags)
	if err != nil {
		return err
	}
	var after catalog.Module
	changed, err := fl.change(cmd.Context(), c.kyma, func(k *v1beta2.Kyma) (err error) {
		if err := c.apply(k); err != nil {
			return err
		}
		after, err = fl.judge(cmd, k, c.module)
		if !c.check || f.force {
			return nil // what else is wrong with it is the control plane's to say
		}
		return err
	})
	if err != nil {
		return err
	}
	if !changed {
		if after.Mandatory && after.Spec == nil {
			a.note("note", "it is mandatory: every runtime that its release selects has it")
		}
		return a.say("%s: module %s is %s", c.kyma, c.module, c.nothing)
	}
	detail := ""
	if after.Version != "" && !after.Deleting {
		detail = " (" + after.Version + ")"
	}
	return a.say("%s: module %s %s%s", c.kyma, c.module, c.done, detail)
}

// apply edits a Kyma's entry of the module.
func (c moduleChange) apply(k *v1beta2.Kyma) error {
	at := slices.IndexFunc(k.Spec.Modules, func(m v1beta2.Module) bool { return m.Name == c.module })
	var old *v1beta2.Module
	if at >= 0 {
		old = &k.Spec.Modules[at]
	}
	entry, err := c.edit(old)
	switch {
	case err != nil:
		return err
	case entry == nil && at >= 0:
		k.Spec.Modules = slices.Delete(k.Spec.Modules, at, at+1)
	case entry != nil && at < 0:
		entry.Name = c.module
		k.Spec.Modules = append(k.Spec.Modules, *entry)
	}
	return nil
}

// judge says what would become of a module, and fails if nothing can.
func (f *fleet) judge(cmd *cobra.Command, k *v1beta2.Kyma, module string) (catalog.Module, error) {
	all, err := f.catalog(cmd)
	if err != nil {
		return catalog.Module{}, err
	}
	m, wanted := catalog.ResolveOne(k, module, all)
	for _, problem := range []*catalog.Problem{m.Problem, m.Notice} {
		if wanted && problem != nil {
			return m, &hintedError{err: fmt.Errorf("Kyma %q: %s", k.Name, problem.Message), hint: "--force writes it nevertheless"} //nolint:staticcheck // it begins with a kind
		}
	}
	return m, nil
}

// catalog reads the catalogue.
func (f *fleet) catalog(cmd *cobra.Command) (catalog.Catalog, error) {
	objects, err := f.readAll(cmd, []client.ObjectList{&v1beta2.ModuleTemplateList{}, &v1beta2.ModuleReleaseMetaList{}})
	if err != nil {
		return nil, err
	}
	return catalogOf(objects), nil
}

// uid is the identity of the control plane, by which its modules in runtimes are known.
func (f *fleet) uid(ctx context.Context) (string, error) {
	ctx, cancel := call(ctx)
	defer cancel()
	system := &corev1.Namespace{}
	if err := f.client.Get(ctx, client.ObjectKey{Name: "kube-system"}, system); err != nil {
		return "", problemOfAPI("reading the control plane's identity", err)
	}
	return string(system.UID), nil
}
