// Package content keeps what objects say once for all clusters that have it.
//
// # Overview
//
// A Content is an object without what makes it one of its kind: UID, resourceVersion, creationTimestamp and generation are an
// Identity, kept by the cluster that has the object. Contents are immutable and interned: two objects that say the same, in
// whatever clusters, are one Content. It is kept as JSON in two parts, so that the whole object and its metadata-only form are
// the same bytes with an Identity between them, and its metadata as protobuf once somebody asked for that; the decoded tree is made when somebody asks, and kept only while it is used.
//
// # Invariants
//
//   - Equal contents are equal pointers, as long as one of them is in use. Nobody changes a tree that Tree returned.
//   - A content that no cluster and no cache holds is collected, together with its place in the table.
//
// It may import k8s.io/apimachinery and protowire.
package content
