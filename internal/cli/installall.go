package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/kyma-project/mothership"
	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/catalog"
	"github.com/kyma-project/mothership/internal/values"
)

// withAll are the flags that --all heeds.
var withAll = []string{
	"all", "filename", "catalog", "credentials", "registry-config", "ca-file", "kubeconfig", "context", "memory-limit", "timeout", "post-render",
	"output", "wait", "isolate", "color", "quiet",
}

// checkAll refuses flags of single modules.
func (f *flags) checkAll(cmd *cobra.Command) error {
	var other string
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if !slices.Contains(withAll, flag.Name) {
			other = flag.Name
		}
	})
	switch {
	case other != "":
		return usage(cmd, "--%s is for one module: with --all, templates and the Kyma say it", other)
	case f.filename == "" || f.catalog == "":
		return usage(cmd, "--all needs -f FILE with a Kyma, and --catalog DIR or oci://…")
	case f.timeout <= 0:
		return usage(cmd, "--timeout %s: it must be more than 0", f.timeout)
	}
	return checkOutput(cmd, f.output)
}

func (a *app) runInstallAll(cmd *cobra.Command, f *flags) error {
	if err := f.checkAll(cmd); err != nil {
		return err
	}
	wanted, kyma, err := a.readKyma(cmd, f.filename)
	if err != nil {
		return err
	}
	p, err := a.open(cmd.Context(), &f.sources.serverFlags, f.catalog)
	if err != nil {
		return err
	}
	defer p.close()
	modules, err := resolved(p, kyma)
	if err != nil {
		return err
	}
	outfit, err := a.outfit(cmd, &f.sources.serverFlags, p.dir)
	if err != nil {
		return err
	}
	all := &allModules{app: a, f: f, outfit: outfit, values: wanted, kyma: kyma}
	if all.cluster, err = a.clusterOf(cmd, f); err != nil {
		return err
	}
	if all.installer, err = a.isolated(cmd, outfit, f); err != nil {
		return err
	}
	return all.install(cmd.Context(), modules)
}

// readKyma reads the Kyma of a file or of stdin, and what else is there.
func (a *app) readKyma(cmd *cobra.Command, file string) (*objects, *v1beta2.Kyma, error) {
	var found *objects
	var err error
	if file == "-" {
		data, readErr := readStdin(cmd.Context(), a.p.Stdin)
		if readErr != nil {
			return nil, nil, fmt.Errorf("reading the Kyma from stdin: %w", readErr)
		}
		found, err = decodeObjects("standard input", data)
	} else {
		found, err = readObjects(file)
	}
	if err != nil {
		return nil, nil, err
	}
	if n := len(found.kymas); n != 1 {
		return nil, nil, fmt.Errorf("reading %s: it has %s: --all installs the modules of one", file, count(n, "Kyma"))
	}
	k := found.kymas[0]
	k.Status = v1beta2.KymaStatus{} // of a control plane, which is not here
	return found, k, nil
}

// resolved are the modules that a Kyma has of a catalogue.
func resolved(p *place, k *v1beta2.Kyma) ([]catalog.Module, error) {
	entries, problems := p.files.Decode()
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("reading the catalogue: %w", err)
	}
	store := catalog.NewStore()
	for i := range entries {
		entries[i].Object().SetNamespace("")
		if entries[i].Template != nil {
			store.PutTemplate(entries[i].Template)
		} else {
			store.PutRelease(entries[i].Release)
		}
	}
	modules := catalog.Resolve(k, store.In(""))
	if len(modules) == 0 {
		return nil, errors.New("the Kyma names no module, and the catalogue has none that is mandatory")
	}
	return modules, nil
}

// allModules is one call of install --all.
type allModules struct {
	app       *app
	f         *flags
	installer *mothership.Installer
	cluster   *rest.Config
	outfit    *outfit
	values    *objects
	kyma      *v1beta2.Kyma
	progress  *progress
}

// installed is what became of one module.
type installed struct {
	Module    string        `json:"module"`
	Version   string        `json:"version,omitempty"`
	Namespace string        `json:"namespace,omitempty"`
	State     v1beta2.State `json:"state"`
	Message   string        `json:"message,omitempty"`
	// Result of the installation, if it got that far.
	Result *mothership.Result `json:"result,omitempty"`

	module mothership.Module
	needs  []string
	err    error
	done   chan struct{}
}

// parallelModules bounds how many are installed at the same time.
const parallelModules = 4

// install installs everything, each module as soon as what it needs is ready, and says how it went.
func (all *allModules) install(ctx context.Context, modules []catalog.Module) error {
	ctx, cancel := context.WithTimeoutCause(ctx, all.f.timeout, fmt.Errorf("the time given with --timeout (%s) is over", all.f.timeout))
	defer cancel()
	out := make([]*installed, len(modules))
	byName := map[string]*installed{}
	for i := range modules {
		out[i] = all.prepare(ctx, &modules[i])
		byName[modules[i].Name] = out[i]
	}
	all.progress = all.app.progress("installing " + count(len(modules), "module"))
	turns := make(chan struct{}, parallelModules)
	var group sync.WaitGroup
	for _, m := range out {
		group.Go(func() { all.one(ctx, m, byName, turns) })
	}
	group.Wait()
	all.progress.close()
	return all.report(out)
}

// prepare says what is to be installed of a module; without a state there is something.
func (all *allModules) prepare(ctx context.Context, m *catalog.Module) *installed {
	out := &installed{Module: m.Name, Version: m.Version, Namespace: m.Namespace, done: make(chan struct{})}
	switch {
	case m.Problem != nil:
		out.fail(m.Problem.State, errors.New(m.Problem.Message))
		return out
	case m.Unmanaged:
		out.State, out.Message = v1beta2.StateUnmanaged, "left alone (managed: false)"
		return out
	case m.Template.Spec.Reconciler != "":
		out.fail(v1beta2.StateError, fmt.Errorf("reconciler %q installs it, which only a control plane has", m.Template.Spec.Reconciler))
		return out
	}
	found, err := values.Read(ctx, all.values, all.kyma.Namespace, m.Spec)
	switch {
	case err != nil:
		out.fail(v1beta2.StateError, err)
	case found.Problem != "":
		out.fail(v1beta2.StateError, errors.New(found.Problem))
	case len(found.Missing) > 0:
		out.fail(v1beta2.StateWaiting, fmt.Errorf("waiting for %s: add it to %s", strings.Join(found.Missing, ", "), all.f.filename))
	default:
		out.module = mothership.Module{Name: m.Name, Namespace: m.Namespace, Template: m.Template.Spec, Values: found.Values}
		out.needs = m.Template.Spec.Needs
		if m.Spec != nil && m.Spec.CustomResourcePolicy == v1beta2.IgnoreCustomResource {
			out.module.Template.Data = nil
		}
		if out.module.Template.Source, err = all.outfit.dressed(ctx, m.Template.Spec.Source); err != nil {
			out.fail(v1beta2.StateError, err)
		}
	}
	return out
}

func (m *installed) fail(state v1beta2.State, err error) {
	m.State, m.Message, m.err = state, err.Error(), err
}

// one installs a module when all that it needs is ready and it is its turn.
func (all *allModules) one(ctx context.Context, m *installed, byName map[string]*installed, turns chan struct{}) {
	defer close(m.done)
	if m.State != "" {
		return
	}
	if missing := m.await(ctx, byName); len(missing) > 0 {
		m.fail(v1beta2.StateWaiting, fmt.Errorf("waiting for %s", strings.Join(missing, ", ")))
		return
	}
	select {
	case turns <- struct{}{}:
		defer func() { <-turns }()
	case <-ctx.Done():
		m.fail(v1beta2.StateError, context.Cause(ctx))
		return
	}
	r, err := all.installer.Install(ctx, all.cluster, m.module, mothership.InstallOptions{
		Wait: true, Timeout: all.f.timeout, Progress: all.progress.event, Waiting: all.progress.waiting,
	})
	m.Result = r
	if err != nil {
		state := v1beta2.StateError
		if late, ok := errors.AsType[*mothership.TimeoutError](err); ok && len(late.NotReady) > 0 {
			state = v1beta2.StateProcessing
		}
		m.fail(state, err)
		return
	}
	m.State = v1beta2.StateReady
}

// await waits for the modules that a module needs, and returns what of them is not ready in the end. Rings were found out before:
// their modules have a state, and end at once.
func (m *installed) await(ctx context.Context, byName map[string]*installed) (missing []string) {
	for _, need := range m.needs {
		name, ok := strings.CutPrefix(need, v1beta2.FactModulePrefix)
		other := byName[name]
		if !ok || other == nil {
			missing = append(missing, need)
			continue
		}
		select {
		case <-other.done:
		case <-ctx.Done():
		}
		if !other.isReady() {
			missing = append(missing, need)
		}
	}
	return missing
}

// isReady says whether a module ended well. It is asked of others only after they have ended, or the context has.
func (m *installed) isReady() bool {
	select {
	case <-m.done:
		return m.State == v1beta2.StateReady
	default:
		return false
	}
}

// report prints what became of all, and returns the errors of those that failed.
func (all *allModules) report(modules []*installed) error {
	var failed, late []error
	for _, m := range modules {
		if m.Result != nil {
			all.app.warn(m.Result.Hooks, m.Result.Warnings)
		}
		switch {
		case m.err == nil:
		case m.State == v1beta2.StateError:
			failed = append(failed, named(m))
		default:
			late = append(late, named(m))
		}
	}
	a := all.app
	printed := a.print(all.f, map[string]any{"modules": modules}, func() string { return a.allTable(modules) })
	switch {
	case len(failed) > 0:
		return errors.Join(append(append(failed, late...), printed)...)
	case len(late) > 0:
		all.app.report(problemsOf(errors.Join(late...)))
		return errors.Join(printed, errDiffers)
	}
	return printed
}

// named is a module's error with its name.
func named(m *installed) error { return fmt.Errorf("module %s: %w", m.Module, m.err) }

// allTable is a line per module.
func (a *app) allTable(modules []*installed) string {
	g := grid{columns: []column{{name: "MODULE"}, {name: "VERSION"}, {name: "NAMESPACE"}, {name: "STATE", state: true}, {name: "OBJECTS"}, {name: "MESSAGE"}}}
	for _, m := range modules {
		objects := ""
		if m.Result != nil {
			objects = changed(m.Result)
		}
		g.rows = append(g.rows, gridRow{cells: cells(m.Module, m.Version, m.Namespace, string(m.State), objects, m.Message)})
	}
	return strings.Join(g.lines(a.palette(a.p.Stdout), 0), "\n") + "\n"
}

// changed counts what happened to a module's objects.
func changed(r *mothership.Result) string {
	var parts []string
	for _, action := range counted {
		if n := r.Count(action); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, action))
		}
	}
	return strings.Join(parts, ", ")
}
