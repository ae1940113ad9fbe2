// Package provider makes each cluster of the provider "local" a real Kubernetes API server on this machine, with controllers
// and simulated nodes (package local), for trying a fleet out without a cloud.
//
// # Overview
//
// All clusters keep their keys in one etcd, which the control plane's own API server uses too, each below /runtimes/<uid>, and
// the rest (certificates, port, logs) in <Dir>/<uid>. Each has a goroutine that starts it, at most two at a time, and starts it
// again whenever it ends, after 1 s, 2 s, 4 s and so on up to 30 s; a cluster that stayed up for a minute begins at 1 s again.
//
//	              ┌────────────── pause ◄─────────────┐
//	              ▼                                   │ failed, died
//	Ensure ─► queued ─► starting ─────────────────► running
//	              │         │          Delete         │
//	              └─────────┴──────► removing ◄───────┘
//	                                    │
//	                                    ▼
//	                                 removed ── Delete: gone
//
// # Usage
//
//	p, err := provider.New(provider.Options{Dir: dir, Etcd: etcd})
//	...
//	defer p.Close(ctx) // before etcd.Close
//	state, err := p.Ensure(ctx, cluster)
//
// # Invariants
//
//   - A cluster is its UID. A new Runtime with an old name gets an empty cluster; the one that had the name is stopped, and its
//     data stays until Delete is called with its UID.
//   - Nothing but Dir and etcd has to be remembered: after a restart, Ensure goes on with the same data, authority, token and
//     port, so kubeconfigs stay good. Only when another program has taken the port there is a new kubeconfig, and a new version.
//   - Gone means that the keys and the folder are gone. They go in this order, so that a removal that was cut short begins again.
//   - A child process does not outlive Close, nor this process (see package local).
//   - What is written to logs and states has no log lines of children in it, but says where their logs are.
//
// # Trade-offs
//
// A cluster whose API server hangs counts as running: whoever works on it notices. When etcd ends, every cluster does, and
// none comes back: whoever owns etcd has to end everything.
//
// The package imports the API types, the contract infra, the package local and logr only.
package provider
