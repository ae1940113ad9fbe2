package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/kyma-project/mothership/bench/internal/measure"
	"github.com/kyma-project/mothership/sim"
)

const (
	// barePrefix is of clusters that the product does not know: the loop's.
	barePrefix = "bare-"
	// loopRuntimes is how many runtimes the loop is at, at the same time: as many as the product has workers.
	loopRuntimes = 32
)

// patch is a request of the loop.
type patch struct {
	path string
	body []byte
}

// prepareLoop clones clusters for the loop, and reads what it shall apply: the last module's objects with another release.
func (b *bench) prepareLoop(ctx context.Context) ([]patch, error) {
	if err := b.sim.add(ctx, sim.AddRequest{Prefix: barePrefix, Count: b.fleet, From: template}); err != nil {
		return nil, err
	}
	cfg, err := b.sim.config(ctx, template)
	if err != nil {
		return nil, err
	}
	c := clientOf(cfg)
	defer c.CloseIdleConnections()
	core, module := "/api/v1/namespaces/"+target, moduleName(b.o.modules-1)
	paths := []string{
		core + "/configmaps/" + module, core + "/secrets/" + module, core + "/serviceaccounts/" + module, core + "/services/" + module,
		"/apis/rbac.authorization.k8s.io/v1/namespaces/" + target + "/roles/" + module,
	}
	for i := range b.o.objects - fewestObjects {
		paths = append(paths, fmt.Sprintf("%s/configmaps/%s-%d", core, module, i))
	}
	var out []patch
	for _, path := range paths {
		data, err := request(ctx, c, cfg, http.MethodGet, path, nil)
		if err != nil {
			return nil, err
		}
		body, err := applied(data)
		if err != nil {
			return nil, err
		}
		out = append(out, patch{path, body})
	}
	return out, nil
}

// applied makes of an object that is there one to apply.
func applied(data []byte) ([]byte, error) {
	var obj unstructured.Unstructured
	if err := json.Unmarshal(data, &obj); err != nil {
		return nil, fmt.Errorf("reading an object: %w", err)
	}
	for _, field := range []string{"uid", "resourceVersion", "managedFields", "creationTimestamp", "generation", "ownerReferences"} {
		unstructured.RemoveNestedField(obj.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(obj.Object, "status")
	annotations := obj.GetAnnotations()
	annotations["release"] = second
	obj.SetAnnotations(annotations)
	return json.Marshal(obj.Object)
}

// loop applies the patches on all of the loop's clusters, each over a connection of its own.
func (b *bench) loop(ctx context.Context, patches []patch) (Applied, error) {
	configs := make([]*rest.Config, b.fleet)
	for i := range configs {
		var err error
		if configs[i], err = b.sim.config(ctx, fmt.Sprintf("%s%d", barePrefix, i)); err != nil {
			return Applied{}, err
		}
	}
	begun, before := time.Now(), measure.CPUTime()
	group, applying := errgroup.WithContext(ctx)
	group.SetLimit(loopRuntimes)
	for _, cfg := range configs {
		group.Go(func() error { return applyAll(applying, cfg, patches) })
	}
	if err := group.Wait(); err != nil {
		return Applied{}, fmt.Errorf("the bare loop: %w", err)
	}
	return Applied{Objects: b.fleet * len(patches), Seconds: time.Since(begun).Seconds(), CPU: (measure.CPUTime() - before).Seconds()}, nil
}

func applyAll(ctx context.Context, cfg *rest.Config, patches []patch) error {
	c := clientOf(cfg)
	defer c.CloseIdleConnections()
	for _, p := range patches {
		if _, err := request(ctx, c, cfg, http.MethodPatch, p.path+"?fieldManager=mothership&force=true", p.body); err != nil {
			return err
		}
	}
	return nil
}

var errStatus = errors.New("unexpected status")

// request asks a cluster.
func request(ctx context.Context, c *http.Client, cfg *rest.Config, method, path string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, cfg.Host+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+cfg.BearerToken)
	req.Header.Set("Accept", "application/json")
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/apply-patch+yaml")
	}
	resp, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %w %s", method, path, errStatus, resp.Status)
	}
	return data, err
}
