package controlplane_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/sim"
)

// fleetSize is how many runtimes want the same artifact, and fleetPatience how long all of them may take.
const (
	fleetSize     = 1000
	fleetPatience = 5 * time.Minute
)

// A thousand simulated runtimes have a module whose version is not there yet. When it comes, all of them want its artifact in the same
// second: it is downloaded once, and so is what a moving reference leads to next. It runs alone: it takes the whole machine.
//
//nolint:paralleltest // see above
func TestOneDownloadForThousandRuntimes(t *testing.T) {
	s, shelf := newSite(t), newShelf(t)
	server, err := sim.Start(t.Context(), sim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	name := func(i int) string { return fmt.Sprintf("%s-%d", s.name, i) }
	ctx, cancel := context.WithTimeout(t.Context(), fleetPatience)
	defer cancel()
	begun := time.Now()
	joinAll(ctx, t, s, server, name)
	t.Logf("%s: all are known", time.Since(begun))
	t.Cleanup(func() { leaveAll(t, s) })

	shelf.put("/one.yaml", configMap(s.mod("one"), map[string]string{"v": "1"}))
	s.offers("one", "1.0.0", shelf.from("/one.yaml", ""))
	awaitAll(ctx, t, s, "")
	t.Logf("%s: all are ready", time.Since(begun))
	if n := shelf.downloads("/one.yaml"); n != 1 {
		t.Errorf("%d runtimes needed %d downloads, want 1", fleetSize, n)
	}
	var first v1beta2.Kyma
	if err := s.api.Get(ctx, client.ObjectKey{Namespace: space, Name: name(0)}, &first); err != nil {
		t.Fatal(err)
	}
	shelf.put("/one.yaml", configMap(s.mod("one"), map[string]string{"v": "2"}))
	awaitAll(ctx, t, s, first.Status.Modules[0].Revision)
	t.Logf("%s: all have the second", time.Since(begun))
	if n := shelf.downloads("/one.yaml"); n != 2 {
		t.Errorf("%d runtimes needed %d downloads of two artifacts, want 2", fleetSize, n)
	}
}

// fleetLabel is on all that belongs to the thousand.
const fleetLabel = "test.mothership/fleet"

// joinAll makes the simulated clusters, their Runtimes and Kymas.
func joinAll(ctx context.Context, t *testing.T, s *site, server *sim.Server, name func(int) string) {
	t.Helper()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for i := range fleetSize {
		g.Go(func() error {
			if err := server.Add(name(i)); err != nil {
				return err
			}
			kubeconfig, err := server.Kubeconfig(name(i))
			if err != nil {
				return err
			}
			meta := metav1.ObjectMeta{Namespace: space, Name: name(i), Labels: map[string]string{fleetLabel: s.name}}
			for _, obj := range []client.Object{
				&corev1.Secret{ObjectMeta: meta, StringData: map[string]string{"kubeconfig": string(kubeconfig)}},
				&v1beta2.Runtime{ObjectMeta: meta, Spec: v1beta2.RuntimeSpec{
					Provider: v1beta2.ProviderBYOC, DeletionPolicy: v1beta2.DeletionAbandon,
					Kubeconfig: &v1beta2.KubeconfigSpec{SecretRef: v1beta2.SecretKeyReference{Name: name(i)}},
				}},
				&v1beta2.Kyma{ObjectMeta: meta, Spec: v1beta2.KymaSpec{Channel: "regular", Modules: []v1beta2.Module{s.entry("one")}}},
			} {
				if err := s.api.Create(ctx, obj); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}

// leaveAll lets go of them, and waits until the control plane has.
func leaveAll(t *testing.T, s *site) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), fleetPatience)
	defer cancel()
	ours := []client.DeleteAllOfOption{client.InNamespace(space), client.MatchingLabels{fleetLabel: s.name}}
	for _, kind := range []client.Object{&v1beta2.Runtime{}, &v1beta2.Kyma{}, &corev1.Secret{}} {
		if err := s.api.DeleteAllOf(ctx, kind, ours...); err != nil {
			t.Errorf("leaving: %v", err)
		}
	}
	until(ctx, t, s, "gone", func(kymas []v1beta2.Kyma) int { return len(kymas) })
}

// awaitAll waits until the module is ready everywhere, from another revision than the given one.
func awaitAll(ctx context.Context, t *testing.T, s *site, before string) {
	t.Helper()
	until(ctx, t, s, "ready", func(kymas []v1beta2.Kyma) int {
		left := fleetSize
		for i := range kymas {
			m := moduleOf(&kymas[i], s.mod("one"))
			if m != nil && m.State == v1beta2.StateReady && m.Revision != before && strings.HasPrefix(m.Revision, "sha256:") {
				left--
			}
		}
		return left
	})
}

// until waits until none of the thousand Kymas is left.
func until(ctx context.Context, t *testing.T, s *site, what string, left func([]v1beta2.Kyma) int) {
	t.Helper()
	ours := []client.ListOption{client.InNamespace(space), client.MatchingLabels{fleetLabel: s.name}}
	for { // ctx is its bound
		var kymas v1beta2.KymaList
		if err := s.api.List(ctx, &kymas, ours...); err != nil {
			t.Fatalf("waiting until all are %s: %v", what, err)
		}
		n := left(kymas.Items)
		if n == 0 {
			return
		}
		since := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: kymas.ResourceVersion}}
		w, err := s.api.Watch(ctx, &kymas, append(ours, since)...)
		if err != nil {
			t.Fatalf("waiting until all are %s, %d are not: %v", what, n, err)
		}
		for range n { // each of them needs a change at least; a server that is busy ends a watch now and then
			if _, open := <-w.ResultChan(); !open {
				break
			}
		}
		w.Stop()
	}
}
