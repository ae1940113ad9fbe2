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
` + aboutExit

const exampleDiff = `
  mothership diff --name web --namespace demo --chart ./web --set replicas=3`

const aboutVerify = `
Compares the cluster with the module by one list per kind, without a dry-run: which objects are missing (+), were changed
(~) and by whom, are not wanted any more (-), or belong to something else (^, !). Values are not shown.
` + aboutExit

const exampleVerify = `
  mothership verify --name web --namespace demo --chart ./web || echo "somebody changed web"`

// comparison is Diff or Verify.
type comparison func(context.Context, *rest.Config, mothership.Module, mothership.CompareOptions) (*mothership.Comparison, error)

func (a *app) diff() *cobra.Command {
	return a.comparing("diff", "Show what install would change, and change nothing", aboutDiff, exampleDiff,
		func(i *mothership.Installer) comparison { return i.Diff })
}

func (a *app) verify() *cobra.Command {
	return a.comparing("verify", "Show what somebody changed since the last install", aboutVerify, exampleVerify,
		func(i *mothership.Installer) comparison { return i.Verify })
}

func (a *app) comparing(name, short, long, example string, by func(*mothership.Installer) comparison) *cobra.Command {
	f := &flags{}
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
