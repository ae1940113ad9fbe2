// Package local runs a real Kubernetes API server on this machine: etcd, kube-apiserver and, where asked for,
// kube-controller-manager as child processes, on loopback.
package local
