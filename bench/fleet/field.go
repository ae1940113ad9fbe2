package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kyma-project/mothership/bench/internal/contestant"
	"github.com/kyma-project/mothership/bench/internal/measure"
	"github.com/kyma-project/mothership/bench/internal/workload"
	"github.com/kyma-project/mothership/sim"
)

const (
	// fieldPrefix is of clusters that the way of the field is gone on, fieldRuntimes how many there are.
	fieldPrefix   = "field-"
	fieldRuntimes = 100
	// fieldParallel is the default of kustomize-controller's --concurrent.
	fieldParallel = 4
	// fieldTimeout bounds a pass over all of them.
	fieldTimeout = 10 * time.Minute
)

// fieldConfig says what a process that goes the way of the field shall do.
type fieldConfig struct {
	// Kubeconfigs and Objects are files.
	Kubeconfigs []string
	Objects     string
}

// fieldResult is what it prints.
type fieldResult struct {
	// CPU is its user and system time for all, Wall the sum of the times that each cluster took. Seconds.
	CPU, Wall float64
}

// field goes the way of the field on clusters of its own: all objects are applied again. A first pass, by which they become the field's
// too, is not counted.
func (b *bench) field(ctx context.Context) (*Each, error) {
	c, err := b.prepareField(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := passField(ctx, c); err != nil {
		return nil, err
	}
	if _, err := b.sim.requestsBy(ctx, fieldKind, true); err != nil {
		return nil, err
	}
	r, err := passField(ctx, c)
	if err != nil {
		return nil, err
	}
	counts, err := b.sim.requestsBy(ctx, fieldKind, true)
	if err != nil {
		return nil, err
	}
	n := float64(len(c.Kubeconfigs))
	return &Each{Requests: float64(total(counts)) / n, CPU: 1000 * r.CPU / n, Wall: 1000 * r.Wall / n}, nil
}

// prepareField clones the clusters, and writes down how to reach them and what is in them.
func (b *bench) prepareField(ctx context.Context) (c fieldConfig, err error) {
	runtimes := min(fieldRuntimes, b.fleet)
	if err := b.sim.add(ctx, sim.AddRequest{Prefix: fieldPrefix, Count: runtimes, From: template}); err != nil {
		return c, err
	}
	var objects []workload.Object
	for i := range b.o.modules {
		found, err := b.objectsOf(ctx, moduleName(i))
		if err != nil {
			return c, err
		}
		for _, o := range found {
			body, err := o.body("")
			if err != nil {
				return c, err
			}
			objects = append(objects, workload.Object{Path: o.path, Body: body})
		}
	}
	c.Objects = filepath.Join(b.folder, "objects.json")
	encoded, err := json.Marshal(objects)
	if err != nil {
		return c, fmt.Errorf("writing objects: %w", err)
	}
	if err := os.WriteFile(c.Objects, encoded, 0o600); err != nil {
		return c, fmt.Errorf("writing objects: %w", err)
	}
	for i := range runtimes {
		name := fmt.Sprintf("%s%d", fieldPrefix, i)
		kubeconfig, err := b.sim.kubeconfig(ctx, name)
		if err != nil {
			return c, err
		}
		c.Kubeconfigs = append(c.Kubeconfigs, filepath.Join(b.folder, name))
		if err := os.WriteFile(c.Kubeconfigs[i], kubeconfig, 0o600); err != nil {
			return c, fmt.Errorf("writing a kubeconfig: %w", err)
		}
	}
	return c, nil
}

// passField applies everything once, in a process of its own.
func passField(ctx context.Context, c fieldConfig) (r fieldResult, err error) {
	ctx, cancel := context.WithTimeout(ctx, fieldTimeout)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		return r, fmt.Errorf("finding this program: %w", err)
	}
	encoded, err := json.Marshal(c)
	if err != nil {
		return r, fmt.Errorf("going the way of the field: %w", err)
	}
	usage, err := measure.Run(ctx, exec.CommandContext(ctx, self, fieldKind, string(encoded)))
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(usage.Stdout, &r); err != nil {
		return r, fmt.Errorf("reading what the way of the field took: %w", err)
	}
	return r, nil
}

// runField is that process.
func runField(config string) error {
	var c fieldConfig
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		return fmt.Errorf("reading what to apply: %w", err)
	}
	objects, err := workload.ReadObjects(c.Objects)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), fieldTimeout)
	defer cancel()
	walls := make([]time.Duration, len(c.Kubeconfigs))
	cpu := measure.CPUTime()
	var group errgroup.Group
	group.SetLimit(fieldParallel)
	for i, file := range c.Kubeconfigs {
		group.Go(func() (err error) {
			walls[i], err = reapply(ctx, file, objects)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	r := fieldResult{CPU: (measure.CPUTime() - cpu).Seconds()}
	for _, wall := range walls {
		r.Wall += wall.Seconds()
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// reapply applies all objects to a cluster, and says how long that took.
func reapply(ctx context.Context, kubeconfig string, objects []workload.Object) (time.Duration, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return 0, fmt.Errorf("reading %s: %w", kubeconfig, err)
	}
	cfg.QPS, cfg.UserAgent = -1, fieldKind
	apply, err := contestant.Flux(cfg, objects)
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	if err := apply(ctx); err != nil {
		return 0, errors.Join(fmt.Errorf("applying everything to %s again", filepath.Base(kubeconfig)), err)
	}
	return time.Since(begun), nil
}
