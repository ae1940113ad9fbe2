// Package infra is the contract of those who provide clusters: what the control plane asks of them, and what they answer.
//
// # Overview
//
// A Provider is asked for one cluster at a time, by name and UID, and takes one step at a time: Ensure towards a cluster that
// is there and can be worked on, Delete towards its being gone. Neither waits for what takes long: it goes on in the
// background, and the caller asks again, after a while or when a Notifier tells it to.
//
// # Invariants
//
//   - The UID is the cluster: what was made for one UID is never given to another, whatever its name is.
//   - Both calls may be repeated at any time and after any crash; nothing depends on how often, or on a call that was lost.
//   - Delete says that a cluster is gone only if the provider knows that it does not exist. An error, a timeout or a doubt is
//     never that.
//   - A kubeconfig leaves a provider in State.Kubeconfig only: it is in no message, error or log line, and no way of printing a
//     State shows it.
//
// The package imports the API types only, and has no code of providers: those are in the packages below it. The package
// infratest has the tests that each of them passes.
package infra

import (
	"context"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// Provider makes clusters and takes them away. It is safe for concurrent use.
type Provider interface {
	// Ensure takes one step towards the cluster being there, and says how it is. It is idempotent and returns soon: what takes
	// long goes on in the background, and State says so. An error is for what the cluster's own state cannot tell: a provider
	// that is closed or does not answer, a request that makes no sense.
	Ensure(ctx context.Context, r Cluster) (State, error)
	// Delete takes one step towards the cluster being gone, and returns as soon as Ensure does. gone is true only when the
	// provider knows that the cluster does not exist; a cluster that it never made is gone too.
	Delete(ctx context.Context, r Cluster) (gone bool, err error)
}

// Notifier is a Provider that tells when a cluster changed by itself: it became ready, died, came back, is gone.
type Notifier interface {
	// Notify registers a function that is called then, with the cluster's namespace and name, for as long as the provider
	// lives. It must return soon and may not call the provider; it can be called concurrently, and once too often.
	Notify(func(namespace, name string))
}

// Cluster is what a provider is asked for: a Runtime, as far as it matters here.
type Cluster struct {
	// Namespace and Name of the Runtime. Another Runtime may have them later.
	Namespace, Name string
	// UID of the Runtime, which no other will ever have.
	UID string
	// Spec of the Runtime.
	Spec v1beta2.RuntimeSpec
}
