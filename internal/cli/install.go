package cli

import (
	"github.com/spf13/cobra"

	"github.com/kyma-project/mothership"
)

const aboutInstall = `
Creates, updates and repairs the module's objects and prunes those that it no longer has. Objects that are as they should
be are not written. An object that exists and is not the module's is refused, unless --adopt is given. When something
fails, what was applied stays, nothing is pruned, and the same command goes on from there.

Helm hooks are reported and never run. Downloads are rendered in a child process with limits, local
files only with --isolate.
` + aboutExit

const exampleInstall = `
  # A chart with values, and wait until everything is ready
  mothership install --name web --namespace demo --chart ./web --values prod.yaml --set image.tag=1.2.3 --wait

  # A kustomization, in another cluster
  mothership install --name logging -n logging --kustomize ./overlays/prod --context staging

  # Plain manifests from a pipe
  cat *.yaml | mothership install --name base -n base -f -`

func (a *app) install() *cobra.Command {
	f := &flags{}
	cmd := a.command("install --name NAME --namespace NAMESPACE (--chart|--kustomize|-f) SOURCE [flags]",
		"Make a cluster what a module says: create, update, repair, prune", aboutInstall, exampleInstall,
		func(cmd *cobra.Command) error { return a.runInstall(cmd, f) })
	f.addTo(cmd, asTable)
	return cmd
}

func (a *app) runInstall(cmd *cobra.Command, f *flags) error {
	j, err := a.job(cmd, f, true)
	if err != nil {
		return err
	}
	p := a.progress("installing " + f.name)
	r, err := j.installer.Install(cmd.Context(), j.cluster, j.module, mothership.InstallOptions{
		Wait: f.wait, Timeout: f.timeout, Progress: p.event, Waiting: p.waiting,
	})
	p.close()
	return a.finish(f, r, err, "installed "+f.name+" in "+f.namespace)
}
