package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/fleetview"
)

func (a *app) runtime() *cobra.Command {
	return a.group("runtime (add|remove|forget|kubeconfig) NAME", "Add clusters to the fleet, and take them out", "",
		a.runtimeAdd(), a.runtimeRemove(), a.runtimeForget(), a.runtimeKubeconfig())
}

const aboutRemove = `
Removes the modules from the cluster, then the cluster itself if its provider has made it; a cluster that existed before
(byoc) stays. It returns at once: mothership wait runtime NAME --for=deleted waits. A cluster that is gone already, so that
nothing can be removed from it, is forgotten with mothership runtime forget.
`

func (a *app) runtimeRemove() *cobra.Command {
	f := &fleetFlags{}
	cmd := a.verb("remove NAME [flags]", "Remove a runtime's modules, and the cluster if its provider has made it", aboutRemove,
		"  mothership runtime remove eu-1", []string{"NAME"}, func(cmd *cobra.Command, args []string) error {
			fl, err := a.connect(cmd, f)
			if err != nil {
				return err
			}
			var r v1beta2.Runtime
			if err := fl.get(cmd.Context(), args[0], &r); err != nil {
				return err
			}
			if err := fl.remove(cmd.Context(), &r); err != nil {
				return err
			}
			return a.say("%s: is being removed; mothership wait runtime %s --for=deleted waits until it is gone", r.Name, r.Name)
		})
	f.addTo(cmd)
	a.completing(cmd, f, &v1beta2.RuntimeList{})
	return cmd
}

// remove deletes the very object that was read.
func (f *fleet) remove(ctx context.Context, obj client.Object) error {
	ctx, cancel := call(ctx)
	defer cancel()
	err := f.client.Delete(ctx, obj, client.Preconditions{UID: new(obj.GetUID())})
	if apierrors.IsNotFound(err) {
		return nil // somebody else was faster
	}
	return problemOfAPI("deleting "+kindOf(obj)+" "+obj.GetName(), err)
}

const aboutForget = `
Takes a runtime and its Kyma out of the fleet without touching the cluster: for clusters that no longer exist, or that
somebody else looks after from now on. What was installed stays there and is no longer looked after.
`

// forgetting is one call of runtime forget.
type forgetting struct {
	fleetFlags
	yes bool
}

func (a *app) runtimeForget() *cobra.Command {
	f := &forgetting{}
	cmd := a.verb("forget NAME [flags]", "Take a runtime out of the fleet, and leave everything in it as it is", aboutForget,
		"  mothership runtime forget eu-1 --yes", []string{"NAME"}, func(cmd *cobra.Command, args []string) error {
			return a.runForget(cmd, f, args[0])
		})
	f.addTo(cmd)
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "do not ask")
	a.completing(cmd, &f.fleetFlags, &v1beta2.RuntimeList{})
	return cmd
}

func (a *app) runForget(cmd *cobra.Command, f *forgetting, name string) error {
	fl, err := a.connect(cmd, &f.fleetFlags)
	if err != nil {
		return err
	}
	var r v1beta2.Runtime
	if err := fl.get(cmd.Context(), name, &r); err != nil {
		return err
	}
	stays, err := fl.staysBehind(cmd.Context(), &r)
	if err != nil {
		return err
	}
	fmt.Fprint(a.p.Stderr, clean(stays))
	if !f.yes {
		if err := a.confirm(cmd, name); err != nil {
			return err
		}
	}
	if err := fl.abandon(cmd.Context(), &r); err != nil {
		return err
	}
	return a.say("%s: is forgotten as soon as the control plane has let go of it", name)
}

// staysBehind says what will be left in a cluster that is forgotten.
func (f *fleet) staysBehind(ctx context.Context, r *v1beta2.Runtime) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "Runtime %s and its Kyma are taken out of the fleet. The cluster is not touched. There stays:\n", r.Name)
	var k v1beta2.Kyma
	err := f.get(ctx, r.Name, &k)
	if err != nil && !errors.As(err, new(*missingError)) {
		return "", err
	}
	n := 0
	for _, m := range fleetview.Modules(&k) {
		if m.Version != "" {
			fmt.Fprintf(&b, "  module %s %s, in namespace %s\n", m.Module, m.Version, cmp.Or(m.Namespace, v1beta2.DefaultModuleNamespace))
			n++
		}
	}
	if n == 0 {
		b.WriteString("  no module, as far as is known\n")
	}
	fmt.Fprintf(&b, "  the inventory of modules, in namespace %s\n", v1beta2.SystemNamespace)
	if r.Spec.Provider == v1beta2.ProviderLocal {
		b.WriteString("  the local server's data, until the control plane is removed with mothership down\n")
	}
	return b.String(), nil
}

// confirm asks at a terminal; elsewhere --yes is needed.
func (a *app) confirm(cmd *cobra.Command, name string) error {
	in, ok := a.p.Stdin.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return usage(cmd, "stdin is not a terminal, so that nobody can be asked: give --yes")
	}
	fmt.Fprintf(a.p.Stderr, "Type the runtime's name to go on: ")
	answer, err := bufio.NewReader(interruptible(cmd.Context(), in)).ReadString('\n')
	if err != nil {
		return fmt.Errorf("asking: %w", err)
	}
	if strings.TrimSpace(answer) != name {
		return errors.New("that is not its name: nothing was done")
	}
	return nil
}

// abandon has the control plane leave a cluster as it is, and lets go of the Runtime.
func (f *fleet) abandon(ctx context.Context, r *v1beta2.Runtime) error {
	for range maxAttempts {
		base := r.DeepCopy()
		r.Spec.DeletionPolicy = v1beta2.DeletionAbandon
		err := f.patch(ctx, r, base)
		if err == nil {
			return f.remove(ctx, r)
		}
		if !apierrors.IsConflict(err) {
			return problemOfAPI("changing Runtime "+r.Name, err)
		}
		if err := f.get(ctx, base.Name, r); err != nil {
			return err
		}
	}
	return fmt.Errorf("changing Runtime %s: %w", r.Name, errBusy)
}

func (a *app) runtimeKubeconfig() *cobra.Command {
	f, file := &fleetFlags{}, ""
	cmd := a.verb("kubeconfig NAME [flags]", "Print a runtime's kubeconfig", "It is confidential: whoever has it is the cluster's administrator.",
		"  mothership runtime kubeconfig eu-1 -f eu-1.yaml\n  kubectl --kubeconfig eu-1.yaml get pods -A", []string{"NAME"},
		func(cmd *cobra.Command, args []string) error {
			fl, err := a.connect(cmd, f)
			if err != nil {
				return err
			}
			data, _, err := fl.kubeconfig(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if file == "" || file == "-" {
				return a.write(string(data))
			}
			if err := writePrivate(file, data); err != nil {
				return fmt.Errorf("writing the kubeconfig: %w", err)
			}
			return a.say("%s: its kubeconfig is in %s", args[0], file)
		})
	f.addTo(cmd)
	cmd.Flags().StringVarP(&file, "file", "f", "", "write it to `FILE`, which only you can read, instead of stdout")
	a.completing(cmd, f, &v1beta2.RuntimeList{})
	return cmd
}

// writePrivate replaces a file by one that only its owner reads.
func writePrivate(name string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".mothership-*") // with mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// providers of runtimes that can be added.
var providers = []string{v1beta2.ProviderLocal, v1beta2.ProviderBYOC}

// newRuntime is a Runtime of a provider. The drift detection is Watch for local ones where nothing else is asked for.
func newRuntime(namespace, name, provider, drift string) *v1beta2.Runtime {
	if drift == "" && provider == v1beta2.ProviderLocal {
		drift = string(v1beta2.DriftWatch)
	}
	return &v1beta2.Runtime{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1beta2.RuntimeSpec{Provider: provider, DriftDetection: v1beta2.DriftDetection(drift)},
	}
}

// newKyma is a Kyma without modules.
func newKyma(namespace, name, channel string) *v1beta2.Kyma {
	return &v1beta2.Kyma{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1beta2.KymaSpec{Channel: channel},
	}
}

// create makes an object; whether it was missing is said where it may exist.
func (f *fleet) create(ctx context.Context, obj client.Object) error {
	ctx, cancel := call(ctx)
	defer cancel()
	return f.client.Create(ctx, obj)
}

// drifts are the ways to notice drift.
var drifts = []string{string(v1beta2.DriftWatch), string(v1beta2.DriftPoll)}

// oneOf finds a word whatever its case is.
func oneOf(words []string, given string) (string, bool) {
	i := slices.IndexFunc(words, func(word string) bool { return strings.EqualFold(word, given) })
	if i < 0 {
		return given, false
	}
	return words[i], true
}
