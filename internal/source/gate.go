package source

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"golang.org/x/time/rate"
)

// gate bounds how many fetches go to one host at the same time, and how many begin in a second: a fleet that wakes up must not be
// an attack.
type gate struct {
	width int
	rate  rate.Limit

	mu    sync.Mutex
	lanes map[string]*lane // hosts that somebody uses or waits for, or has asked too often lately
}

// lane is one host; users is guarded by gate.mu.
type lane struct {
	slots chan struct{}
	pace  *rate.Limiter
	users int
}

// newGate makes a gate; a rate of 0 is none.
func newGate(width int, perSecond float64) *gate {
	limit := rate.Limit(perSecond)
	if perSecond <= 0 {
		limit = rate.Inf
	}
	return &gate{width: width, rate: limit, lanes: map[string]*lane{}}
}

// burst is how many may begin at once.
func (g *gate) burst() int { return int(math.Ceil(min(float64(g.rate)*10, 1000))) }

// enter waits for a place and returns how to leave it.
func (g *gate) enter(ctx context.Context, host string) (leave func(), err error) {
	l := g.join(host)
	select {
	case l.slots <- struct{}{}:
		leave = func() { <-l.slots; g.quit(host, l) }
		if l.pace.Wait(ctx) != nil {
			leave()
			return nil, &Error{Reason: ErrUnavailable, Problem: "waited too long for its turn: this host is asked too often"}
		}
		return leave, nil
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
		g.tidy()
		l = &lane{slots: make(chan struct{}, g.width), pace: rate.NewLimiter(g.rate, g.burst())}
		g.lanes[host] = l
	}
	l.users++
	return l
}

func (g *gate) quit(host string, l *lane) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if l.users--; l.users == 0 && g.rested(l) {
		delete(g.lanes, host)
	}
}

// rested says whether a lane is as good as a new one.
func (g *gate) rested(l *lane) bool {
	return g.rate == rate.Inf || l.pace.Tokens() >= float64(g.burst())
}

// tidy drops the lanes that nobody needs any more. The caller holds g.mu.
func (g *gate) tidy() {
	for host, l := range g.lanes {
		if l.users == 0 && g.rested(l) {
			delete(g.lanes, host)
		}
	}
}
