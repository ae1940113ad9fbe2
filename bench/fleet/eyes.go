package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
)

// eyes watch runtimes. Texts are stamped as they arrive.
type eyes struct {
	client  *http.Client
	cancel  context.CancelFunc
	closing atomic.Bool
	wait    sync.WaitGroup

	mu   sync.Mutex
	seen map[string]time.Time
	err  error
}

// open watches the ConfigMap of the first module in each of the runtimes until close is called. All watches share connections.
func (b *bench) open(ctx context.Context, runtimes []int) (*eyes, error) {
	cfg, err := b.sim.config(ctx, template)
	if err != nil {
		return nil, err
	}
	e := &eyes{client: clientOf(cfg), seen: map[string]time.Time{}}
	watching, cancel := context.WithCancel(ctx)
	e.cancel = cancel
	var group errgroup.Group
	group.SetLimit(creators)
	for _, i := range runtimes {
		group.Go(func() error { return e.add(watching, b.sim, runtimeName(i)) })
	}
	if err := group.Wait(); err != nil {
		e.close()
		return nil, fmt.Errorf("watching runtimes: %w", err)
	}
	return e, nil
}

// clientOf is a client of any cluster of the simulator, which knows them by path.
func clientOf(cfg *rest.Config) *http.Client {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cfg.CAData)
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: cfg.ServerName, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
	}}
}

// add watches one runtime until ctx ends.
func (e *eyes) add(ctx context.Context, s simulator, name string) error {
	cfg, err := s.config(ctx, name)
	if err != nil {
		return err
	}
	url := cfg.Host + "/api/v1/namespaces/" + target + "/configmaps?watch=true&fieldSelector=metadata.name%3D" + moduleName(0)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+cfg.BearerToken)
	resp, err := e.client.Do(req) //nolint:bodyclose // look closes it
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return errors.Join(fmt.Errorf("watching %s: %s", name, resp.Status), resp.Body.Close())
	}
	e.wait.Go(func() { e.look(resp.Body) })
	return nil
}

// look ends with the watch.
func (e *eyes) look(body io.ReadCloser) {
	defer body.Close()
	decoder := json.NewDecoder(body)
	for {
		var event struct {
			Object struct {
				Data map[string]string `json:"data"`
			} `json:"object"`
		}
		err := decoder.Decode(&event)
		now := time.Now()
		e.mu.Lock()
		if text := event.Object.Data["text"]; err == nil && e.seen[text].IsZero() {
			e.seen[text] = now
		}
		if err != nil && !e.closing.Load() {
			e.err = errors.Join(e.err, fmt.Errorf("a watch ended: %w", err))
		}
		e.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (e *eyes) at(text string) (time.Time, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	at, ok := e.seen[text]
	return at, ok
}

func (e *eyes) failed() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}

func (e *eyes) close() {
	e.closing.Store(true)
	e.cancel()
	e.wait.Wait()
	e.client.CloseIdleConnections()
}
