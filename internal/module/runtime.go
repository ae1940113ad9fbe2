package module

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// Version of the runtime's Kubernetes, such as v1.36.3. One request, the first time.
func (r *Runtime) Version(ctx context.Context) (string, error) {
	r.mu.Lock()
	known := r.version
	r.mu.Unlock()
	if known != "" {
		return known, nil
	}
	info, err := r.remote.ServerVersion(ctx)
	if err != nil {
		return "", fmt.Errorf("asking the runtime for its version: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.version = info.GitVersion
	return r.version, nil
}

var namespaces = cluster.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Kind: "Namespace"}

// UID of the runtime's kube-system namespace: it tells clusters apart. One request, the first time.
func (r *Runtime) UID(ctx context.Context) (string, error) {
	r.mu.Lock()
	known := r.uid
	r.mu.Unlock()
	if known != "" {
		return known, nil
	}
	var meta metav1.PartialObjectMetadata
	if err := r.remote.Get(ctx, namespaces, "", metav1.NamespaceSystem, &meta); err != nil {
		return "", fmt.Errorf("asking the runtime for its identity: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.uid = string(meta.UID)
	return r.uid, nil
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
