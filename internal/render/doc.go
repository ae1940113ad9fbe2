// Package render turns a source's tree of files into a bundle: Helm charts by Helm's own engine, kustomizations by
// kustomize, plain YAML and JSON as they are.
//
// # Overview
//
// Rendering is a pure function of the Request. Helm's .Release is constant, the server's version is reduced to its
// minor, hooks are reported and never run, and template functions that read a cluster, draw randomness, or ask the
// clock, the environment or the network are an error that says what to do. So a module is rendered once for the whole
// fleet, and InputDigest names the result without rendering. A template that must have randomness says so
// (Request.PerRuntime): its randomness is derived from the runtime's identity and a secret.
//
// # Usage
//
// New renders in this process: for trees that the caller trusts. Isolated renders in child processes with a memory
// limit and a kill deadline, because a Go template can neither be cancelled nor bounded; a child renders again as long as
// it answers. ByTrust chooses by the tree. Cached keeps results.
//
// # Invariants
//
//   - All or nothing: malformed input anywhere is an error for the whole module, each problem named by file, document
//     and line.
//   - An empty result is ErrEmpty, never a bundle.
//   - Nothing is fetched while rendering: schemas and plugins are refused before any access, and so are remote bases, but for those
//     that WithBases has put into the tree before, each pinned to what it is.
//   - No content of a Secret and no value of a user is in an error.
//
// # Trade-offs
//
// A chart sees version v1.<minor>.0, whatever the patch level of the runtime is; else every patch level would be
// rendered anew. A chart sees the stable built-in APIs and those declared in the request, not the ones discovered.
// YAML is read as kubectl reads it (YAML 1.1), but strictly: duplicate keys are an error.
//
// The package may import the api module, internal/source (its types), internal/bundle, internal/kind and the
// libraries of Helm and kustomize; it knows nothing of runtimes.
package render
