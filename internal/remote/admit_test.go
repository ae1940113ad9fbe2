package remote

import (
	"errors"
	"sync/atomic"
	"testing"
)

// A request that is not admitted is not sent, ends the call at once, and takes nothing from those that are.
func TestAdmit(t *testing.T) {
	t.Parallel()
	var refuses atomic.Bool
	var asked atomic.Int32
	o := Options{MaxInFlight: 1, Admit: func() error {
		asked.Add(1)
		if refuses.Load() {
			return errStopped
		}
		return nil
	}}
	c := faulty(t, o, says(200, pod))
	if err := c.Get(t.Context(), pods, "n", "p", nil); err != nil {
		t.Fatal(err)
	}
	refuses.Store(true)
	for range 3 {
		err := c.Get(t.Context(), pods, "n", "p", nil)
		var e *Error
		if !errors.As(err, &e) || e.Reason != ReasonInterrupted || !errors.Is(err, errStopped) || IsTransient(err) {
			t.Errorf("error = %v, want that of Admit", err)
		}
	}
	if n := c.Stats().Total(); n != 1 || asked.Load() != 4 {
		t.Errorf("%d requests were sent, and it was asked %d times", n, asked.Load())
	}
	refuses.Store(false)
	if err := c.Get(t.Context(), pods, "n", "p", nil); err != nil {
		t.Errorf("after it was admitted again: %v", err)
	}
}
