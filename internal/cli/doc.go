// Package cli is the command line: it turns arguments into calls of the root package or of a control plane's API, and results into
// text.
//
// # Overview
//
//	Run             arguments → one call of the library, or some of a control plane's API → text, and an exit code
//	Interruptible   the context that Ctrl-C and SIGTERM end
//	IsRenderChild   says whether the process is a child that only renders
//
// Data goes to stdout: tables, or with -o json|yaml the library's own types. What is for people only goes to stderr:
// progress, warnings, "error: …" and "hint: …". Progress is redrawn where stderr is a terminal; elsewhere it is a line now
// and then. Nothing that comes from a cluster or a source reaches a terminal with control characters in it.
//
// There are three kinds of commands: those that work on one cluster call the root package (install.go, compare.go …); up, down and
// controller run package controlplane (up.go, serve.go); all others speak to a control plane's API and nothing else (fleet.go), but
// for explain, which asks its HTTP address too, and diff, which compares with the runtime itself.
//
// The package may import the root package, controlplane, the api module, internal/access (where kubeconfigs are), internal/catalog,
// its artifact and lint, internal/fleetview, internal/remote (to read kubeconfigs), internal/render (to merge values), internal/source
// (for mirrors), internal/statedir, internal/values, client-go, controller-runtime's client, ORAS (docker's configuration), cobra, zap,
// golang.org/x/term and sigs.k8s.io/yaml. It keeps no state between calls of
// Run, except that up and controller set the loggers of Kubernetes' libraries.
package cli
