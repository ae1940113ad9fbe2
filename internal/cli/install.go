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

A chart REPO/NAME is of a repository that helm repo add has made known, unless there is a folder of that name. Credentials come
from --username and --password-stdin or --ssh-key, from Helm's file of repositories, and for registries from docker's configuration.

With --all, -f names a file with a Kyma, and --catalog where its modules are: a folder or an artifact (see mothership catalog). All of
them are installed, those that others need before these, and waited for. Secrets and ConfigMaps that the Kyma takes values from stand
in the same file. A module that the Kyma no longer has is not removed: see uninstall.
` + aboutExit

const exampleInstall = `
  # A chart with values, and wait until everything is ready
  mothership install --name web --namespace demo --chart ./web --values prod.yaml --set image.tag=1.2.3 --wait

  # A kustomization, in another cluster
  mothership install --name logging -n logging --kustomize ./overlays/prod --context staging

  # A chart of a registry, of a repository that Helm knows, and of Git
  mothership install --name web -n demo --chart oci://registry.example.com/charts/web --version 1.2.3
  mothership install --name web -n demo --chart bitnami/nginx --version '~18.1'
  mothership install --name web -n demo --chart git+https://example.com/team/web.git@v1.2.3#chart

  # All modules of a Kyma
  mothership install --all -f kyma.yaml --catalog oci://registry.example.com/team/catalog:1.0

  # Plain manifests from a pipe
  cat *.yaml | mothership install --name base -n base -f -`

func (a *app) install() *cobra.Command {
	f := &flags{}
	cmd := a.command("install --name NAME --namespace NAMESPACE (--chart|--kustomize|-f) SOURCE [flags]",
		"Make a cluster what a module says: create, update, repair, prune", aboutInstall, exampleInstall,
		func(cmd *cobra.Command) error { return a.runInstall(cmd, f) })
	f.addTo(cmd, asTable)
	cmd.Flags().BoolVar(&f.all, "all", false, "install all modules of the Kyma that -f names")
	cmd.Flags().StringVar(&f.catalog, "catalog", "", "where --all finds the modules, `PLACE` is DIR, FILE or oci://…")
	cmd.Flags().StringVar(&f.sources.secrets, "credentials", "", "with --all, a YAML `FILE` of the Secrets that the credentialsRefs of templates name")
	return cmd
}

func (a *app) runInstall(cmd *cobra.Command, f *flags) error {
	if f.all {
		return a.runInstallAll(cmd, f)
	}
	if f.catalog != "" || f.sources.secrets != "" {
		return usage(cmd, "--catalog and --credentials are for --all")
	}
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
