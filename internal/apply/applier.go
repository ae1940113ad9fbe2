package apply

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/cluster"
)

// Options of New. The zero value works.
type Options struct {
	// Owner is the identity of the control plane that sets belong to. Default: v1beta2.EmbeddedOwner.
	Owner string
	// Parallel is the number of objects of a stage that are sent at the same time; one by one where the context says so (cluster.InTurn).
	// Default: 8.
	Parallel int
	// Progress is told of each object as soon as something happened to it. It must be safe for concurrent use and
	// must not block. Default: nobody is told.
	Progress func(Event)
	// Now is the clock. Default: time.Now.
	Now func() time.Time
	// After waits between two looks at something that takes time. Default: time.After.
	After func(time.Duration) <-chan time.Time
}

func (o Options) withDefaults() Options {
	if o.Owner == "" {
		o.Owner = v1beta2.EmbeddedOwner
	}
	if o.Parallel <= 0 {
		o.Parallel = 8
	}
	if o.Progress == nil {
		o.Progress = func(Event) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.After == nil {
		o.After = time.After
	}
	return o
}

// parallel is how many requests of a context are sent to a runtime at the same time.
func (a *Applier) parallel(ctx context.Context) int {
	if cluster.IsInTurn(ctx) {
		return 1
	}
	return a.o.Parallel
}

// Applier applies bundles to any number of runtimes. What it remembers is bounded, and is only there to save work or to
// calm fights; losing it loses nothing. It is safe for concurrent use.
type Applier struct {
	o        Options
	memo     *coverageMemo
	contests *contests
	health   *healthCache
}

// New makes an Applier.
func New(o Options) *Applier {
	o = o.withDefaults()
	return &Applier{o: o, memo: newCoverageMemo(), contests: newContests(o.Now), health: newHealthCache()}
}

// WithProgress is the same Applier, its memory shared, telling somebody else.
func (a *Applier) WithProgress(progress func(Event)) *Applier {
	b := *a
	b.o.Progress = progress
	return &b
}

// ID names a module on a runtime.
type ID struct {
	// Namespace and Module are the module's identity.
	Namespace, Module string
}

// String is namespace/module.
func (id ID) String() string { return id.Namespace + "/" + id.Module }

// Target is a runtime.
type Target struct {
	// Client talks to it.
	Client cluster.Client
	// Writer writes and deletes the module's objects, where that is to be done by another identity than the Client's. Inventories,
	// the namespace of a module and everything that is only read stay with Client. Default: Client.
	Writer Writer
	// UID of its kube-system namespace: it tells clusters apart, also behind the same address.
	UID string
	// ServerVersion such as v1.36.3: what a server rewrites is remembered per version.
	ServerVersion string
}

// Writer is the part of cluster.Client by which objects of modules are changed.
type Writer interface {
	Apply(ctx context.Context, r cluster.Resource, namespace, name string, body []byte, o cluster.ApplyOptions, into any) error
	ApplyEach(ctx context.Context, objects []cluster.Application, answered cluster.Answered)
	Patch(ctx context.Context, r cluster.Resource, namespace, name string, pt types.PatchType, body []byte, o cluster.PatchOptions, into any) error
	Delete(ctx context.Context, r cluster.Resource, namespace, name string, o cluster.DeleteOptions) error
}

var (
	configMaps = cluster.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap", Namespaced: true}
	namespaces = cluster.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Kind: "Namespace"}
	secretKind = schema.GroupKind{Kind: "Secret"}
	crds       = cluster.Resource{GroupVersionResource: schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, Kind: "CustomResourceDefinition"}
)

// contests counts how often fields were lost, to tell a repair from a fight. Bounded and safe for concurrent use.
type contests struct {
	now  func() time.Time
	mu   sync.Mutex
	lost map[string]*contest
}

// contest is the history of one field of one object.
type contest struct {
	losses []time.Time
	until  time.Time // not fought for before
	pause  time.Duration
}

// A field that is lost contestLosses times within contestWindow is contested: it is left alone for a pause that starts at
// contestPause and doubles up to contestWindow.
const (
	contestLosses = 3
	contestWindow = time.Hour
	contestPause  = 5 * time.Minute
	maxContests   = 10_000
)

func newContests(now func() time.Time) *contests {
	return &contests{now: now, lost: map[string]*contest{}}
}

// contested says whether a field is to be left alone now, without counting anything.
func (c *contests) contested(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.lost[key]
	return e != nil && c.now().Before(e.until)
}

// record counts the loss of a field that is about to be taken back.
func (c *contests) record(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	e := c.lost[key]
	if e == nil {
		c.expire(now)
		e = &contest{}
		c.lost[key] = e
	}
	recent := e.losses[:0]
	for _, t := range e.losses {
		if now.Sub(t) < contestWindow {
			recent = append(recent, t)
		}
	}
	e.losses = append(recent, now)
	if len(e.losses) < contestLosses {
		return
	}
	e.losses = e.losses[len(e.losses)-contestLosses:]
	e.pause = min(max(2*e.pause, contestPause), contestWindow)
	e.until = now.Add(e.pause)
}

// expire forgets what is old, and everything where that is not enough.
func (c *contests) expire(now time.Time) {
	if len(c.lost) < maxContests {
		return
	}
	for key, e := range c.lost {
		if now.After(e.until) && now.Sub(e.losses[len(e.losses)-1]) >= contestWindow {
			delete(c.lost, key)
		}
	}
	if len(c.lost) >= maxContests {
		clear(c.lost)
	}
}
