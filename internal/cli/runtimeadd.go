package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/remote"
)

const aboutAdd = `
Adds a cluster to the fleet, with a Kyma that says which modules it shall have: none at first. Either the provider makes
the cluster (local: a real API server beside the control plane, with simulated nodes), or it exists already and is reached
by a kubeconfig, which is kept in Secret NAME-kubeconfig. That may neither start programs nor use plain http; files that it
names are put into it.
`

const exampleAdd = `
  mothership runtime add eu-1 --provider local
  mothership runtime add eu-2 --from-kubeconfig ~/.kube/config --context eu-2 --channel fast`

// adding is one call of runtime add.
type adding struct {
	fleetFlags
	provider, file, fileContext string
	drift, channel              string
	noKyma                      bool
}

func (a *app) runtimeAdd() *cobra.Command {
	f := &adding{}
	cmd := a.verb("add NAME (--provider local | --from-kubeconfig FILE) [flags]", "Add a cluster to the fleet", aboutAdd, exampleAdd, []string{"NAME"},
		func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd, args[0]); err != nil {
				return err
			}
			return a.runAdd(cmd, f, args[0])
		})
	f.addFleetTo(cmd)
	fs := cmd.Flags()
	fs.StringVar(&f.provider, "provider", "", "who makes the cluster: `local`, or byoc with --from-kubeconfig")
	fs.StringVar(&f.file, "from-kubeconfig", "", "add the existing cluster that this kubeconfig `FILE` leads to")
	fs.StringVar(&f.fileContext, "context", "", "`CONTEXT` of that kubeconfig (default: its current one)")
	fs.StringVar(&f.drift, "drift", "", "how drift is noticed: `Watch|Poll` (default: Watch for local, Poll for others)")
	fs.StringVar(&f.channel, "channel", "regular", "the Kyma's `CHANNEL`")
	fs.BoolVar(&f.noKyma, "no-kyma", false, "make no Kyma")
	complete(cmd, "provider", providers...)
	complete(cmd, "drift", drifts...)
	return cmd
}

// addFleetTo adds the flags for the control plane, whose --context is another here.
func (f *adding) addFleetTo(cmd *cobra.Command) {
	tmp := &cobra.Command{}
	f.addTo(tmp)
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.AddFlag(tmp.Flags().Lookup("namespace"))
	fs.AddFlag(tmp.Flags().Lookup("kubeconfig"))
	control := tmp.Flags().Lookup("context")
	control.Name = "control-context"
	control.Usage = "`CONTEXT` of the control plane's kubeconfig (default: its current one)"
	fs.AddFlag(control)
}

func (f *adding) check(cmd *cobra.Command, name string) error {
	if err := checkName(cmd, "name", name); err != nil {
		return err
	}
	if f.provider == "" && f.file != "" {
		f.provider = v1beta2.ProviderBYOC
	}
	var known bool
	switch f.provider, known = oneOf(providers, f.provider); {
	case f.provider == "":
		return usage(cmd, "give --provider or --from-kubeconfig")
	case !known:
		return usage(cmd, "--provider %q: it is %s", f.provider, either(providers))
	case f.provider == v1beta2.ProviderLocal && f.file != "":
		return usage(cmd, "--from-kubeconfig is for clusters that exist already: leave --provider local away")
	case f.provider == v1beta2.ProviderBYOC && f.file == "":
		return usage(cmd, "--provider byoc needs --from-kubeconfig")
	case f.fileContext != "" && f.file == "":
		return usage(cmd, "--context is one of --from-kubeconfig; the control plane's is --control-context")
	}
	if f.drift == "" {
		return nil
	}
	if f.drift, known = oneOf(drifts, f.drift); !known {
		return usage(cmd, "--drift %q: it is %s", f.drift, either(drifts))
	}
	return nil
}

func (a *app) runAdd(cmd *cobra.Command, f *adding, name string) error {
	var kubeconfig []byte
	if f.file != "" {
		var err error
		if kubeconfig, err = importKubeconfig(f.file, f.fileContext); err != nil {
			return err
		}
	}
	fl, err := a.connect(cmd, &f.fleetFlags)
	if err != nil {
		return err
	}
	r := newRuntime(f.namespace, name, f.provider, f.drift)
	if kubeconfig != nil {
		r.Spec.Kubeconfig = &v1beta2.KubeconfigSpec{SecretRef: v1beta2.SecretKeyReference{Name: name + "-kubeconfig", Key: "kubeconfig"}}
	}
	if err := fl.addRuntime(cmd.Context(), r, kubeconfig); err != nil {
		return err
	}
	if f.noKyma {
		return a.say("%s: added (%s), without a Kyma", name, f.provider)
	}
	err = fl.create(cmd.Context(), newKyma(f.namespace, name, f.channel))
	if apierrors.IsAlreadyExists(err) {
		return a.say("%s: added (%s); its Kyma existed already", name, f.provider)
	}
	if err != nil {
		return problemOfAPI("making Kyma "+name, err)
	}
	return a.say("%s: added (%s), with a Kyma on channel %s", name, f.provider, f.channel)
}

// addRuntime makes a Runtime, and the Secret of its kubeconfig if there is one, which goes with it.
func (f *fleet) addRuntime(ctx context.Context, r *v1beta2.Runtime, kubeconfig []byte) error {
	err := f.create(ctx, r)
	if apierrors.IsAlreadyExists(err) {
		return &hintedError{err: fmt.Errorf("Runtime %q exists already in namespace %s", r.Name, r.Namespace), hint: "see mothership describe runtime " + r.Name} //nolint:staticcheck // it begins with a kind
	}
	if err != nil || kubeconfig == nil {
		return problemOfAPI("making Runtime "+r.Name, err)
	}
	ref := r.Spec.Kubeconfig.SecretRef
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.Namespace, Name: ref.Name,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(r, v1beta2.GroupVersion.WithKind("Runtime"))},
		},
		Data: map[string][]byte{ref.Key: kubeconfig},
	}
	err = f.create(ctx, secret)
	switch {
	case err == nil:
		return nil
	case apierrors.IsAlreadyExists(err):
		err = &hintedError{err: fmt.Errorf("Secret %q exists already in namespace %s", ref.Name, r.Namespace), hint: "delete it, or give the runtime another name"} //nolint:staticcheck // it begins with a kind
	default:
		err = problemOfAPI("storing the kubeconfig", err)
	}
	return errors.Join(err, f.abandon(ctx, r)) // nothing was done with it yet
}

// importKubeconfig takes one context out of a kubeconfig, with the files that it names, and checks it as the control plane will.
func importKubeconfig(file, context string) ([]byte, error) {
	all, err := clientcmd.LoadFromFile(file)
	if err != nil {
		if _, err := remote.ReadKubeconfig(file, context); err != nil {
			return nil, err // it quotes nothing of the file
		}
		return nil, fmt.Errorf("reading %s: it is not a kubeconfig", file)
	}
	if context != "" {
		all.CurrentContext = context
	}
	one := all.DeepCopy()
	if all.Contexts[all.CurrentContext] != nil {
		if err := api.MinifyConfig(one); err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		if err := api.FlattenConfig(one); err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
	}
	data, err := clientcmd.Write(*one)
	if err != nil {
		return nil, fmt.Errorf("reading %s: it cannot be written again", file)
	}
	if _, err := remote.LoadKubeconfig(data, ""); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return data, nil
}
