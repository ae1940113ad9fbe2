package remote

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
)

// Client is the access to one runtime. It is safe for concurrent use.
type Client struct {
	gate    *gate
	retries int
	mapping *mapping
	// as is the user that requests are made as in place of the configuration's own; empty: nobody else.
	as string

	backoff  func(attempt int) time.Duration
	watchFor func() time.Duration
	pause    func(context.Context, time.Duration) error
}

// New makes a client of the runtime that cfg leads to. No request is made. cfg is copied; its own limits and timeout are
// replaced by those of the options.
func New(cfg *rest.Config, o Options) (*Client, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	gen, err := newGeneration(cfg, o.UserAgent)
	if err != nil {
		return nil, err
	}
	return &Client{
		gate: &gate{
			limiter:   rate.NewLimiter(rate.Limit(o.QPS), o.Burst),
			slots:     make(chan struct{}, o.MaxInFlight),
			timeout:   o.Timeout,
			userAgent: o.UserAgent,
			pause:     pause,
			admit:     o.Admit,
			ask:       o.Ask,
			contact:   min(o.Contact, o.Timeout),
			current:   gen,
		},
		retries: o.Retries,
		mapping: newMapping(),
		backoff: backoff, watchFor: watchFor, pause: pause,
	}, nil
}

// Swap gives the client other credentials or another address. Requests under way finish on the old transport, whose idle
// connections are closed. What was discovered is forgotten, what was declared stays. On an error nothing changes.
func (c *Client) Swap(cfg *rest.Config) error {
	gen, err := newGeneration(cfg, c.gate.userAgent)
	if err != nil {
		return err
	}
	c.gate.swap(gen)
	c.mapping.reset()
	return nil
}

// Close closes idle connections, and those in use when they fall idle. It may be called more than once. A closed client
// still works; it keeps no connection between calls.
func (c *Client) Close() { c.gate.close() }

// Stats is the number of HTTP requests since New.
func (c *Client) Stats() Stats { return c.gate.counter.read() }

// ServerVersion reads the server's version (GET /version). Errors are *Error.
func (c *Client) ServerVersion(ctx context.Context) (*version.Info, error) {
	q := &request{verb: VerbVersion, target: "the server's version", method: http.MethodGet, path: "/version", idempotent: true}
	var info version.Info
	if err := c.call(ctx, q, decodeInto(&info)); err != nil {
		return nil, err
	}
	return &info, nil
}

const (
	firstBackoff = 100 * time.Millisecond
	lastBackoff  = 10 * time.Second
)

// backoff before attempt n+2: exponential from 100 ms, with jitter between half and all of it.
func backoff(n int) time.Duration {
	d := min(firstBackoff<<min(n, 10), lastBackoff)
	return d/2 + rand.N(d/2+1)
}
