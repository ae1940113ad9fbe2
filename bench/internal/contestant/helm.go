package contestant

import (
	"context"
	"fmt"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/loader"
	"helm.sh/helm/v4/pkg/cli"
	"helm.sh/helm/v4/pkg/kube"
)

// installByHelm is what a program does that uses Helm's SDK as the CLI does: without hooks, without waiting, by server-side
// apply.
func installByHelm(ctx context.Context, j Job) error {
	settings := cli.New()
	settings.KubeConfig = j.Kubeconfig
	settings.SetNamespace(j.Namespace)
	cfg := action.NewConfiguration()
	if err := cfg.Init(settings.RESTClientGetter(), j.Namespace, "secret"); err != nil {
		return fmt.Errorf("making a configuration: %w", err)
	}
	chart, err := loader.Load(j.Case.Chart)
	if err != nil {
		return fmt.Errorf("loading %s: %w", j.Case.Chart, err)
	}
	if j.Upgrade {
		u := action.NewUpgrade(cfg)
		u.Namespace, u.DisableHooks, u.WaitStrategy = j.Namespace, true, kube.HookOnlyStrategy
		u.ServerSideApply, u.ForceConflicts, u.MaxHistory = "auto", true, settings.MaxHistory
		_, err = u.RunWithContext(ctx, j.Case.Name, chart, j.Case.Values)
		return err
	}
	i := action.NewInstall(cfg)
	i.ReleaseName, i.Namespace, i.CreateNamespace = j.Case.Name, j.Namespace, true
	i.DisableHooks, i.WaitStrategy, i.ForceConflicts = true, kube.HookOnlyStrategy, true
	_, err = i.RunWithContext(ctx, chart, j.Case.Values)
	return err
}
