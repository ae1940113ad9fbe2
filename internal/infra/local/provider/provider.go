package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"sync"

	"github.com/go-logr/logr"

	"github.com/kyma-project/mothership/internal/infra"
	"github.com/kyma-project/mothership/internal/infra/local"
)

var (
	// ErrClosed says that the provider was closed: nothing begins any more.
	ErrClosed = errors.New("the provider of local clusters is closed")
	// ErrNotRunning says that a cluster does not run at the moment, or does not exist.
	ErrNotRunning = errors.New("the local cluster is not running")
)

// defaultStarts is how many servers start at a time. A start keeps a core busy for two seconds: more at once, and none of them
// is ready sooner.
const defaultStarts = 2

// Options say where clusters live.
type Options struct {
	// Dir is the folder of the clusters' state, one folder each; required.
	Dir string
	// Assets is the folder of the Kubernetes executables; local.Assets() if empty.
	Assets string
	// Etcd has the keys of all clusters; required. Its owner closes it, after Close.
	Etcd *local.Etcd
	// Starts is how many servers start at the same time; 2 if zero.
	Starts int
	// Log says what becomes of clusters. The zero value logs nothing.
	Log logr.Logger
}

// Provider of local clusters. It is safe for concurrent use.
type Provider struct {
	options Options
	slots   chan struct{} // an element for each server that is starting

	mu       sync.Mutex
	clusters map[string]*cluster // by UID; their fields are guarded by mu too, where not said otherwise
	watchers []func(namespace, name string)
	closed   bool

	work sync.WaitGroup // supervisors and removals; added to only while not closed
}

var (
	_ infra.Provider = (*Provider)(nil)
	_ infra.Notifier = (*Provider)(nil)
)

// New returns a provider that goes on with whatever clusters the folder and etcd have: each as soon as it is asked for.
func New(o Options) (*Provider, error) {
	if o.Dir == "" || o.Etcd == nil || o.Starts < 0 {
		return nil, errors.New("making the provider of local clusters: Dir and Etcd are required, Starts cannot be negative")
	}
	var err error
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return nil, fmt.Errorf("making the provider of local clusters: %w", err)
	}
	if o.Assets == "" {
		if o.Assets, err = local.Assets(); err != nil {
			return nil, fmt.Errorf("making the provider of local clusters: %w", err)
		}
	}
	return &Provider{
		options: o, slots: make(chan struct{}, cmp.Or(o.Starts, defaultStarts)), clusters: map[string]*cluster{},
	}, nil
}

// Ensure starts the cluster if it does not run yet, in the background, and says how it is: State has the kubeconfig of an
// administrator (system:masters) once it is ready. The error is ErrClosed after Close.
func (p *Provider) Ensure(_ context.Context, r infra.Cluster) (infra.State, error) {
	if err := validate(r); err != nil {
		return infra.State{}, fmt.Errorf("ensuring local cluster %s/%s: %w", r.Namespace, r.Name, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return infra.State{}, fmt.Errorf("ensuring local cluster %s/%s: %w", r.Namespace, r.Name, ErrClosed)
	}
	c := p.clusters[r.UID]
	if c == nil || c.phase == removed || c.phase == stopped {
		p.displace(r)
		c = p.launch(r, c)
	}
	return c.state(), nil
}

// displace stops the clusters that have the name of a new one. Their Runtimes are gone, since names are unique, and gone
// without Delete; their data stays, as nobody asked for its end.
func (p *Provider) displace(r infra.Cluster) {
	for _, c := range p.clusters {
		if c.id.Namespace == r.Namespace && c.id.Name == r.Name && c.id.UID != r.UID && c.phase.supervised() {
			p.log(c).Info("Stopping the cluster that had the name of a new one", "newUID", r.UID)
			c.phase = stopped
			c.cancel()
		}
	}
}

// Delete stops the cluster and removes its keys and its folder, in the background. It is gone when a later call says so; a
// removal that failed is the error of the next call, and the one after that tries again. The error is ErrClosed after Close.
func (p *Provider) Delete(_ context.Context, r infra.Cluster) (gone bool, err error) {
	if err := validate(r); err != nil {
		return false, fmt.Errorf("deleting local cluster %s/%s: %w", r.Namespace, r.Name, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false, fmt.Errorf("deleting local cluster %s/%s: %w", r.Namespace, r.Name, ErrClosed)
	}
	c := p.clusters[r.UID]
	switch {
	case c != nil && c.phase == removed:
		delete(p.clusters, r.UID)
		return true, nil
	case c != nil && c.removal != nil:
		err, c.removal = c.removal, nil
		return false, fmt.Errorf("deleting local cluster %s/%s: %w", r.Namespace, r.Name, err)
	case c == nil || c.phase != removing:
		p.discard(r, c)
	}
	return false, nil
}

// Notify implements infra.Notifier: the function is called when a cluster is ready, ended, could not be started, or is gone.
func (p *Provider) Notify(f func(namespace, name string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watchers = append(p.watchers, f)
}

// tell calls who wants to be notified. The caller does not hold the lock.
func (p *Provider) tell(c *cluster) {
	p.mu.Lock()
	watchers := p.watchers[:len(p.watchers):len(p.watchers)]
	p.mu.Unlock()
	for _, f := range watchers {
		f(c.id.Namespace, c.id.Name)
	}
}

// Kill kills the API server of a cluster, as a crash would: it comes back by itself. For demos and tests. The error is
// ErrNotRunning if there is nothing to kill.
func (p *Provider) Kill(namespace, name string) error {
	server, err := p.server(namespace, name)
	if err == nil {
		err = server.Kill()
	}
	if err != nil {
		return fmt.Errorf("killing local cluster %s/%s: %w", namespace, name, err)
	}
	return nil
}

// Requests returns how many requests of each sort the API server of a cluster has answered since it started last (see
// local.Server). The error is ErrNotRunning if it does not run.
func (p *Provider) Requests(ctx context.Context, namespace, name string) (map[local.Request]int, error) {
	server, err := p.server(namespace, name)
	if err != nil {
		return nil, fmt.Errorf("counting the requests of local cluster %s/%s: %w", namespace, name, err)
	}
	return server.Requests(ctx)
}

// server finds a running one by name.
func (p *Provider) server(namespace, name string) (*local.Server, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.clusters {
		if c.id.Namespace == namespace && c.id.Name == name && c.phase == running {
			return c.server, nil
		}
	}
	return nil, ErrNotRunning
}

// Close stops all clusters at once, ends removals, and returns when no child process is left. It is to be called before etcd
// is closed. Clusters that are not down when the context ends are killed; the error says so then, and waiting goes on for as
// long as a child can resist, 15 s. It may be called again.
func (p *Provider) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	for _, c := range p.clusters {
		c.cancel()
	}
	p.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		p.work.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
	}
	p.killAll()
	<-ended
	return fmt.Errorf("closing the provider of local clusters: killed what was still running: %w", context.Cause(ctx))
}

func (p *Provider) killAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.clusters {
		if c.server == nil {
			continue
		}
		if err := c.server.Kill(); err != nil {
			p.log(c).Error(err, "Killing a cluster")
		}
	}
}

// uid is what a UID may look like, so that it can be the name of a folder and part of a key.
var uid = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9-]{0,62}$`)

func validate(r infra.Cluster) error {
	switch {
	case r.Name == "":
		return errors.New("it has no name")
	case !uid.MatchString(r.UID):
		return fmt.Errorf("UID %q: only letters, digits and dashes can be used", r.UID)
	}
	return nil
}

// log is the logger of a cluster.
func (p *Provider) log(c *cluster) logr.Logger {
	return p.options.Log.WithValues("runtime", c.id.Name, "namespace", c.id.Namespace, "uid", c.id.UID)
}
