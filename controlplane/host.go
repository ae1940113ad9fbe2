package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/infra"
	"github.com/kyma-project/mothership/internal/infra/byoc"
	"github.com/kyma-project/mothership/internal/infra/local"
	"github.com/kyma-project/mothership/internal/infra/local/provider"
)

// host is where the control plane's API is: an existing cluster, or servers of our own.
type host struct {
	config    *rest.Config
	providers map[string]infra.Provider

	etcd   *local.Etcd
	server *local.Server
	local  *provider.Provider
}

// startTimeout bounds the start of our own servers.
const startTimeout = 3 * time.Minute

// openHost starts our own servers, or takes the existing cluster.
func openHost(ctx context.Context, cfg Config) (*host, error) {
	h := &host{config: cfg.Cluster, providers: map[string]infra.Provider{v1beta2.ProviderBYOC: byoc.Provider{}}}
	if cfg.Local == nil {
		return h, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("it took longer than %s", startTimeout))
	defer cancel()
	if err := h.start(ctx, cfg); err != nil {
		return nil, errors.Join(err, h.close())
	}
	return h, nil
}

// KubeconfigFile is the name of the administrator's kubeconfig in Local.Dir.
const KubeconfigFile = "kubeconfig"

func (h *host) start(ctx context.Context, cfg Config) (err error) {
	dir, err := filepath.Abs(cfg.Local.Dir)
	if err != nil {
		return fmt.Errorf("finding the state folder: %w", err)
	}
	if h.etcd, err = local.StartEtcd(local.EtcdOptions{Assets: cfg.Local.Assets, Dir: filepath.Join(dir, "etcd")}); err != nil {
		return fmt.Errorf("starting etcd: %w", err)
	}
	h.server, err = local.Start(ctx, local.Options{
		Assets: cfg.Local.Assets, Dir: filepath.Join(dir, "controlplane"), Port: cfg.Local.Port,
		Controllers: local.DefaultControllers, Etcd: h.etcd, Prefix: "/controlplane",
	})
	if err != nil {
		return fmt.Errorf("starting the control plane's API server: %w", err)
	}
	h.config = h.server.Config()
	kubeconfig, err := h.server.Kubeconfig()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, KubeconfigFile), kubeconfig, 0o600); err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	h.local, err = provider.New(provider.Options{
		Dir: filepath.Join(dir, "runtimes"), Assets: cfg.Local.Assets, Etcd: h.etcd, Log: cfg.Log.WithName("local"),
	})
	if err != nil {
		return fmt.Errorf("making the provider of local runtimes: %w", err)
	}
	h.providers[v1beta2.ProviderLocal] = h.local
	return nil
}

// died is closed when one of our own servers ends by itself; nil if there are none.
func (h *host) died() (api, etcd <-chan struct{}) {
	if h.server == nil {
		return nil, nil
	}
	return h.server.Done(), h.etcd.Done()
}

// stopTimeout bounds the end of the runtimes' servers.
const stopTimeout = time.Minute

// close stops what was started, in reverse order.
func (h *host) close() error {
	var errs []error
	if h.local != nil {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		errs = append(errs, h.local.Close(ctx))
	}
	if h.server != nil {
		errs = append(errs, h.server.Close())
	}
	if h.etcd != nil {
		errs = append(errs, h.etcd.Close())
	}
	return errors.Join(errs...)
}
