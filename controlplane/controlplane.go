// Package controlplane runs a whole control plane in this process: the controllers over an existing cluster's API, or over an
// embedded one of its own with local runtimes.
//
// # Usage
//
//	cp, err := controlplane.Start(ctx, controlplane.Config{Local: &controlplane.Local{Dir: dir}})
//	if err != nil {
//		return err
//	}
//	defer cp.Close()
//	select {
//	case <-cp.Ready():
//	case err := <-cp.Err():
//		return err
//	}
//
// # Invariants
//
// It stops in the order in which things depend on each other: the engine finishes what it has begun, the status is written, the
// controllers end, then the runtimes' servers, the control plane's own, and etcd. A child process does not outlive this one,
// however it ends. What is on disk is enough to go on: a start after a crash finds everything again.
//
// This is the only package that wires everything; only commands, the demo and benchmarks import it.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
)

// ControlPlane is a running one. It is safe for concurrent use.
type ControlPlane struct {
	cfg    Config
	cancel context.CancelCauseFunc
	ready  chan struct{}
	ended  chan struct{}
	failed chan error // takes one error, and is closed at the end

	mu      sync.Mutex
	host    *host
	address string
	err     error
}

// errClosed is the cause that Close ends everything with.
var errClosed = errors.New("the control plane was closed")

// setLog gives controller-runtime the log of this process's first control plane: it has parts with one log for all, which would go
// to stderr else.
var setLog sync.Once

// Start starts a control plane and returns at once; Ready says when it works. It runs until ctx ends, Close is called, or it fails.
func Start(ctx context.Context, cfg Config) (*ControlPlane, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("starting the control plane: %w", err)
	}
	setLog.Do(func() { ctrl.SetLogger(cfg.withDefaults().Log) })
	ctx, cancel := context.WithCancelCause(ctx)
	cp := &ControlPlane{
		cfg: cfg.withDefaults(), cancel: cancel,
		ready: make(chan struct{}), ended: make(chan struct{}), failed: make(chan error, 1),
	}
	go cp.main(ctx) // ends with ctx, and is waited for by Close
	return cp, nil
}

// main is the life of the control plane.
func (cp *ControlPlane) main(ctx context.Context) {
	defer close(cp.ended)
	defer close(cp.failed)
	defer cp.cancel(nil)
	err := cp.live(ctx)
	if errors.Is(err, errClosed) || (err != nil && ctx.Err() != nil && errors.Is(err, context.Cause(ctx))) {
		err = nil // it was told to end
	}
	cp.mu.Lock()
	cp.err = err
	cp.mu.Unlock()
	if err != nil {
		cp.failed <- err
	}
}

func (cp *ControlPlane) live(ctx context.Context) (err error) {
	h, err := openHost(ctx, cp.cfg)
	if err != nil {
		return fmt.Errorf("starting the control plane: %w", err)
	}
	defer func() { err = errors.Join(err, h.close()) }()
	cp.mu.Lock()
	cp.host = h
	cp.mu.Unlock()
	return cp.operate(ctx, h)
}

// Ready is closed when the API answers and the controllers work.
func (cp *ControlPlane) Ready() <-chan struct{} { return cp.ready }

// Err gives the error that ended the control plane, if one did, and is closed when it has ended.
func (cp *ControlPlane) Err() <-chan error { return cp.failed }

// Close ends the control plane in order and waits for that. It may be called again, and returns what ended it.
func (cp *ControlPlane) Close() error {
	cp.cancel(errClosed)
	<-cp.ended
	cp.mu.Lock()
	defer cp.mu.Unlock()
	return cp.err
}

// Config is the way to the control plane's API, as its administrator; nil before it answers.
func (cp *ControlPlane) Config() *rest.Config {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	if cp.host == nil {
		return nil
	}
	return rest.CopyConfig(cp.host.config)
}

// Address of metrics, health and explanations; empty before Ready, and where there is none.
func (cp *ControlPlane) Address() string {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	return cp.address
}
