package module

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/apply"
	"github.com/kyma-project/mothership/internal/cluster"
	"github.com/kyma-project/mothership/internal/remote"
	"github.com/kyma-project/mothership/reconciler"
)

// Runtime is a runtime as the built-in reconciler uses it. It is safe for concurrent use.
type Runtime struct {
	name   string
	remote *remote.Client

	mu      sync.Mutex
	uid     string
	version string
}

var _ reconciler.Runtime = (*Runtime)(nil)

// NewRuntime names a runtime that a client reaches.
func NewRuntime(name string, c *remote.Client) *Runtime { return &Runtime{name: name, remote: c} }

// Name of the runtime.
func (r *Runtime) Name() string { return r.name }

// Client is a controller-runtime client with the same limits as everything else that talks to the runtime.
func (r *Runtime) Client() (client.Client, error) { return r.remote.Client() }

// Known is the identity and version that were last seen, empty if they were not. It asks nobody.
func (r *Runtime) Known() (uid, version string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.uid, r.version
}

// SetKnown says what was seen before, such as before a restart, so that it need not be asked again. Probe still notices another
// cluster. Empty values are asked for.
func (r *Runtime) SetKnown(uid, version string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.uid, r.version = uid, version
}

// Probe asks the runtime for its version and identity, whatever is known: two requests. What is seen replaces what was known,
// also where the identity is another one than before, which is ErrOtherCluster, once. Other errors are *RuntimeError, and
// nothing is replaced.
func (r *Runtime) Probe(ctx context.Context) error {
	version, err := r.askVersion(ctx)
	if err != nil {
		return err
	}
	uid, err := r.askUID(ctx)
	if err != nil {
		return err
	}
	before, _ := r.Known()
	r.SetKnown(uid, version)
	if before != "" && before != uid {
		return fmt.Errorf("%w: its identity is %s, and was %s before", ErrOtherCluster, uid, before)
	}
	return nil
}

// Usable asks whether the inventories of modules can be read, which all work on a module begins with, whoever is allowed to say who
// the cluster is: one request, for none of them. Errors are *RuntimeError.
func (r *Runtime) Usable(ctx context.Context) error {
	_, err := r.remote.ListMeta(ctx, inventories, cluster.ListOptions{
		Namespace: v1beta2.SystemNamespace, LabelSelector: v1beta2.ApplySetIDLabel + "=none",
	})
	if err != nil {
		err = fmt.Errorf("reading the inventories of modules: %w", err)
	}
	return ofRuntime(ctx, err)
}

// Version of the runtime's Kubernetes, such as v1.36.3. One request, the first time. Errors are *RuntimeError.
func (r *Runtime) Version(ctx context.Context) (string, error) {
	if _, known := r.Known(); known != "" {
		return known, nil
	}
	version, err := r.askVersion(ctx)
	if err != nil {
		return "", err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.version = version
	return version, nil
}

func (r *Runtime) askVersion(ctx context.Context) (string, error) {
	info, err := r.remote.ServerVersion(ctx)
	if err != nil {
		return "", ofRuntime(ctx, fmt.Errorf("asking the runtime for its version: %w", err))
	}
	return info.GitVersion, nil
}

var namespaces = cluster.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Kind: "Namespace"}

var inventories = cluster.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap", Namespaced: true}

// UID of the runtime's kube-system namespace: it tells clusters apart. One request, the first time. Errors are *RuntimeError.
func (r *Runtime) UID(ctx context.Context) (string, error) {
	if known, _ := r.Known(); known != "" {
		return known, nil
	}
	uid, err := r.askUID(ctx)
	if err != nil {
		return "", err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.uid = uid
	return uid, nil
}

func (r *Runtime) askUID(ctx context.Context) (string, error) {
	var meta metav1.PartialObjectMetadata
	if err := r.remote.Get(ctx, namespaces, "", metav1.NamespaceSystem, &meta); err != nil {
		return "", ofRuntime(ctx, fmt.Errorf("asking the runtime for its identity: %w", err))
	}
	return string(meta.UID), nil
}

// Stats counts the requests made so far, by verb.
func (r *Runtime) Stats() remote.Stats { return r.remote.Stats() }

// target is the runtime as apply sees it.
func (r *Runtime) target(ctx context.Context) (apply.Target, error) {
	uid, err := r.UID(ctx)
	if err != nil {
		return apply.Target{}, err
	}
	version, err := r.Version(ctx)
	return apply.Target{Client: r.remote, UID: uid, ServerVersion: version}, err
}

// ListMeta lists the metadata of a kind's objects; see remote.Client.ListMetaVersion.
func (r *Runtime) ListMeta(ctx context.Context, kind cluster.Resource, o cluster.ListOptions) (items []metav1.PartialObjectMetadata, resourceVersion string, err error) {
	return r.remote.ListMetaVersion(ctx, kind, o)
}

// WatchMeta watches the metadata of a kind's objects; see remote.Client.WatchMeta.
func (r *Runtime) WatchMeta(ctx context.Context, kind cluster.Resource, o cluster.WatchOptions, each func(cluster.WatchEvent)) error {
	return r.remote.WatchMeta(ctx, kind, o, each)
}
