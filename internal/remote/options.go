package remote

import (
	"context"
	"fmt"
	"time"
)

// Options of New. The zero value works.
type Options struct {
	// QPS is the client-side limit of requests per second, retries included. Default 500.
	QPS float64
	// Burst is how many requests may start at once before QPS applies. Default 1000.
	Burst int
	// MaxInFlight is how many requests may be under way at the same time. Default 16.
	MaxInFlight int
	// Timeout is the deadline of one HTTP request, from sending it to the last byte of its answer. Waiting for limits
	// and between retries does not count. Default 30 s.
	Timeout time.Duration
	// Contact is the deadline of requests to a server that has not answered for half a minute; one that passes it is not
	// repeated. Default: Timeout.
	Contact time.Duration
	// Retries is how often a call is repeated at most after transient failures. Default 4; negative: never.
	Retries int
	// UserAgent names the client to the server. Default "mothership".
	UserAgent string
	// Admit is asked right before each request is sent; an error of it ends the call as the end of the caller's context does.
	// Default: every request is sent.
	Admit func() error
	// Ask is told of each time that a call waits for the server or for its turn; it is told the end of it by answered, with
	// whether the server answered something that shows it works (not 401, 429 or 5xx). ahead says that the request was sent before,
	// so that how long it takes says nothing about the way to the server. answered may be called more than once: the first call counts.
	// Default: nobody is told.
	Ask func(ctx context.Context, ahead bool) (answered func(ok bool))
}

// Validate says what is wrong with the options.
func (o Options) Validate() error {
	switch {
	case o.QPS < 0:
		return fmt.Errorf("QPS is %v: it must be positive, or 0 for the default", o.QPS)
	case o.Burst < 0:
		return fmt.Errorf("burst is %d: it must be positive, or 0 for the default", o.Burst)
	case o.MaxInFlight < 0:
		return fmt.Errorf("MaxInFlight is %d: it must be positive, or 0 for the default", o.MaxInFlight)
	case o.Contact < 0:
		return fmt.Errorf("contact timeout is %s: it must be positive, or 0 for the default", o.Contact)
	case o.Timeout < 0:
		return fmt.Errorf("timeout is %s: it must be positive, or 0 for the default", o.Timeout)
	case o.Retries > maxRetries:
		return fmt.Errorf("retries is %d: at most %d are sensible", o.Retries, maxRetries)
	}
	return nil
}

// maxRetries bounds Options.Retries: beyond it, a circuit breaker's patience is needed, not a call's.
const maxRetries = 20

func (o Options) withDefaults() Options {
	setDefault(&o.QPS, 500)
	setDefault(&o.Burst, 1000)
	setDefault(&o.MaxInFlight, 16)
	setDefault(&o.Timeout, 30*time.Second)
	setDefault(&o.Contact, o.Timeout)
	setDefault(&o.Retries, 4)
	setDefault(&o.UserAgent, "mothership")
	if o.Ask == nil {
		o.Ask = func(context.Context, bool) func(bool) { return func(bool) {} }
	}
	if o.Admit == nil {
		o.Admit = func() error { return nil }
	}
	o.Retries = max(o.Retries, 0)
	return o
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
