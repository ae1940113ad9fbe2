package controlplane_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/reconciler"
)

// scripted are component reconcilers of the tests' own. It is safe for concurrent use.
type scripted struct {
	mu    sync.Mutex
	calls map[string]int // by module
}

func newScripted() *scripted { return &scripted{calls: map[string]int{}} }

// all are they by name.
func (s *scripted) all() map[string]reconciler.Reconciler {
	return map[string]reconciler.Reconciler{
		"greeter": reconciler.Func(s.greet),
		"refuser": reconciler.Func(func(_ context.Context, req reconciler.Request) reconciler.Result {
			if req.Component.Deleting {
				return reconciler.Done()
			}
			return reconciler.Terminal(errors.New("it will not be"))
		}),
		"waiter": reconciler.Func(func(_ context.Context, req reconciler.Request) reconciler.Result {
			need := v1beta2.FactModulePrefix + strings.TrimSuffix(req.Component.Name, "waiter") + "other"
			if _, ok := req.Facts[need]; !ok && !req.Component.Deleting {
				return reconciler.Waiting(need)
			}
			return reconciler.Done()
		}),
	}
}

// greet makes a ConfigMap in the runtime, and removes it.
func (s *scripted) greet(ctx context.Context, req reconciler.Request) reconciler.Result {
	s.mu.Lock()
	s.calls[req.Component.Name]++
	s.mu.Unlock()
	c, err := req.Runtime.Client()
	if err != nil {
		return reconciler.Retry(err)
	}
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: req.Component.Name}}
	if req.Component.Deleting {
		err = client.IgnoreNotFound(c.Delete(ctx, m))
	} else {
		m.Data = map[string]string{"version": req.Component.Template.Version}
		err = client.IgnoreAlreadyExists(c.Create(ctx, m))
	}
	if err != nil {
		return reconciler.Retry(err)
	}
	if req.Component.Deleting {
		return reconciler.Done()
	}
	return reconciler.Done(reconciler.Fact{Key: req.Component.Name + ".greeted", Value: req.Component.Template.Version})
}

func by(name string) func(*v1beta2.ModuleTemplateSpec) {
	return func(t *v1beta2.ModuleTemplateSpec) { t.Reconciler = name }
}

func TestCustomReconciler(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.join()
	s.offers("greeter", "1.0.0", by("greeter"))
	s.offers("refuser", "1.0.0", by("refuser"))
	s.offers("waiter", "1.0.0", by("waiter"))
	s.offers("nobody", "1.0.0", by("nobody"))
	s.offers("guest", "1.0.0", func(t *v1beta2.ModuleTemplateSpec) { t.Needs = []string{s.mod("greeter") + ".greeted"} })
	s.wants(s.entry("greeter"), s.entry("refuser"), s.entry("waiter"), s.entry("nobody"), s.entry("guest"))
	s.at("greeter", "1.0.0")
	s.at("guest", "1.0.0")
	if f := s.fact("greeter"); f == nil || f.Value != "1.0.0" || f.Writer != s.mod("greeter") {
		t.Errorf("the fact that the greeter states: %+v", f)
	}
	key := client.ObjectKey{Namespace: "default", Name: s.mod("greeter")}
	if err := s.cloud.Get(t.Context(), key, &corev1.ConfigMap{}); err != nil {
		t.Error(err)
	}
	if m := s.state("refuser", v1beta2.StateError); m.Message != "it will not be" {
		t.Errorf("message %q", m.Message)
	}
	if m := s.state("nobody", v1beta2.StateError); !strings.Contains(m.Message, `reconciler "nobody"`) {
		t.Errorf("message %q does not name the reconciler that does not exist", m.Message)
	}
	if m := s.state("waiter", v1beta2.StateWaiting); len(m.WaitingFor) != 1 || m.WaitingFor[0] != "module."+s.mod("other") {
		t.Errorf("it waits for %q", m.WaitingFor)
	}
	s.offers("other", "1.0.0")
	s.changes(func(k *v1beta2.Kyma) {
		k.Spec.Modules = append(k.Spec.Modules[:0], s.entry("waiter"), s.entry("other"))
	})
	s.ready()
	if err := s.cloud.Get(t.Context(), key, &corev1.ConfigMap{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("after its removal: %v", err)
	}
	if f := s.fact("greeter"); f != nil {
		t.Errorf("after its removal the fact is still there: %+v", f)
	}
}

// fact is what a greeter states about the runtime, nil if it states nothing.
func (s *site) fact(name string) *v1beta2.Fact {
	s.t.Helper()
	var r v1beta2.Runtime
	if err := s.api.Get(s.t.Context(), s.key(), &r); err != nil {
		s.t.Fatal(err)
	}
	for i := range r.Status.Facts {
		if r.Status.Facts[i].Key == s.mod(name)+".greeted" {
			return &r.Status.Facts[i]
		}
	}
	return nil
}
