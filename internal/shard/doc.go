// Package shard shares a fleet between replicas: each works on the runtimes whose names hash into the slots that it holds.
//
// # Overview
//
// A fleet has 256 slots; SlotOf says which one a runtime is in. In the control plane's namespace there is a Lease for each
// replica, which it renews to say that it lives, and one more, the table, whose annotation says which replica holds which slot.
// Who should hold a slot follows from who lives, by rendezvous hashing: each replica computes the same, and one that joins,
// leaves or dies moves its own share only. Who does hold it changes by a write of the table that is guarded by its
// resourceVersion, so that of two who want a slot one gets it.
//
//	       the table says so, by our write               the table says others should, our lease is not
//	(not held) ──────────────────────────► held ──────── renewed in time, or the replica leaves ────────► given up
//	    ▲                                                                                                     │
//	    └──────────── freed in the table, once nothing is under way; or others wait until it has lapsed ◄─────┘
//
// A replica costs two requests for each renewal, however many runtimes there are, and one more where slots move.
//
// # Usage
//
// Run blocks until its context ends, and then gives everything up. Owns is asked before each request to a runtime; Guard gives
// work a context that ends when ownership does. Subscribe learns which slots come and go.
//
// # Invariants
//
//   - A slot is used by one replica at a time. A lease does not fence, so time does: a replica takes itself for dead a fifth of the
//     lease's duration before the others can, counted from the moment at which it began to send the last renewal that was
//     accepted. The others wait, from when they saw that renewal, for the duration of the lease and then for as long as a request
//     may take, before they take what it held.
//   - Time is looked at, not waited for: a process that was stopped and goes on knows by the clock, before any timer went off, that
//     it owns nothing. The wall clock counts as well as the monotonic one, which stands still while a machine is suspended.
//   - Durations are those of one clock. No two machines' times are compared.
//   - A replica whose lease was not renewed in time holds nothing afterwards, also if a later renewal is accepted. What the table
//     still says is its own, it takes again by a write of the table.
//   - Each write of the table changes it, also one that moves no slot: else the guard of another's write would not notice it.
//   - A slot is freed for others only when no work is under way, and none was cut short for as long as a request may take: what was
//     cut short may still be on its way.
//
// # Trade-offs
//
// While the control plane's API does not answer, nobody's lease is renewed and no replica works. Without it, nothing could be
// reported either.
//
// The table is one object, so replicas that join at the same time repeat their writes. It is written when membership changes,
// not when the fleet does.
//
// # Imports
//
// The standard library, k8s.io/api, k8s.io/apimachinery and logr.
package shard
