// Package access keeps the connections to runtimes: made when they are first used, given other credentials when the kubeconfig's
// Secret changes, closed when nobody has used them for a while.
//
// Kubeconfigs are read from their Secret each time that a connection is made, no older than the version that is known of it, and never
// kept. The package may import the api module, internal/module, internal/remote, internal/cluster and controller-runtime's client.
package access

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/cluster"
	"github.com/kyma-project/mothership/internal/module"
	"github.com/kyma-project/mothership/internal/remote"
)

// Error says why a runtime is not worked on though no call to it failed.
type Error struct {
	// Reason is one of the api module's reasons of ConditionReachable.
	Reason string
	// Message says what is missing and what to do.
	Message string
}

// Error is the message.
func (e *Error) Error() string { return e.Message }

// Options of New.
type Options struct {
	// Cache reads Runtimes and the metadata of Secrets. Needed.
	Cache client.Reader
	// Live reads Secrets. Needed.
	Live client.Reader
	// Connection limits what is asked of each runtime.
	Connection remote.Options
	// Admit is asked before each request to a runtime; an error keeps it from being sent. Default: every request is sent.
	Admit func(runtime types.NamespacedName) error
	// Ask is told of each wait for a runtime, see remote.Options.
	Ask func(ctx context.Context, ahead bool) (answered func(ok bool))
	// Remember is how long a runtime that did not answer several times in a row is not asked again by Identify, unless its kubeconfig changes: others probe
	// it. Default: not at all.
	Remember time.Duration
	// Idle is how long an unused connection is kept, IdleMost how many are: work on a runtime comes in bursts, and each connection
	// takes memory. Default: 10 s, 256.
	Idle     time.Duration
	IdleMost int
}

// Pool is the connections to all runtimes. It is safe for concurrent use.
type Pool struct {
	o Options

	mu      sync.Mutex
	entries map[types.NamespacedName]*entry
	unused  *list.List   // of names, of those in entries that nobody uses; the one that was used last is the last
	closed  remote.Stats // of connections that are no more
}

// entry is one runtime's connection. Its own lock is held while it is made, so that others wait for it and not for each other.
type entry struct {
	client  atomic.Pointer[remote.Client] // set once
	mu      sync.Mutex
	runtime *module.Runtime
	version string // of the kubeconfig
	// tries counts the failures, the last of which is err: whoever waited for the same connection need not try again.
	tries atomic.Int64
	err   error
	at    time.Time // of that
	fails int       // in a row

	// The pool's lock guards these.
	users  int
	used   time.Time
	unused *list.Element // its place in Pool.unused, nil while it is used
}

// New makes a Pool without connections.
func New(o Options) *Pool {
	o.Idle, o.IdleMost = cmp.Or(o.Idle, 10*time.Second), cmp.Or(o.IdleMost, 256)
	if o.Ask == nil {
		o.Ask = func(context.Context, bool) func(bool) { return func(bool) {} }
	}
	return &Pool{o: o, entries: map[types.NamespacedName]*entry{}, unused: list.New(), closed: remote.Stats{}}
}

// Get is the connection to a runtime, until release is called. The runtime is asked who it is where that is not known: once
// for each kubeconfig. Errors: *Error where there is nothing to connect to; what module.Runtime.Probe returns.
func (p *Pool) Get(ctx context.Context, name types.NamespacedName) (rt *module.Runtime, release func(), err error) {
	e := p.enter(name)
	leave := sync.OnceFunc(func() { p.leave(name, e) })
	rt, err = p.connect(ctx, name, e)
	if err != nil {
		leave()
		return nil, nil, err
	}
	return rt, leave, nil
}

// Once is a context whose requests to runtimes are not repeated after failures: where a failure is the answer.
func Once(ctx context.Context) context.Context { return remote.Once(ctx) }

// Known is who a cluster is.
type Known struct {
	// UID of its kube-system namespace, and Version of its Kubernetes.
	UID, Version string
	// Kubeconfig names the version of the kubeconfig that led to it.
	Kubeconfig string
}

// Identify says who a runtime is. It asks the runtime where that is not known of its kubeconfig.
func (p *Pool) Identify(ctx context.Context, r *v1beta2.Runtime) (Known, error) {
	name := client.ObjectKeyFromObject(r)
	version, err := p.secretVersion(ctx, name.Namespace, SecretOf(r))
	if err != nil {
		return Known{}, err
	}
	uid, kubernetes := FactOf(r, v1beta2.FactRuntimeUID), FactOf(r, v1beta2.FactKubernetesVersion)
	if uid != "" && kubernetes != "" && FactOf(r, v1beta2.FactKubeconfigVersion) == version {
		return Known{UID: uid, Version: kubernetes, Kubeconfig: version}, nil
	}
	e := p.enter(name)
	defer p.leave(name, e)
	if err := p.remembered(e, version); err != nil {
		return Known{}, err
	}
	rt, err := p.connect(Once(ctx), name, e)
	if err != nil {
		return Known{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	uid, kubernetes = rt.Known()
	return Known{UID: uid, Version: kubernetes, Kubeconfig: e.version}, nil
}

// remembered is why a runtime did not answer lately, with the same kubeconfig; nil if it did, or was not asked.
func (p *Pool) remembered(e *entry, version string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.runtime == nil && e.fails >= quickTries && e.version == version && time.Since(e.at) < p.o.Remember {
		return e.err
	}
	return nil
}

// ReasonOf is the api module's reason for a runtime not to be reachable.
func ReasonOf(err error) string {
	var missing *Error
	switch {
	case errors.As(err, &missing):
		return missing.Reason
	case errors.Is(err, cluster.ErrUnauthorized):
		return v1beta2.ReasonUnauthorized
	case errors.Is(err, cluster.ErrForbidden):
		return v1beta2.ReasonForbidden
	case errors.Is(err, cluster.ErrThrottled), errors.Is(err, cluster.ErrUnavailable):
		return v1beta2.ReasonUnavailable
	}
	return v1beta2.ReasonUnreachable
}

func (p *Pool) enter(name types.NamespacedName) *entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entries[name]
	if e == nil {
		e = &entry{}
		p.entries[name] = e
	}
	e.users++
	p.unlist(e)
	return e
}

func (p *Pool) leave(name types.NamespacedName, e *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.users--
	e.used = time.Now()
	if e.users > 0 {
		return
	}
	e.unused = p.unused.PushBack(name)
	if p.unused.Len() > p.o.IdleMost {
		p.dropFirst()
	}
}

// unlist takes a connection out of those that nobody uses, if it is there. The pool's lock is held.
func (p *Pool) unlist(e *entry) {
	if e.unused != nil {
		p.unused.Remove(e.unused)
		e.unused = nil
	}
}

// dropFirst closes the connection that has not been used for longest. The pool's lock is held.
func (p *Pool) dropFirst() {
	name := p.unused.Front().Value.(types.NamespacedName)
	p.drop(name, p.entries[name])
}

// connect makes the connection, or checks that it is still the one that the Secret says.
func (p *Pool) connect(ctx context.Context, name types.NamespacedName, e *entry) (*module.Runtime, error) {
	var obj v1beta2.Runtime
	if err := p.o.Cache.Get(ctx, name, &obj); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, Missing(name)
		}
		return nil, fmt.Errorf("reading Runtime %s: %w", name, err)
	}
	ref := SecretOf(&obj)
	version, err := p.secretVersion(ctx, name.Namespace, ref)
	if err != nil {
		return nil, err
	}
	tries := e.tries.Load()
	entered := p.o.Ask(ctx, false) // whoever makes the connection may wait for long
	e.mu.Lock()
	defer e.mu.Unlock()
	entered(false)
	if e.runtime != nil && e.version == version {
		return e.runtime, nil
	}
	if e.tries.Load() != tries {
		return nil, e.err
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	if err := p.open(ctx, &obj, ref, version, e); err != nil {
		return nil, err
	}
	if err := p.identify(ctx, &obj, e); err != nil {
		e.err, e.at = err, time.Now()
		e.fails++
		e.tries.Add(1)
		return nil, err
	}
	e.fails = 0
	return e.runtime, nil
}

// quickTries is how often in a row a runtime must not have answered for that to be remembered: one that has just been made may take
// a moment.
const quickTries = 3

// openTimeout bounds making a connection: a cluster that does not say who it is in this time does not answer.
const openTimeout = 10 * time.Second

// Taken says that the cluster is another Kyma's.
func Taken(by types.NamespacedName) *Error {
	return &Error{v1beta2.ReasonClusterTaken, fmt.Sprintf(
		"the kubeconfig leads to the cluster that Kyma %s has already: two must not manage one cluster", by.Name)}
}

// Missing says that a Kyma has no Runtime.
func Missing(name types.NamespacedName) *Error {
	return &Error{v1beta2.ReasonRuntimeMissing, fmt.Sprintf("there is no Runtime %s in namespace %s: create it, or delete the Kyma", name.Name, name.Namespace)}
}

// SecretOf is where a Runtime's kubeconfig is.
func SecretOf(r *v1beta2.Runtime) v1beta2.SecretKeyReference {
	ref := v1beta2.SecretKeyReference{Name: r.Name + "-kubeconfig"}
	if r.Spec.Provider == v1beta2.ProviderBYOC && r.Spec.Kubeconfig != nil { // other providers write one themselves
		ref = r.Spec.Kubeconfig.SecretRef
	}
	ref.Key = cmp.Or(ref.Key, "kubeconfig")
	return ref
}

// secretVersion changes with every change of the Secret.
func (p *Pool) secretVersion(ctx context.Context, namespace string, ref v1beta2.SecretKeyReference) (string, error) {
	meta := metav1.PartialObjectMetadata{}
	meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := p.o.Cache.Get(ctx, types.NamespacedName{Namespace: namespace, Name: ref.Name}, &meta)
	if apierrors.IsNotFound(err) {
		return "", missing(ref)
	}
	if err != nil {
		return "", fmt.Errorf("reading the metadata of Secret %s: %w", ref.Name, err)
	}
	return VersionOf(&meta.ObjectMeta), nil
}

// VersionOf names the content of a Secret.
func VersionOf(meta *metav1.ObjectMeta) string { return string(meta.UID) + "/" + meta.ResourceVersion }

func missing(ref v1beta2.SecretKeyReference) error {
	return &Error{v1beta2.ReasonRuntimeNotReady, fmt.Sprintf("Secret %s with the runtime's kubeconfig does not exist (yet)", ref.Name)}
}

// behind is how long an API server may take to answer from its own cache. One whose cache is behind says so after three seconds, and
// clients ask it again then.
const behind = time.Second

// readSecret reads a Secret of which a version is known, or a newer one: from the API server's own cache, or else from etcd.
func (p *Pool) readSecret(ctx context.Context, name types.NamespacedName, version string, into *corev1.Secret) error {
	_, known, _ := strings.Cut(version, "/")
	cached, cancel := context.WithTimeout(ctx, behind)
	defer cancel()
	err := p.o.Live.Get(cached, name, into, &client.GetOptions{Raw: &metav1.GetOptions{ResourceVersion: known}})
	if err == nil || apierrors.IsNotFound(err) || ctx.Err() != nil {
		return err
	}
	return p.o.Live.Get(ctx, name, into)
}

// open reads the kubeconfig, of a version or a newer one, and gives it to the client. The entry's lock is held.
func (p *Pool) open(ctx context.Context, r *v1beta2.Runtime, ref v1beta2.SecretKeyReference, version string, e *entry) error {
	var secret corev1.Secret
	err := p.readSecret(ctx, types.NamespacedName{Namespace: r.Namespace, Name: ref.Name}, version, &secret)
	if apierrors.IsNotFound(err) {
		return missing(ref)
	}
	if err != nil {
		return fmt.Errorf("reading Secret %s: %w", ref.Name, err)
	}
	cfg, err := remote.LoadKubeconfig(secret.Data[ref.Key], "")
	if err != nil {
		return &Error{v1beta2.ReasonKubeconfigInvalid, fmt.Sprintf("the kubeconfig in Secret %s, key %s, cannot be used: %v", ref.Name, ref.Key, err)}
	}
	c := e.client.Load()
	if c == nil {
		c, err = remote.New(cfg, p.connection(client.ObjectKeyFromObject(r)))
	} else {
		err = c.Swap(cfg)
	}
	if err != nil {
		return &Error{v1beta2.ReasonKubeconfigInvalid, fmt.Sprintf("the kubeconfig in Secret %s, key %s, cannot be used: %v", ref.Name, ref.Key, err)}
	}
	e.client.Store(c)
	e.runtime, e.version = module.NewRuntime(r.Namespace+"/"+r.Name, c), VersionOf(&secret.ObjectMeta)
	return nil
}

// connection is the options of a runtime's client.
func (p *Pool) connection(name types.NamespacedName) remote.Options {
	out := p.o.Connection
	out.Ask = p.o.Ask
	if p.o.Admit != nil {
		out.Admit = func() error { return p.o.Admit(name) }
	}
	return out
}

// identify asks the runtime who it is, unless that was found out with the same kubeconfig before. Without an answer there is no
// connection. The entry's lock is held.
func (p *Pool) identify(ctx context.Context, r *v1beta2.Runtime, e *entry) error {
	if FactOf(r, v1beta2.FactKubeconfigVersion) == e.version {
		e.runtime.SetKnown(FactOf(r, v1beta2.FactRuntimeUID), FactOf(r, v1beta2.FactKubernetesVersion))
		return nil
	}
	if err := e.runtime.Probe(ctx); err != nil {
		e.runtime = nil
		return err
	}
	return nil
}

// FactOf is the value of a Runtime's fact, empty if it is not known.
func FactOf(r *v1beta2.Runtime, key string) string {
	for _, f := range r.Status.Facts {
		if f.Key == key {
			return f.Value
		}
	}
	return ""
}

// Gone says that a cluster is no more, or no longer ours: its Runtime (nil if there is none) has been deleted to the end, or is
// to be abandoned. A cluster that merely does not answer is not gone.
func Gone(r *v1beta2.Runtime) bool {
	return r == nil || (r.DeletionTimestamp != nil && r.Spec.DeletionPolicy == v1beta2.DeletionAbandon)
}

// Forget drops a runtime's connection, as soon as nobody uses it.
func (p *Pool) Forget(name types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.entries[name]; e != nil {
		e.used = time.Time{}
		p.drop(name, e)
	}
}

// drop closes a connection that nobody uses. The pool's lock is held.
func (p *Pool) drop(name types.NamespacedName, e *entry) {
	if e.users > 0 {
		return
	}
	p.unlist(e)
	delete(p.entries, name)
	c := e.client.Load()
	if c == nil {
		return
	}
	for verb, n := range c.Stats() {
		p.closed[verb] += n
	}
	c.Close()
}

// Run closes idle connections until the context ends, and then all that nobody uses.
func (p *Pool) Run(ctx context.Context) error {
	tick := time.NewTicker(p.o.Idle / 5)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			p.closeOlder(time.Now())
			return nil
		case now := <-tick.C:
			p.closeOlder(now.Add(-p.o.Idle))
		}
	}
}

func (p *Pool) closeOlder(than time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for first := p.unused.Front(); first != nil; first = p.unused.Front() {
		if p.entries[first.Value.(types.NamespacedName)].used.After(than) {
			return
		}
		p.dropFirst()
	}
}

// Open is the number of connections.
func (p *Pool) Open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.entries)
}

// Stats is the number of requests to all runtimes since the start, by verb.
func (p *Pool) Stats() remote.Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	sum := maps.Clone(p.closed)
	for _, e := range p.entries {
		if c := e.client.Load(); c != nil {
			for verb, n := range c.Stats() {
				sum[verb] += n
			}
		}
	}
	return sum
}
