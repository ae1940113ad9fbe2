// Package informer gives controller-runtime's cache informers that take little for our own kinds: watches are decoded in one pass instead
// of four, without the managed fields, and what many objects say in the same words is kept once.
//
// # Overview
//
// NewFunc makes what cache.Options.NewInformer takes. For the kinds that it was made for, the watch is replaced, which the initial list is
// part of (a streaming list); for all others, and for lists of servers that do not stream, everything is as controller-runtime has it.
//
// # Invariants
//
// What the cache holds must not be changed by anybody, as always: here, two objects may share a part.
//
// # Imports
//
// The package may import the api module, client-go, controller-runtime's cache and the JSON library that decodes in one pass.
package informer

import (
	"context"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// Func makes an informer, as cache.Options.NewInformer does.
type Func func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer

// NewFunc makes informers over an API. client is what requests are sent with, so that its connections are shared; nil: one of its own.
func NewFunc(cfg *rest.Config, client *http.Client) (Func, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.GroupVersion, cfg.APIPath = &v1beta2.GroupVersion, "/apis"
	cfg.NegotiatedSerializer = scheme.Codecs.WithoutConversion() // for errors
	cfg.ContentType, cfg.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	if client == nil {
		var err error
		if client, err = rest.HTTPClientFor(cfg); err != nil {
			return nil, fmt.Errorf("making a client: %w", err)
		}
	}
	api, err := rest.RESTClientForConfigAndClient(cfg, client)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return func(lw toolscache.ListerWatcher, obj runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		switch obj.(type) {
		case *v1beta2.Kyma:
			lw = &watcher[v1beta2.Kyma, *v1beta2.Kyma]{ListerWatcher: lw, api: api, resource: "kymas"}
		case *v1beta2.Runtime:
			lw = &watcher[v1beta2.Runtime, *v1beta2.Runtime]{ListerWatcher: lw, api: api, resource: "runtimes"}
		}
		return toolscache.NewSharedIndexInformer(lw, obj, resync, indexers)
	}, nil
}

// object is a pointer to a T.
type object[T any] interface {
	*T
	runtime.Object
	metav1.Object
}

// watcher lists as another does, and watches by itself.
type watcher[T any, O object[T]] struct {
	toolscache.ListerWatcher
	api      rest.Interface
	resource string
}

var _ toolscache.WatcherWithContext = (*watcher[v1beta2.Kyma, *v1beta2.Kyma])(nil)

// Watch is WatchWithContext without a context of the caller's; the reflector uses the other.
func (w *watcher[T, O]) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return w.WatchWithContext(context.Background(), o)
}

// WatchWithContext opens a watch. Errors are those of client-go: of the API where it refuses.
func (w *watcher[T, O]) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.Watch, o.AllowWatchBookmarks = true, true
	ctx, cancel := context.WithCancel(ctx)
	body, err := w.api.Get().Resource(w.resource).VersionedParams(&o, parameters).
		SetHeader("Accept", "application/json").Timeout(timeoutOf(&o)).Stream(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	return start[T, O](body, cancel), nil
}

// parameters encodes the options of requests.
var parameters = func() runtime.ParameterCodec {
	s := runtime.NewScheme()
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	metav1.AddToGroupVersion(s, v1beta2.GroupVersion)
	return runtime.NewParameterCodec(s)
}()

// grace is how long a watch may go on after the time that the server was asked to end it at.
const grace = 30 * time.Second

// timeoutOf bounds a watch on our side too: a connection that is dead without knowing it ends.
func timeoutOf(o *metav1.ListOptions) time.Duration {
	if o.TimeoutSeconds == nil {
		return 0
	}
	return time.Duration(*o.TimeoutSeconds)*time.Second + grace
}
