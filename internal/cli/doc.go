// Package cli is the command line: it turns arguments into calls of the root package, and results into text.
//
// # Overview
//
//	Run             arguments → one call of the library → text, and an exit code
//	Interruptible   the context that Ctrl-C and SIGTERM end
//	IsRenderChild   says whether the process is a child that only renders
//
// Data goes to stdout: tables, or with -o json|yaml the library's own types. What is for people only goes to stderr:
// progress, warnings, "error: …" and "hint: …". Progress is redrawn where stderr is a terminal; elsewhere it is a line now
// and then. Nothing that comes from a cluster or a source reaches a terminal with control characters in it.
//
// The package may import the root package, the api module, internal/remote (to read kubeconfigs), internal/render (to merge
// values), cobra, golang.org/x/term and sigs.k8s.io/yaml. It keeps no state between calls of Run.
package cli
