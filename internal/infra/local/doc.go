// Package local runs a real Kubernetes API server on this machine: etcd, kube-apiserver and, where asked for,
// kube-controller-manager as child processes, and a simulation of the machines (package node). Tests, the demo and
// benchmarks use it, and runtimes of the local provider are such servers.
//
// # Overview
//
// Start returns a Server that is ready; Close ends it. One Etcd may be shared by many servers, a key prefix each. The
// executables come from the folder that Assets names; nothing is downloaded here.
//
// A start takes 2.2 s, with or without controllers, on two cores that others use too (BenchmarkStart, 2026-11-21), of
// which 1.3 s are the API server's own once-a-second look at its roles; a Close 0.1 s when the state is temporary and
// 1.2 s otherwise. Resident are 290 MiB of kube-apiserver, 95 MiB of etcd and 105 MiB of kube-controller-manager, of which
// 90, 68 and 80 MiB are pages of the one executable, which all servers of a machine share.
//
// Of the rest, kube-apiserver has 185 MiB when it is ready and 270 to 290 MiB after 7,200 writes; Frugal makes that 152 and
// 201 to 217 MiB, and takes a fifth more of its CPU time, while the same load takes as long (BenchmarkMemory, 2026-11-21, two
// cores that others use too). What does not help was left out, measured once each: small watch caches (188 MiB when ready),
// none (169, but 195 after 600 writes, and lists would come from etcd), no priority and fairness with few requests in flight
// (187), no beta APIs (191), one processor (196). A memory limit of 120 MiB does help, and keeps a core busy collecting garbage.
//
// # Usage
//
//	srv, err := local.Start(ctx, local.Options{Controllers: local.DefaultControllers})
//	if err != nil {
//		return err
//	}
//	defer srv.Close()
//	client, err := kubernetes.NewForConfig(srv.Config())
//
// Deleting a namespace takes what it takes everywhere: the namespace controller begins after 5 s, and looks again after
// half of the longest grace period of the pods that it deleted.
//
// # Invariants
//
//   - A child does not outlive its parent, however that ends: on Linux the kernel kills it (PR_SET_PDEATHSIG, see prctl(2))
//     when the thread that started it ends, and that thread is kept for as long as the child lives. What another system
//     leaves running must be ended by hand.
//   - A state folder has one user: it is locked. Whoever holds the lock may kill what the pid files name, if the
//     process's start time says that it is still the same. Temporary folders of killed parents go at the next start.
//   - The API server is stopped before its etcd: without, it does not end for a long time.
//   - Everything is verified and private: serving certificates of an authority of the server's own, on loopback only;
//     etcd on a socket in a folder that only its owner can open; no secret in an argument, in the environment or in
//     an error. Children get none of the parent's environment.
//   - Every wait is bounded: by the context, by two minutes for a start, by 15 s for the end of a child.
//
// # Trade-offs
//
// State in a folder of the caller's is synced to disk, temporary state is not. There is no front proxy, so aggregated
// APIs can be registered but not served; and no kubernetes Service with endpoints, since no pod would ever call it.
//
// The package imports client-go, x/sys and the package node only.
package local
