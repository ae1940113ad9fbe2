package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/kyma-project/mothership/controlplane"
)

// serve runs a control plane until it is told to end, which is no error, or fails. ready is called when it works.
func (a *app) serve(ctx context.Context, cfg controlplane.Config, ready func(*controlplane.ControlPlane) error) (err error) {
	if a.p.Serving != nil {
		a.p.Serving()
	}
	cp, err := controlplane.Start(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cp.Close()) }()
	defer context.AfterFunc(ctx, func() { a.tell("stopping; once more to end at once") })()
	select {
	case <-cp.Ready():
	case err := <-cp.Err():
		return err // nil where it was told to end before it was ready
	}
	if err := ready(cp); err != nil && ctx.Err() == nil {
		return err
	}
	if err := <-cp.Err(); err != nil {
		return err
	}
	return a.say("stopped")
}

// tell writes a line for people where a log is not JSON.
func (a *app) tell(text string) {
	if a.terminalOf(a.p.Stderr).on {
		a.note("note", text)
	}
}

// renderCommand starts this program as a child that renders.
func (a *app) renderCommand() ([]string, error) {
	program, err := a.p.Executable()
	if err != nil {
		return nil, err
	}
	return []string{program, childArgument}, nil
}

const aboutController = `
Runs the control plane's controllers over the API of an existing cluster: the one it runs in, if it runs in one, or the
one that a kubeconfig leads to. It installs the definitions of its custom resources there. Of several that run, one works,
by a lease; with --sharded, all work, each on its share of the runtimes. It ends in order on Ctrl-C and SIGTERM, with exit code 0.
`

const exampleController = `
  mothership controller --kubeconfig kcp.yaml --address :8080 --source-root /modules`

// controllerFlags are those of controller.
type controllerFlags struct {
	logFlags
	kubeconfig, context string
	config              controlplane.Config
	offers              offerFlags
}

func (a *app) controller() *cobra.Command {
	f := &controllerFlags{}
	cmd := a.verb("controller [flags]", "Run the control plane over an existing cluster's API", aboutController, exampleController, nil,
		func(cmd *cobra.Command, _ []string) error { return a.runController(cmd, f) })
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig `FILE` of the control plane's cluster (default: the cluster it runs in, else $KUBECONFIG, else ~/.kube/config)")
	fs.StringVar(&f.context, "context", "", "`CONTEXT` of the kubeconfig (default: its current one)")
	fs.StringVarP(&f.config.Namespace, "namespace", "n", controlplane.DefaultNamespace, "the `NAMESPACE` for what the control plane keeps for itself")
	fs.StringVar(&f.config.SourceRoot, "source-root", "", "the `DIR` that local sources of templates must be in (default: none may be local)")
	fs.BoolVar(&f.config.Sharded, "sharded", false, "share the fleet with all others that run with this flag, in place of waiting for the one that works")
	f.offers.addTo(fs)
	serveFlags(cmd, &f.config)
	f.logFlags.addTo(cmd)
	return cmd
}

// serveFlags are those of whatever runs a control plane.
func serveFlags(cmd *cobra.Command, cfg *controlplane.Config) {
	fs := cmd.Flags()
	fs.StringVar(&cfg.Address, "address", "127.0.0.1:0", "`HOST:PORT` of metrics, health and explanations; none for none")
	fs.DurationVar(&cfg.VerifyInterval, "verify-interval", 0, "how often each runtime is compared with what it should be, at most 1h (default 1h)")
	addPostFlag(fs, &cfg.PostRender)
	fs.IntVar(&cfg.Workers, "workers", 0, "how many modules are worked on at the same time at most; how many are is found out (default 128)")
	s := &cfg.Sources
	fs.StringToStringVar(&s.Mirrors, "source-mirror", nil, "`FROM=TO`: get sources from another place, HOST or HOST/FOLDER; repeatable")
	fs.Lookup("source-mirror").DefValue = "" // not []
	fs.StringVar(&s.CacheDir, "source-cache", "", "the `DIR` in which downloaded sources are kept (default: with up, DIR/sources; else none)")
	fs.Int64Var(&s.CacheBytes, "source-cache-bytes", 0, "how many `BYTES` of them (default 1 GiB)")
	fs.IntVar(&s.PerHost, "source-per-host", 0, "how many fetches go to one host at the same time (default 4)")
	fs.Float64Var(&s.RatePerHost, "source-rate", 0, "how many fetches a second begin at one host (default 10)")
	fs.StringSliceVar(&s.PrivateHosts, "source-private", nil, "`HOST` at a private address, or a network, that servers of sources may redirect to; repeatable")
	fs.DurationVar(&s.PollInterval, "source-poll", 0, "how often branches, tags and ranges are asked for (default 5m)")
}

func (a *app) runController(cmd *cobra.Command, f *controllerFlags) (err error) {
	if err := f.check(cmd); err != nil {
		return err
	}
	if f.config.Cluster, err = a.clusterConfig(f.kubeconfig, f.context); err != nil {
		return err
	}
	if f.config.RenderCommand, err = a.renderCommand(); err != nil {
		return err
	}
	if err := f.config.Validate(); err != nil {
		return usage(cmd, "%v", err)
	}
	log, _, err := a.openLog(&f.logFlags, "")
	if err != nil {
		return err
	}
	f.config.Log = log
	return a.serve(cmd.Context(), f.config, func(cp *controlplane.ControlPlane) error {
		log.Info("The control plane is ready", "api", f.config.Cluster.Host, "address", cp.Address())
		if err := a.offer(cmd.Context(), cp.Config(), &f.offers, f.config.Namespace); err != nil {
			log.Error(err, "Adding the catalogue: the control plane goes on with the one that it has")
		}
		return nil
	})
}

// clusterConfig is the way to the control plane's cluster: the one that is named, the one that this runs in, or the usual one.
func (a *app) clusterConfig(file, context string) (*rest.Config, error) {
	if file == "" && context == "" && a.p.Getenv("KUBERNETES_SERVICE_HOST") != "" {
		return rest.InClusterConfig()
	}
	return a.loadConfig(file, context)
}
