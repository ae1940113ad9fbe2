// Package mothership installs, verifies, repairs, upgrades and removes modules (Helm charts, kustomizations, plain
// manifests) on Kubernetes clusters: as a library, without any control plane.
//
// # Overview
//
// An Installer holds what many clusters share: caches of sources and rendered bundles, compiled health rules, and the memory
// of who fights for which field. Its methods take a rest.Config and a Module and work on one cluster:
//
//	Install    make the cluster what the module says: create, update, repair, prune
//	Diff       what Install would change, object by object and field by field
//	Verify     what somebody changed since, by one list per kind
//	Uninstall  remove all of it, in the order that lets controllers clean up
//	Render     the objects, without a cluster
//
// # Map
//
// The pipeline behind it, in the order in which a module passes through:
//
//	api/v1beta2        the words: a module's template, names of labels and annotations
//	internal/source    a place → a verified tree of files
//	internal/render    a tree and values → a bundle: Helm's engine, kustomize, plain YAML; in a child process if untrusted
//	internal/bundle    the objects in stages, serialised once
//	internal/apply     a bundle → a cluster: inventory, server-side apply, drift, pruning, readiness, removal
//	internal/remote    the one connection to a cluster; internal/cluster is the contract between the two
//	internal/module    the built-in component reconciler, where they meet
//	reconciler         the contract for component reconcilers of others
//
// # Invariants
//
// Nothing is applied of a module that does not render completely. Nothing is pruned before everything was applied. An
// object that exists and is not the module's is refused, unless Module.Template.Adopt says otherwise. A compliant cluster is
// never written to. The package prints nothing, keeps no global state, and is safe for concurrent use on many clusters.
package mothership
