package source

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// gate bounds how many fetches go to one host at the same time: a fleet that wakes up must not be an attack.
type gate struct {
	width int

	mu    sync.Mutex
	lanes map[string]*lane // hosts that somebody uses or waits for
}

// lane is one host; users is guarded by gate.mu.
type lane struct {
	slots chan struct{}
	users int
}

func newGate(width int) *gate { return &gate{width: width, lanes: map[string]*lane{}} }

// enter waits for a place and returns how to leave it.
func (g *gate) enter(ctx context.Context, host string) (leave func(), err error) {
	l := g.join(host)
	select {
	case l.slots <- struct{}{}:
		return func() { <-l.slots; g.quit(host, l) }, nil
	case <-ctx.Done():
		g.quit(host, l)
		return nil, g.waited(context.Cause(ctx))
	}
}

// waited is the error of who gave up, or had to.
func (g *gate) waited(cause error) error {
	e := &Error{Reason: ErrUnavailable, Problem: fmt.Sprintf("waited too long for the %d other fetches from this host", g.width)}
	if !errors.Is(cause, errTimeout) {
		e.Err = cause
	}
	return e
}

func (g *gate) join(host string) *lane {
	g.mu.Lock()
	defer g.mu.Unlock()
	l, ok := g.lanes[host]
	if !ok {
		l = &lane{slots: make(chan struct{}, g.width)}
		g.lanes[host] = l
	}
	l.users++
	return l
}

func (g *gate) quit(host string, l *lane) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(g.lanes, host)
	}
}
