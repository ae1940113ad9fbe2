// Package cluster is the contract of a client for one runtime: what internal/remote provides and internal/apply uses,
// so that the two need not know each other.
//
// It may import internal/kind and k8s.io/apimachinery. It holds types, an interface, what a
// context may say and the meaning of errors, no behaviour of its own.
package cluster

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Resource is a kind together with its place in URLs.
type Resource struct {
	schema.GroupVersionResource
	Kind       string
	Namespaced bool
}

// GVK is the resource's group, version and kind.
func (r Resource) GVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
}

// ListOptions narrow a list.
type ListOptions struct {
	// Namespace to list; empty lists all.
	Namespace string
	// LabelSelector and FieldSelector as in the Kubernetes API.
	LabelSelector, FieldSelector string
	// Limit is the page size. Default: 500.
	Limit int64
	// MaxItems is a bound on the whole list, beyond which it is an error. Default: 100,000.
	MaxItems int
}

// WatchOptions narrow a watch.
type WatchOptions struct {
	// LabelSelector as in the Kubernetes API.
	LabelSelector string
	// ResourceVersion to go on from: that of a list, or of the last event. Empty begins with the objects that there are, as
	// added ones.
	ResourceVersion string
}

// WatchEventType says what happened to an object.
type WatchEventType string

// The types of events.
const (
	// WatchAdded: the object was made, or has got the label.
	WatchAdded WatchEventType = "ADDED"
	// WatchModified: it was changed.
	WatchModified WatchEventType = "MODIFIED"
	// WatchDeleted: it is gone, or has lost the label.
	WatchDeleted WatchEventType = "DELETED"
	// WatchBookmark: nothing happened up to the event's ResourceVersion. It has no object.
	WatchBookmark WatchEventType = "BOOKMARK"
)

// WatchEvent is one event of a watch.
type WatchEvent struct {
	Type WatchEventType
	// ResourceVersion to go on from after this event.
	ResourceVersion string
	// Object is the metadata of the object after the event, and before it of one that was deleted; nil for a bookmark.
	Object *metav1.PartialObjectMetadata
}

// ApplyOptions of a server-side apply.
type ApplyOptions struct {
	// Manager is the field manager. Needed.
	Manager string
	// Force takes conflicting fields from other managers.
	Force bool
	// DryRun changes nothing and answers what would be.
	DryRun bool
}

// PatchOptions of other patches.
type PatchOptions struct {
	Manager string
	DryRun  bool
}

// DeleteOptions of a deletion.
type DeleteOptions struct {
	// UID is a precondition: another object of the same name is not deleted. Empty: none.
	UID types.UID
	// Propagation to dependents; empty is the server's default.
	Propagation metav1.DeletionPropagation
	DryRun      bool
}

// Application is an object of Client.ApplyEach: what Apply takes.
type Application struct {
	Resource        Resource
	Namespace, Name string
	Body            []byte
	Options         ApplyOptions
}

// Answered is told what became of each object, in their order: its metadata, which are overwritten afterwards, or why it was not applied,
// as Apply says it. It returns whether to go on; where it does not, it is told of no other.
type Answered func(i int, answer *metav1.PartialObjectMetadata, err error) (on bool)

// inTurnKey marks the context of work that asks one thing after the other.
type inTurnKey struct{}

// InTurn is a context for work on so many runtimes that nobody waits for one of them: what it asks is asked one after the other, over
// one connection of HTTP/1.1, and objects are sent before those before them are answered (Client.ApplyEach). That takes a third less of the
// processors' time, here and there, than many requests at the same time over HTTP/2 do.
func InTurn(ctx context.Context) context.Context { return context.WithValue(ctx, inTurnKey{}, true) }

// AtOnce takes InTurn back: for what turns out to be more work, or to take time.
func AtOnce(ctx context.Context) context.Context {
	if !IsInTurn(ctx) {
		return ctx
	}
	return context.WithValue(ctx, inTurnKey{}, false)
}

// IsInTurn says whether a context is from InTurn.
func IsInTurn(ctx context.Context) bool {
	is, _ := ctx.Value(inTurnKey{}).(bool)
	return is
}

// Client talks to one runtime. Every call has a deadline, is limited and counted; transient failures are retried
// within bounds. It is safe for concurrent use.
//
// An `into` of type *metav1.PartialObjectMetadata, or nil, asks the server for metadata only.
type Client interface {
	// Resource maps a kind; unknown kinds give a *NoKindError.
	Resource(ctx context.Context, gvk schema.GroupVersionKind) (Resource, error)
	// ResourceFor maps a kind whose version is not known to the server's preferred version.
	ResourceFor(ctx context.Context, gk schema.GroupKind) (Resource, error)
	// Declare makes kinds known that definitions of a module declare.
	Declare(kinds ...Resource)
	// Forget drops what is known of a kind, so that the server is asked when it is needed next: what to do after ErrNoKind.
	Forget(gvk schema.GroupVersionKind)
	// Serves asks the server whether a resource answers now. One request.
	Serves(ctx context.Context, r Resource) (bool, error)

	Get(ctx context.Context, r Resource, namespace, name string, into any) error
	ListMeta(ctx context.Context, r Resource, o ListOptions) ([]metav1.PartialObjectMetadata, error)
	List(ctx context.Context, r Resource, o ListOptions) ([]unstructured.Unstructured, error)
	Create(ctx context.Context, r Resource, namespace string, body []byte, into any) error
	Apply(ctx context.Context, r Resource, namespace, name string, body []byte, o ApplyOptions, into any) error
	// ApplyEach applies objects one after the other. Where that is in turn (InTurn), the next ones may be sent before the first is
	// answered; answered returning false then only ends what is not sent yet. It is called by the caller's goroutine.
	ApplyEach(ctx context.Context, objects []Application, answered Answered)
	Patch(ctx context.Context, r Resource, namespace, name string, pt types.PatchType, body []byte, o PatchOptions, into any) error
	Delete(ctx context.Context, r Resource, namespace, name string, o DeleteOptions) error
}
