package controlplane

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/controllers"
	"github.com/kyma-project/mothership/internal/engine"
	"github.com/kyma-project/mothership/internal/informer"
	"github.com/kyma-project/mothership/internal/remote"
	"github.com/kyma-project/mothership/internal/render"
	"github.com/kyma-project/mothership/internal/source"
)

// Deadlines of the start.
const (
	// setupTimeout bounds installing the definitions and reading the identity.
	setupTimeout = time.Minute
	// cacheTimeout bounds filling the caches.
	cacheTimeout = 2 * time.Minute
)

// callRetries is how often a call to a runtime is repeated. The engine has patience, so a call need not have much: a runtime that
// hangs must not hold workers for long.
const callRetries = 1

// contactTimeout is the deadline of requests to a runtime that has not answered for a while.
const contactTimeout = 10 * time.Second

// firstProbe is the pause before the first probe of a runtime that did not answer: most of what fails once does not fail again.
const firstProbe = 2 * time.Second

// engine is how work is scheduled. One call that failed, repeated as it was, is enough to have no other component try.
func (cp *ControlPlane) engine() engine.Options {
	return engine.Options{
		Workers: cp.cfg.Workers, BreakerFailures: 1,
		Probe: engine.Backoff{First: min(firstProbe, cp.cfg.ProbeInterval), Max: cp.cfg.ProbeInterval, Steep: true},
	}
}

// renderCacheBytes bounds what is kept of renders.
const renderCacheBytes = 64 << 20

// operate runs the controllers over the host's API until ctx ends or one of them fails.
func (cp *ControlPlane) operate(ctx context.Context, h *host) error {
	cfg := rest.CopyConfig(h.config)
	cfg.QPS, cfg.Burst, cfg.UserAgent = float32(cp.cfg.APIQPS), cp.cfg.APIBurst, "mothership-controlplane"
	id, err := cp.prepare(ctx, cfg)
	if err != nil {
		return fmt.Errorf("preparing the control plane's API: %w", err)
	}
	mgr, err := cp.manager(cfg)
	if err != nil {
		return err
	}
	shard, err := cp.shard(cfg)
	if err != nil {
		return err
	}
	sources := cp.sources(mgr.GetAPIReader())
	renderer, closeRenderer := cp.renderer(sources)
	defer closeRenderer()
	fleet, err := controllers.New(controllers.Options{
		Manager: mgr, Providers: h.providers, Namespace: cp.cfg.Namespace, Owner: id.owner, Key: id.key, Log: cp.cfg.Log,
		Sources: sources, Poll: cp.cfg.Sources.PollInterval, Renderer: renderer, Reconcilers: cp.cfg.Reconcilers,
		PostRender: cp.cfg.PostRender,
		Engine:     cp.engine(), Verify: cp.cfg.VerifyInterval, Shard: shard,
		Connection: remote.Options{Timeout: cp.cfg.RequestTimeout, Contact: contactTimeout, Retries: callRetries},
	})
	if err != nil {
		return err
	}
	return cp.run(ctx, h, mgr, fleet)
}

// run holds everything together: the engine ends first and the manager's caches and clients last.
func (cp *ControlPlane) run(ctx context.Context, h *host, mgr ctrl.Manager, fleet *controllers.Fleet) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	base, stopBase := context.WithCancel(context.WithoutCancel(ctx))
	defer stopBase()
	var group errgroup.Group
	end := func(err error) error {
		if err != nil {
			cancel(err)
		}
		return err
	}
	group.Go(func() error {
		defer cancel(errClosed)
		return end(mgr.Start(base))
	})
	group.Go(func() error { return end(cp.serve(base, mgr, fleet)) })
	group.Go(func() error {
		defer stopBase()
		select {
		case <-mgr.Elected():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		return end(fleet.Run(ctx))
	})
	group.Go(func() error { return end(watchHost(ctx, h)) })
	group.Go(func() error { return end(cp.announce(ctx, mgr)) })
	if err := group.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// watchHost ends everything when one of our own servers ends by itself.
func watchHost(ctx context.Context, h *host) error {
	api, etcd := h.died()
	select {
	case <-ctx.Done():
		return nil
	case <-api:
		return fmt.Errorf("the control plane's API server ended: %w", h.server.Err())
	case <-etcd:
		return fmt.Errorf("the control plane's etcd ended")
	}
}

// announce waits until everything works, and says so.
func (cp *ControlPlane) announce(ctx context.Context, mgr ctrl.Manager) error {
	select {
	case <-mgr.Elected():
	case <-ctx.Done():
		return nil
	}
	syncing, cancel := context.WithTimeout(ctx, cacheTimeout)
	defer cancel()
	if !mgr.GetCache().WaitForCacheSync(syncing) {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("filling the caches took longer than %s", cacheTimeout)
	}
	close(cp.ready)
	return nil
}

// manager has the caches and clients of the control plane's API. Secrets and ConfigMaps are cached by their metadata only, and
// nothing keeps the managed fields of objects.
func (cp *ControlPlane) manager(cfg *rest.Config) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1beta2.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("making the scheme: %w", err)
		}
	}
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	newInformer, err := informer.NewFunc(cfg, httpClient)
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme, Logger: cp.cfg.Log,
		Metrics: metricsserver.Options{BindAddress: "0"}, // served by us, with the rest
		Cache:   cache.Options{HTTPClient: httpClient, NewInformer: newInformer, DefaultTransform: cache.TransformStripManagedFields()},
		Client:  client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}}}},
		// An embedded control plane has its folder's lock instead of a lease, which a killed one would hold for a while.
		LeaderElection: cp.cfg.Local == nil && !cp.cfg.Sharded, LeaderElectionID: "mothership", LeaderElectionNamespace: cp.cfg.Namespace,
		LeaderElectionReleaseOnCancel: true,
		Controller:                    config.Controller{SkipNameValidation: new(true)}, // several control planes may be in one process
	})
	if err != nil {
		return nil, fmt.Errorf("making the manager: %w", err)
	}
	return mgr, nil
}

// renderer renders once for the whole fleet; downloads in child processes, if there is a command for them, until it is closed.
func (cp *ControlPlane) renderer(sources source.Fetcher) (_ render.Renderer, closeIt func()) {
	var r render.Renderer = render.New(render.Options{})
	closeIt = func() {}
	if len(cp.cfg.RenderCommand) > 0 {
		children := render.Isolated(render.IsolatedOptions{Command: cp.cfg.RenderCommand})
		r, closeIt = render.ByTrust(r, children), children.Close
	}
	return render.Cached(render.WithBases(sources, r), renderCacheBytes), closeIt
}

// ensureNamespace makes the control plane's namespace.
func ensureNamespace(ctx context.Context, c client.Client, name string) error {
	err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	if client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("making namespace %s: %w", name, err)
	}
	return nil
}
