// Package apply makes the objects in one runtime what a bundle says, and keeps account of them.
//
// # Overview
//
// A module's objects are an ApplySet as kubectl defines it (KEP-3659): a parent ConfigMap in mothership-system names the
// kinds and namespaces in use, each member carries the set's label. Work on a set goes in steps that the module
// reconciler calls one after the other:
//
//	Open      read the parent, refuse sets of others                                 1 request
//	Observe   list each kind in use, compare, decide an action per object            1 request per kind
//	Apply     write a superset of the parent, apply what differs, stage by stage     1 per object that differs
//	Prune     delete members that the bundle no longer has
//	Finish    write the exact parent with the digests
//	Ready     look once at the objects whose kinds have a status
//	Remove    delete the set in the order that lets controllers clean up
//	Diff      what Apply and Prune would change, by server-side dry-run
//
// Applier.Verify compares all sets of a runtime at once, by one list per kind in use. A Baseline is what a set's objects look like
// while nothing drifts, for judging what a watch reports one by one.
//
// # Invariants
//
// Server-side apply under one field manager, forced; the bundle's bytes are sent as they are, except for fields that
// are yielded to another manager. An object is undrifted if its annotation carries the digest of the bundle's bytes, it is
// not being deleted, and our Apply entry in managedFields covers every leaf of the bytes. Nothing is kept per object between runs.
// Pruning needs the set's label, our Apply entry and no controller owner, deletes by UID, and never happens unless
// the whole bundle was applied. An object that exists and is not of this set is refused, unless adopted. A checkpoint may stop
// the work before the first write, between stages and before pruning: the parent is a superset then, so that whoever goes on
// finds all that is there.
//
// # Imports
//
// The package may import the api module, internal/bundle, internal/cluster, internal/kind, apimachinery, kstatus and CEL. It knows
// nothing of sources, rendering or of how runtimes are reached.
package apply
