// Package wait waits, for a bounded time.
//
// It may import the standard library only.
package wait

import (
	"context"
	"fmt"
	"time"
)

// Patience is how long something is waited for, and how often it is looked at.
type Patience struct{ Bound, Poll time.Duration }

// Until looks until ok holds. What says what is waited for, in errors.
func (p Patience) Until(ctx context.Context, what string, ok func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, p.Bound)
	defer cancel()
	tick := time.NewTicker(p.Poll)
	defer tick.Stop()
	for {
		done, err := ok(ctx)
		if err != nil {
			return fmt.Errorf("waiting until %s: %w", what, err)
		}
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w", what, ctx.Err())
		case <-tick.C:
		}
	}
}

// For lets time pass.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
