package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// maxAttempts bounds how often a change is based on something new after a conflict.
const maxAttempts = 10

// errBusy says that others wrote each time.
var errBusy = errors.New("others changed it at the same time, again and again: try again")

// change edits a Kyma and writes what was changed, guarded by its version: of two changes at the same time, none is lost. It says
// whether anything was changed.
func (f *fleet) change(ctx context.Context, name string, edit func(*v1beta2.Kyma) error) (changed bool, err error) {
	for range maxAttempts {
		var k v1beta2.Kyma
		if err := f.get(ctx, name, &k); err != nil {
			return false, err
		}
		base := k.DeepCopy()
		if err := edit(&k); err != nil {
			return false, err
		}
		if equality.Semantic.DeepEqual(base, &k) {
			return false, nil
		}
		err := f.patch(ctx, &k, base)
		if !apierrors.IsConflict(err) {
			return true, problemOfAPI("changing Kyma "+name, err)
		}
	}
	return false, fmt.Errorf("changing Kyma %s: %w", name, errBusy)
}

// patch writes the difference to base, if nobody wrote since.
func (f *fleet) patch(ctx context.Context, obj, base client.Object) error {
	ctx, cancel := call(ctx)
	defer cancel()
	return f.client.Patch(ctx, obj, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
}

const aboutReconcile = `
Asks the control plane to look at every module in the runtime now, whatever it believes to know, and to read sources again.
Modules that failed are tried again. It returns at once; see mothership wait.
`

func (a *app) reconcile() *cobra.Command {
	f, all := &fleetFlags{}, false
	cmd := a.verb("reconcile (KYMA...|--all) [flags]", "Have everything of a runtime checked now", aboutReconcile,
		"  mothership reconcile eu-1\n  mothership reconcile --all", []string{"[KYMA...]"}, func(cmd *cobra.Command, args []string) error {
			switch {
			case all && len(args) > 0:
				return usage(cmd, "give names or --all, not both")
			case !all && len(args) == 0:
				return usage(cmd, "name a Kyma, or give --all")
			}
			return a.runReconcile(cmd, f, args)
		})
	f.addTo(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "all Kymas of the namespace")
	a.completing(cmd, f, &v1beta2.KymaList{})
	return cmd
}

func (a *app) runReconcile(cmd *cobra.Command, f *fleetFlags, names []string) error {
	fl, err := a.connect(cmd, f)
	if err != nil {
		return err
	}
	all := len(names) == 0
	if all {
		var list v1beta2.KymaList
		if err := fl.list(cmd.Context(), &list); err != nil {
			return err
		}
		if names = namesOf(&list); len(names) == 0 {
			a.note("note", "there is no Kyma in namespace "+f.namespace)
		}
	}
	now := time.Now().UTC().Format(time.RFC3339Nano)
	var errs []error
	for _, name := range names {
		_, err := fl.change(cmd.Context(), name, func(k *v1beta2.Kyma) error {
			if k.Annotations == nil {
				k.Annotations = map[string]string{}
			}
			k.Annotations[v1beta2.ReconcileAnnotation] = now
			return nil
		})
		switch {
		case all && errors.As(err, new(*missingError)): // deleted meanwhile
		case err != nil:
			errs = append(errs, err)
		default:
			errs = append(errs, a.say("%s: everything is checked now", name))
		}
	}
	return errors.Join(errs...)
}

// say writes a line that tells what was done.
func (a *app) say(format string, args ...any) error {
	if a.quiet {
		return nil
	}
	return a.write(oneLine(fmt.Sprintf(format, args...)) + "\n")
}

func (a *app) suspend() *cobra.Command {
	return a.suspending("suspend", "Leave everything in a runtime as it is, until it is resumed", true,
		"Nothing is installed, changed, repaired or removed meanwhile, whoever asks for it.")
}

func (a *app) resume() *cobra.Command {
	return a.suspending("resume", "Go on with a Kyma that was suspended", false, "What was asked for or changed meanwhile is caught up with.")
}

func (a *app) suspending(verb, short string, suspend bool, about string) *cobra.Command {
	f, already := &fleetFlags{}, "not suspended"
	if suspend {
		already = "suspended already"
	}
	cmd := a.verb(verb+" KYMA [flags]", short, about, "  mothership "+verb+" eu-1", []string{"KYMA"}, func(cmd *cobra.Command, args []string) error {
		fl, err := a.connect(cmd, f)
		if err != nil {
			return err
		}
		changed, err := fl.change(cmd.Context(), args[0], func(k *v1beta2.Kyma) error {
			k.Spec.Suspend = suspend
			return nil
		})
		switch {
		case err != nil:
			return err
		case !changed:
			return a.say("%s: nothing to change, it is %s", args[0], already)
		case suspend:
			return a.say("%s: suspended; mothership resume %s goes on", args[0], args[0])
		}
		return a.say("%s: resumed", args[0])
	})
	f.addTo(cmd)
	a.completing(cmd, f, &v1beta2.KymaList{})
	return cmd
}
