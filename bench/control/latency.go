package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/bench/internal/wait"
)

const (
	runtimeName = "bench"
	// changed and drifted are how many modules the two parts have. Each object is edited once and deleted once at most: a field
	// that is lost three times in an hour is left to whoever takes it.
	changedModules = 5
	driftedModules = 6
)

// changeToObject changes a value of a Kyma again and again, each time at rest, and measures until a watch of the runtime sees it.
func (b *bench) changeToObject(ctx context.Context) (err error) {
	s, err := b.site(ctx, smallChart, changedModules, `{}`)
	if err != nil {
		return err
	}
	defer s.close(&err)
	for i := range b.o.changes {
		if err := wait.For(ctx, calm); err != nil {
			return err
		}
		took, err := s.change(ctx, i)
		if err != nil {
			return err
		}
		b.results.Change.add(took)
	}
	for i := range (b.o.changes + 3) / 4 {
		took, err := s.change(ctx, b.o.changes+i)
		if err != nil {
			return err
		}
		b.results.Succession.add(took)
	}
	return nil
}

// calm is what makes rest of the end of work. An API server that is asked for lists twice within 100 ms lets the second wait until
// then, if anything was written to etcd meanwhile: its caches ask etcd how far it is only that often.
const calm = 250 * time.Millisecond

// change sets the text of one module, and returns how long it took until the runtime had it.
func (s *site) change(ctx context.Context, i int) (time.Duration, error) {
	n, text := i%changedModules, fmt.Sprintf("change %d", i)
	patch := fmt.Appendf(nil, `[{"op": "test", "path": "/spec/modules/%d/name", "value": %q}, {"op": "replace", "path": "/spec/modules/%d/values/text", "value": %q}]`,
		n, moduleName(n), n, text)
	begun := time.Now()
	err := s.plane.client.Patch(ctx, &v1beta2.Kyma{ObjectMeta: named(runtimeName)}, client.RawPatch(types.JSONPatchType, patch))
	if err != nil {
		return 0, fmt.Errorf("changing the Kyma: %w", err)
	}
	at, err := s.eye.see(ctx, moduleName(n), func(x sight) bool { return x.config.Data["text"] == text })
	if err != nil {
		return 0, err
	}
	return at.Sub(begun), s.plane.settled(ctx, runtimeName)
}

// driftToReverted edits and deletes objects in the runtime, each time at rest, and measures until a watch sees them put back.
func (b *bench) driftToReverted(ctx context.Context) (err error) {
	each := (b.o.drifts/2 + driftedModules - 1) / driftedModules
	s, err := b.site(ctx, configsChart, driftedModules, fmt.Sprintf(`{"count": %d}`, each))
	if err != nil {
		return err
	}
	defer s.close(&err)
	for i := range b.o.drifts {
		if err := wait.For(ctx, calm); err != nil {
			return err
		}
		n := i / 2
		name := fmt.Sprintf("%s-%d", moduleName(n%driftedModules), n/driftedModules)
		took, err := s.disturb(ctx, name, i%2 == 1, fmt.Sprintf("editor-%d", n%97))
		if err != nil {
			return err
		}
		b.results.Drift.add(took)
	}
	return nil
}

// disturb edits a ConfigMap as a manager, or deletes it, and returns how long it took until it was put back.
func (s *site) disturb(ctx context.Context, name string, remove bool, manager string) (time.Duration, error) {
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: target, Name: name}}
	begun := time.Now()
	var err error
	if remove {
		err = s.runtime.Delete(ctx, obj)
	} else {
		err = s.runtime.Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(`{"data": {"text": "as somebody else wants it"}}`)), client.FieldOwner(manager))
	}
	if err != nil {
		return 0, fmt.Errorf("disturbing ConfigMap %s: %w", name, err)
	}
	disturbed := false
	at, err := s.eye.see(ctx, name, func(x sight) bool {
		whole := !x.deleted && x.config.Data["text"] == original
		disturbed = disturbed || !whole && x.at.After(begun)
		return disturbed && whole
	})
	if err != nil {
		return 0, err
	}
	return at.Sub(begun), s.plane.settled(ctx, runtimeName)
}

// site is a control plane with one watched runtime, at rest.
type site struct {
	plane   *plane
	runtime client.WithWatch
	eye     *eye
}

// site makes one with a number of modules.
func (b *bench) site(ctx context.Context, chart string, modules int, values string) (_ *site, err error) {
	p, folder, err := b.plane(ctx)
	if err != nil {
		return nil, err
	}
	s := &site{plane: p}
	defer func() {
		if err != nil {
			s.close(&err)
		}
	}()
	if err := writeChart(folder, chart); err != nil {
		return nil, err
	}
	if err := p.offer(ctx, folder, modules, values); err != nil {
		return nil, err
	}
	if s.runtime, err = p.localRuntime(ctx, runtimeName, v1beta2.DriftWatch); err != nil {
		return nil, err
	}
	if err := p.create(ctx, kymaOf(runtimeName, modules)); err != nil {
		return nil, err
	}
	if err := p.settled(ctx, runtimeName); err != nil {
		return nil, err
	}
	if s.eye, err = open(ctx, s.runtime); err != nil {
		return nil, err
	}
	return s, b.quiet(ctx)
}

// close ends everything; its error is joined to that of the caller.
func (s *site) close(err *error) {
	if s.eye != nil {
		s.eye.close()
	}
	if stopErr := s.plane.Stop(); *err == nil {
		*err = stopErr
	}
}
