package contestant

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/kyma-project/mothership/bench/internal/workload"
)

// The bare loop does as internal/apply does: as many requests at once, and these times between two looks at a definition,
// growing by half. Change them together.
const (
	loopParallel = 8
	firstLook    = 10 * time.Millisecond
	quickLook    = 40 * time.Millisecond
	quickLooks   = 50
	lastLook     = 500 * time.Millisecond
	maxLooks     = 240
	loopTimeout  = 30 * time.Second
)

var (
	errStatus    = errors.New("unexpected status")
	errNotServed = errors.New("it is not served in time")
)

// loop is the least that applying objects can be: it renders nothing, keeps no inventory, compares nothing.
type loop struct {
	client *http.Client
	host   string
}

// applyInLoop sends the objects by server-side apply, stage by stage, and waits for what is defined as the library does:
// while cluster-wide objects and built-in kinds are applied, and before those after them.
func applyInLoop(ctx context.Context, cfg *rest.Config, objects []workload.Object) error {
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	defer client.CloseIdleConnections()
	client.Timeout = loopTimeout
	l := &loop{client: client, host: cfg.Host}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var served errgroup.Group
	for len(objects) > 0 {
		n := 0
		for n < len(objects) && objects[n].Stage == objects[0].Stage {
			n++
		}
		stage := objects[:n]
		if !early[stage[0].Stage] {
			if err := served.Wait(); err != nil {
				return err
			}
		}
		if err := l.stage(ctx, stage); err != nil {
			cancel()
			return errors.Join(err, served.Wait())
		}
		served.Go(func() error { return l.waitServed(ctx, stage) })
		objects = objects[n:]
	}
	return served.Wait()
}

// early are the stages that are applied before what is defined is served.
var early = map[string]bool{"namespace": true, "definitions": true, "cluster": true, "built-in": true}

func (l *loop) stage(ctx context.Context, objects []workload.Object) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(loopParallel)
	for _, o := range objects {
		g.Go(func() error { return l.apply(ctx, o) })
	}
	return g.Wait()
}

func (l *loop) waitServed(ctx context.Context, objects []workload.Object) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(loopParallel)
	for _, o := range objects {
		for _, path := range o.Serves {
			g.Go(func() error { return l.untilServed(ctx, path) })
		}
	}
	return g.Wait()
}

func (l *loop) apply(ctx context.Context, o workload.Object) error {
	code, _, err := l.do(ctx, http.MethodPatch, o.Path+"?fieldManager=bench&force=true", o.Body)
	if err == nil && code != http.StatusOK && code != http.StatusCreated {
		err = fmt.Errorf("applying %s: %w %d", o.Path, errStatus, code)
	}
	return err
}

// untilServed reads the discovery of a resource's group and version until the resource is in it.
func (l *loop) untilServed(ctx context.Context, resource string) error {
	path, name := resource[:strings.LastIndexByte(resource, '/')], resource[strings.LastIndexByte(resource, '/')+1:]
	delay := firstLook
	for looks := range maxLooks {
		code, answer, err := l.do(ctx, http.MethodGet, path, nil)
		if err != nil || (code == http.StatusOK && bytes.Contains(answer, []byte(`"name":"`+name+`"`))) {
			return err
		}
		if code != http.StatusNotFound && code != http.StatusOK {
			return fmt.Errorf("looking for %s: %w %d", path, errStatus, code)
		}
		t := time.NewTimer(delay)
		select {
		case <-ctx.Done():
			t.Stop()
			return context.Cause(ctx)
		case <-t.C:
		}
		most := lastLook
		if looks < quickLooks {
			most = quickLook
		}
		delay = min(delay+delay/2, most)
	}
	return fmt.Errorf("waiting for %s: %w", path, errNotServed)
}

// do makes a request, with the answers in the form that the library asks for, and returns the status and the answer.
func (l *loop) do(ctx context.Context, method, path string, body []byte) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, l.host+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Accept", "application/json")
	if method != http.MethodGet {
		req.Header.Set("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
	}
	req.Header.Set("Accept-Encoding", "identity")
	req.Header.Set("Content-Type", "application/apply-patch+yaml")
	resp, err := l.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	answer, err := io.ReadAll(resp.Body)
	return resp.StatusCode, answer, errors.Join(err, resp.Body.Close())
}
