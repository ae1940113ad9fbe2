package mothership

import (
	"context"
	"io"
	"os"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/apply"
	"github.com/kyma-project/mothership/internal/module"
	"github.com/kyma-project/mothership/internal/remote"
	"github.com/kyma-project/mothership/internal/render"
	"github.com/kyma-project/mothership/internal/source"
	"github.com/kyma-project/mothership/reconciler"
)

// Module is what is to be installed.
type Module struct {
	// Name of the module, and Namespace that it is installed into (created where missing). Together they are its
	// identity in a cluster. Both are DNS labels.
	Name, Namespace string
	// Template says where the module comes from and how it is treated; Template.Source is needed (see Chart,
	// Kustomization, Manifests).
	Template v1beta2.ModuleTemplateSpec
	// Values for a Helm chart, over those of Template and of the chart itself.
	Values map[string]any
}

// Chart is a Helm chart: a directory, a .tgz, an http(s) address of one, oci://HOST/CHART:TAG, or
// git+https://HOST/REPOSITORY@REF#FOLDER. A chart of a Helm repository is set as Source.Chart.Helm.
func Chart(place string) v1beta2.Source { return v1beta2.Source{Chart: refTo(place)} }

// Kustomization is a directory, an http(s) address of an archive of one, or an address as in Chart.
func Kustomization(place string) v1beta2.Source { return v1beta2.Source{Kustomize: refTo(place)} }

// Manifests are a YAML file, a directory of them, an http(s) address, an address as in Chart, or "-" for Options.Stdin.
func Manifests(place string) v1beta2.Source { return v1beta2.Source{Manifests: refTo(place)} }

func refTo(place string) *v1beta2.SourceRef { return new(source.RefTo(place)) }

func (m Module) component() reconciler.Component {
	return reconciler.Component{Name: m.Name, Namespace: m.Namespace, Template: m.Template, Values: m.Values}
}

// Options of New. The zero value works.
type Options struct {
	// Isolate renders untrusted sources (downloads) in child processes with a memory limit and a kill deadline.
	// Without it they are rendered in this process, within a deadline that cannot stop a template that never ends.
	Isolate *Isolation
	// IsolateAll renders local sources in child processes too.
	IsolateAll bool
	// CacheBytes bounds the cache of rendered bundles. Default: 64 MiB. Negative: no cache.
	CacheBytes int64
	// RenderMemory is how many bytes rendering in this process may add to it before it is given up; the process should
	// end then. Default: no limit.
	RenderMemory int64
	// RenderTimeout is the longest that rendering one module may take. Default: 20 s.
	RenderTimeout time.Duration
	// Connection limits what is asked of each cluster.
	Connection Connection
	// Parallel is the number of objects sent at the same time to one cluster. Default: 8.
	Parallel int
	// Sources says how what is not on the local disk is fetched.
	Sources Sources
	// PostRender is done to the objects of every module, besides what its template says: images taken from mirrors, pull
	// secrets, labels and annotations. Default: nothing.
	PostRender v1beta2.PostRender
	// Stdin is read for Manifests("-"). Default: none.
	Stdin io.Reader
	// Owner is the identity of the control plane that modules belong to: those of others are refused. Give one to look at, or
	// work on, what a control plane has installed. Default: v1beta2.EmbeddedOwner, nobody's.
	Owner string
}

// Isolation are child processes that render. One that has rendered is kept for a minute, for the next; they end with this
// process, with Installer.Close, or when one fails.
type Isolation struct {
	// Command that runs RenderChild: usually the own executable with an argument by which its main knows what to do.
	Command []string
	// MemoryBytes is the hard limit of each. Default: 512 MiB.
	MemoryBytes int64
}

// Connection limits what is asked of one cluster. The zero value works.
type Connection struct {
	// QPS and Burst limit requests per second. Default: 500 and 1000.
	QPS   float64
	Burst int
	// CallTimeout is the deadline of one request. Default: 30 s.
	CallTimeout time.Duration
	// Retries of a request that failed for a passing reason. Default: 4. Negative: none.
	Retries int
}

// Installer works on clusters. It is safe for concurrent use.
type Installer struct {
	o      Options
	shared *module.Reconciler
	close  func()
}

// sourceCacheBytes bounds the cache of downloads that are named with their digest.
const sourceCacheBytes = 32 << 20

// New makes an Installer.
func New(o Options) *Installer {
	sources := o.Sources.fetcher()
	renderer, closeRenderer := newRenderer(o, sources)
	return &Installer{o: o, close: closeRenderer, shared: module.New(module.Options{
		Sources:  sources,
		Renderer: renderer,
		Applier:  apply.New(apply.Options{Parallel: o.Parallel, Owner: o.Owner}),
		Stdin:    o.Stdin, PostRender: o.PostRender,
	})}
}

// Close ends the child processes that render, and with them what is being rendered, and waits for their end. Without it they end a
// minute after the last rendering, or with this process. Nothing can be rendered in them afterwards.
func (i *Installer) Close() { i.close() }

func newRenderer(o Options, sources source.Fetcher) (_ render.Renderer, closeIt func()) {
	var r render.Renderer = render.New(render.Options{Timeout: o.RenderTimeout, Memory: o.RenderMemory})
	closeIt = func() {}
	if o.Isolate != nil {
		child := render.Isolated(render.IsolatedOptions{Command: o.Isolate.Command, Memory: o.Isolate.MemoryBytes, Timeout: o.RenderTimeout})
		closeIt = child.Close
		if o.IsolateAll {
			r = child
		} else {
			r = render.ByTrust(r, child)
		}
	}
	r = render.WithBases(sources, r)
	if o.CacheBytes < 0 {
		return r, closeIt
	}
	size := o.CacheBytes
	if size == 0 {
		size = 64 << 20
	}
	return render.Cached(r, size), closeIt
}

// begin starts a call: its time (defaultTimeout if none is given) and its one connection, both of which end ends.
func (i *Installer) begin(ctx context.Context, cfg *rest.Config, timeout time.Duration) (_ context.Context, rt *module.Runtime, end func(), err error) {
	c, err := newClient(cfg, i.o.Connection)
	if err != nil {
		return nil, nil, nil, err
	}
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	ctx, cancel := withTimeout(ctx, timeout)
	return ctx, module.NewRuntime(cfg.Host, c), func() { c.Close(); cancel() }, nil
}

func newClient(cfg *rest.Config, o Connection) (*remote.Client, error) {
	return remote.New(cfg, remote.Options{QPS: o.QPS, Burst: o.Burst, Timeout: o.CallTimeout, Retries: o.Retries})
}

// NewReconciler is the built-in module reconciler, for wrapping with reconciler.With. It drives the components of
// runtimes made by NewRuntime or by a control plane. Child processes that render (Options.Isolate) end when they are idle for a
// minute, or with this process.
func NewReconciler(o Options) reconciler.Reconciler { return New(o).shared }

// NewRuntime is the cluster that a rest.Config reaches, for calling a reconciler without a control plane. Close it when done.
func NewRuntime(name string, cfg *rest.Config, o Connection) (rt reconciler.Runtime, closeIt func(), err error) {
	c, err := newClient(cfg, o)
	if err != nil {
		return nil, nil, err
	}
	return module.NewRuntime(name, c), c.Close, nil
}

// RenderChild is the whole of a child process of Isolation: call it first in main when the arguments say so, and exit with
// its result.
func RenderChild() int { return render.ChildMain(os.Stdin, os.Stdout) }

// withTimeout gives a context a deadline where one is asked for.
func withTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, d, errTimedOut)
}
