package cli

import (
	"github.com/spf13/cobra"

	"github.com/kyma-project/mothership"
)

const aboutUninstall = `
Removes every object of the module and returns when they are gone: custom resources first, so that their controllers
can clean up, definitions last. It stops where definitions would take custom resources with them that somebody else
made, and names those. Objects that are protected by an annotation stay, and so does the namespace.

Only --name and --namespace are needed; the flags of the other commands are accepted.
` + aboutExit

const exampleUninstall = `
  mothership uninstall --name web --namespace demo`

func (a *app) uninstall() *cobra.Command {
	f := &flags{}
	cmd := a.command("uninstall --name NAME --namespace NAMESPACE [flags]",
		"Remove all of a module, and wait until it is gone", aboutUninstall, exampleUninstall,
		func(cmd *cobra.Command) error { return a.runUninstall(cmd, f) })
	f.addTo(cmd, asTable)
	hide(cmd, f.sources.names()...)
	hide(cmd, "chart", "kustomize", "filename", "digest", "values", "set", "set-string", "set-file", "set-json", "set-literal",
		"post-render", "adopt", "yield", "per-runtime", "isolate", "memory-limit", "wait")
	return cmd
}

func (a *app) runUninstall(cmd *cobra.Command, f *flags) error {
	j, err := a.job(cmd, f, false)
	if err != nil {
		return err
	}
	p := a.progress("uninstalling " + f.name)
	r, err := j.installer.Uninstall(cmd.Context(), j.cluster, j.module, mothership.UninstallOptions{
		Timeout: f.timeout, Progress: p.event, Waiting: p.waiting,
	})
	p.close()
	if err == nil && len(r.Objects) == 0 {
		return a.finish(f, r, nil, "nothing to remove: "+f.name+" is not installed in "+f.namespace)
	}
	return a.finish(f, r, err, "uninstalled "+f.name+" from "+f.namespace)
}
