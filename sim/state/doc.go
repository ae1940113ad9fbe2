// Package state is what one simulated cluster keeps and does: objects, resource versions, watches, and what controllers do.
//
// # Overview
//
// A World is what all clusters of a process share: the clock, the timer of everything that happens later, the merges that were
// done before, the kinds that definitions make. A Cluster has one sorted table of records per resource; a record is a pointer to
// a shared content and 16 bytes of its own. Reads and writes are methods of Cluster whose errors are those of the API server
// (*apierrors.StatusError). A write is a transformation of one content into another; it is remembered by content, patch, manager
// and force, so that what one cluster was told costs the next one a look-up.
//
// # Invariants
//
//   - Every write has a resource version of its own, one more than the last of the cluster.
//   - A watch gives every change after its resource version in order, or an expiry.
//   - Nothing here has a goroutine of its own but the World's timer, which World.Run owns.
//
// It may import sim/content, sim/schema, k8s.io/apimachinery, k8s.io/api and JSON patches.
package state
