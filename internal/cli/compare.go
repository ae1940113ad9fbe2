package cli

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/kyma-project/mothership"
)

const aboutDiff = `
Asks the server by dry-run what would be created (+), changed (~), pruned (-), taken over (^) and refused (!), object by
object and field by field, with who owns a field now. It changes nothing. Values of Secrets are masked.

With KYMA it shows what the control plane would change in that runtime now, in all modules or in one: with the versions, values
and sources that it would use. Then --kubeconfig names the control plane's (see mothership get kyma --help), -n is the Kyma's
namespace (default: kcp-system), and what describes a module is not accepted. Local sources must be on this machine too.
` + aboutExit

const exampleDiff = `
  mothership diff --name web --namespace demo --chart ./web --set replicas=3

  # What the control plane would change
  mothership diff eu-1 istio`

const aboutVerify = `
Compares the cluster with the module by one list per kind, without a dry-run: which objects are missing (+), were changed
(~) and by whom, are not wanted any more (-), or belong to something else (^, !). Values are not shown.
` + aboutExit

const exampleVerify = `
  mothership verify --name web --namespace demo --chart ./web || echo "somebody changed web"`

// comparison is Diff or Verify.
type comparison func(context.Context, *rest.Config, mothership.Module, mothership.CompareOptions) (*mothership.Comparison, error)

// diff compares a module that flags describe with a cluster or, where a Kyma is named, what a control plane would install.
func (a *app) diff() *cobra.Command {
	f := &flags{}
	cmd := a.comparing(f, "diff", "Show what install would change, and change nothing", aboutDiff, exampleDiff,
		func(i *mothership.Installer) comparison { return i.Diff })
	cmd.Use = "diff (KYMA [MODULE] | --name NAME --namespace NAMESPACE (--chart|--kustomize|-f) SOURCE) [flags]"
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		return checkArguments(cmd, args, []string{"[KYMA]", "[MODULE]"})
	}
	described := cmd.RunE
	fleet := a.verb("diff", "", "", "", nil, func(cmd *cobra.Command, args []string) error { return a.diffFleet(cmd, f, args) }).RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return described(cmd, args)
		}
		return fleet(cmd, args)
	}
	return cmd
}

func (a *app) verify() *cobra.Command {
	return a.comparing(&flags{}, "verify", "Show what somebody changed since the last install", aboutVerify, exampleVerify,
		func(i *mothership.Installer) comparison { return i.Verify })
}

func (a *app) comparing(f *flags, name, short, long, example string, by func(*mothership.Installer) comparison) *cobra.Command {
	cmd := a.command(name+" --name NAME --namespace NAMESPACE (--chart|--kustomize|-f) SOURCE [flags]", short, long, example,
		func(cmd *cobra.Command) error {
			j, err := a.job(cmd, f, true)
			if err != nil {
				return err
			}
			return a.compare(j, by(j.installer))
		})
	f.addTo(cmd, asTable)
	hide(cmd, "wait")
	return cmd
}

func (a *app) compare(j *job, by comparison) error {
	c, err := by(j.cmd.Context(), j.cluster, j.module, mothership.CompareOptions{Timeout: j.flags.timeout})
	if err != nil {
		return err
	}
	if c.Changes == nil {
		c.Changes = []mothership.Change{} // [] in JSON, not null
	}
	a.warn(c.Hooks, c.Warnings)
	if err := a.print(j.flags, c, func() string { return a.comparisonTable(c) }); err != nil {
		return err
	}
	if c.Equal() {
		return nil
	}
	for _, change := range c.Changes {
		if change.Hint != "" {
			a.note("hint", change.Object.String()+": "+change.Hint)
		}
	}
	return errDiffers
}
