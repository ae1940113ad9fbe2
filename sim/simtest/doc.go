// Package simtest is the conformance suite of the simulator: conversations with a Kubernetes API server whose answers are known.
//
// Each scenario is a table of raw requests with the code that is expected of each. Run holds them with any server and returns its
// answers with everything normalised that differs from server to server: UIDs, versions, times, addresses, and what controllers
// write when they please (the status of workloads and definitions, their entries in managed fields, the finalizer of
// definitions). What is left of two servers' answers is compared, value by value. The suite passes on the simulator and on a real kube-apiserver, and the answers are equal.
//
// It may import k8s.io/apimachinery, client-go's rest package and the standard library.
package simtest
