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

// object is one of the template.
type object struct {
	path string
	json unstructured.Unstructured
}

// patch is a request of the loop.
type patch struct {
	path string
	body []byte
}

// objectsOf reads the objects of a module from the template.
func (b *bench) objectsOf(ctx context.Context, module string) ([]object, error) {
	cfg, err := b.sim.config(ctx, template)
	if err != nil {
		return nil, err
	}
	c := clientOf(cfg)
	defer c.CloseIdleConnections()
	core := "/api/v1/namespaces/" + target
	paths := []string{
		core + "/configmaps/" + module, core + "/secrets/" + module, core + "/serviceaccounts/" + module, core + "/services/" + module,
		"/apis/rbac.authorization.k8s.io/v1/namespaces/" + target + "/roles/" + module,
	}
	for i := range b.o.objects - fewestObjects {
		paths = append(paths, fmt.Sprintf("%s/configmaps/%s-%d", core, module, i))
	}
	out := make([]object, len(paths))
	for i, path := range paths {
		data, err := request(ctx, c, cfg, http.MethodGet, path, nil)
		if err != nil {
			return nil, err
		}
		out[i].path = path
		if err := json.Unmarshal(data, &out[i].json); err != nil {
			return nil, fmt.Errorf("reading an object: %w", err)
		}
	}
	return out, nil
}

// body is the object as it is applied, with another release unless that is empty.
func (o object) body(release string) ([]byte, error) {
	obj := o.json.DeepCopy()
	for _, field := range []string{"uid", "resourceVersion", "managedFields", "creationTimestamp", "generation", "ownerReferences"} {
		unstructured.RemoveNestedField(obj.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(obj.Object, "status")
	if release != "" {
		annotations := obj.GetAnnotations()
		annotations["release"] = release
		obj.SetAnnotations(annotations)
	}
	return json.Marshal(obj.Object)
}

// patches are those of a release.
func patches(objects []object, release string) ([]patch, error) {
	out := make([]patch, len(objects))
	for i, o := range objects {
		body, err := o.body(release)
		if err != nil {
			return nil, fmt.Errorf("making a patch: %w", err)
		}
		out[i] = patch{o.path, body}
	}
	return out, nil
}

// prepareLoop clones clusters for the loop, and reads what it shall apply: the last module's objects.
func (b *bench) prepareLoop(ctx context.Context) ([]object, error) {
	if err := b.sim.add(ctx, sim.AddRequest{Prefix: barePrefix, Count: b.fleet, From: template}); err != nil {
		return nil, err
	}
	return b.objectsOf(ctx, moduleName(b.o.modules-1))
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
