// Package module is the built-in component reconciler: it installs, repairs, upgrades and removes a module on one runtime.
//
// It is where source, render, apply and remote meet, and it reads as the words of the design: render → apply → prune →
// ready → report. Reconcile is one pass for a control loop; a Session is the same pass step by step, for the library and the
// command line. InputDigest says without a runtime whether there is anything to do; Verify compares all modules of a runtime at
// once. The package may import everything below it; only the root package and the control plane import it.
package module
