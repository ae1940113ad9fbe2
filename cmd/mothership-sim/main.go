// Command mothership-sim simulates any number of Kubernetes clusters behind one listener, for tests and benchmarks of fleets.
//
// It joins package sim to a process: flags, signals, exit codes; its other subcommands speak to a running simulator's
// administration. It may import sim and its packages.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := root().ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}
