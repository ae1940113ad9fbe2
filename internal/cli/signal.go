package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Interruptible is the context of a run: the first SIGINT or SIGTERM ends it, so that the run can say what was under way;
// the second ends the process at once, as it would without this function. Call stop when the run is over.
func Interruptible() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case s := <-signals:
			signal.Stop(signals)
			number, _ := s.(syscall.Signal)
			cancel(&interruption{signal: number})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
		<-done
	}
}
