package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/bench/internal/child"
	"github.com/kyma-project/mothership/bench/internal/measure"
)

// bench is one run of this program.
type bench struct {
	o        options
	folder   string
	planes   int
	progress io.Writer
	results  *Results
}

// built are the Go modules whose versions are reported.
var built = map[string]string{"k8s.io/client-go": "client-go", "sigs.k8s.io/controller-runtime": "controller-runtime", "helm.sh/helm/v4": "helm"}

// measureAll makes all parts, one after the other.
func measureAll(ctx context.Context, o options, progress io.Writer) (_ *Results, err error) {
	folder, err := os.MkdirTemp("", "bench-control-")
	if err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if o.profiles, err = child.ProfileFolder(o.profiles); err != nil {
		return nil, err
	}
	b := &bench{o: o, folder: folder, progress: progress, results: &Results{
		Rig: measure.ThisRig(built), Modules: o.modules, Field: published, Change: &Latency{}, Drift: &Latency{}, Succession: &Latency{},
	}}
	for _, part := range []struct {
		name string
		make func(context.Context) error
	}{
		{partChange, b.changeToObject}, {partDrift, b.driftToReverted}, {partInstall, b.install}, {partRestart, b.restart},
	} {
		if !slices.Contains(o.parts, part.name) {
			continue
		}
		fmt.Fprintf(progress, "%s\n", part.name)
		if err := part.make(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", part.name, err)
		}
	}
	b.results.conclude()
	return b.results, nil
}

// plane starts a control plane of its own for a part, and returns a folder beside its state.
func (b *bench) plane(ctx context.Context) (*plane, string, error) {
	b.planes++
	folder := filepath.Join(b.folder, fmt.Sprintf("part-%d", b.planes))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, "", fmt.Errorf("making a folder: %w", err)
	}
	p, err := startPlane(ctx, childConfig{Dir: filepath.Join(b.folder, fmt.Sprintf("state-%d", b.planes)), Profiles: b.o.profiles})
	return p, folder, err
}

// quiet waits until the machine is at rest, and notes it if it does not come to that.
func (b *bench) quiet(ctx context.Context) error {
	if b.o.quick {
		return nil
	}
	quiet, err := measure.Quiet(ctx)
	if err == nil && !quiet {
		b.results.Noisy = true
	}
	return err
}

// v1 is a kind of the core group.
func v1(kind string) schema.GroupVersionKind { return corev1.SchemeGroupVersion.WithKind(kind) }

// sizeOf is the size of a Kyma as JSON, managed fields included.
func sizeOf(k *v1beta2.Kyma) int {
	data, err := json.Marshal(k)
	if err != nil {
		return 0 // cannot be: it came as JSON
	}
	return len(data)
}
