package module

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/kyma-project/mothership/internal/apply"
	"github.com/kyma-project/mothership/internal/cluster"
	"github.com/kyma-project/mothership/internal/infra/local/localtest"
	"github.com/kyma-project/mothership/internal/remote"
	"github.com/kyma-project/mothership/reconciler"
)

func TestProbe(t *testing.T) {
	t.Parallel()
	s := setup(t)
	if uid, version := s.rt.Known(); uid != "" || version != "" {
		t.Errorf("known before: %q, %q", uid, version)
	}
	if err := s.rt.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	uid, version := s.rt.Known()
	if uid == "" || version == "" {
		t.Fatalf("known: %q, %q", uid, version)
	}
	asked := remote.Stats{"version": 1, "get": 1}
	if diff := cmp.Diff(asked, s.client.Stats()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if err := s.rt.Probe(t.Context()); err != nil {
		t.Errorf("the same cluster: %v", err)
	}

	t.Run("WhatIsKnownIsNotAsked", func(t *testing.T) {
		before := s.client.Stats()
		s.rt.SetKnown("another", "v1.2.3")
		gotUID, err := s.rt.UID(t.Context())
		gotVersion, err2 := s.rt.Version(t.Context())
		if gotUID != "another" || gotVersion != "v1.2.3" || err != nil || err2 != nil {
			t.Errorf("known: %q, %q, %v, %v", gotUID, gotVersion, err, err2)
		}
		if n := s.client.Stats().Sub(before).Total(); n != 0 {
			t.Errorf("%d requests", n)
		}
	})
	t.Run("AnotherClusterIsNoticedOnce", func(t *testing.T) {
		err := s.rt.Probe(t.Context())
		if !errors.Is(err, ErrOtherCluster) || errors.As(err, new(*RuntimeError)) {
			t.Errorf("error: %v", err)
		}
		if gotUID, gotVersion := s.rt.Known(); gotUID != uid || gotVersion != version {
			t.Errorf("known afterwards: %q, %q", gotUID, gotVersion)
		}
		if err := s.rt.Probe(t.Context()); err != nil {
			t.Errorf("again: %v", err)
		}
	})
}

func TestRuntimeErrors(t *testing.T) {
	t.Parallel()
	s := setup(t)
	nobody := rest.CopyConfig(localtest.Server(t).Config())
	nobody.BearerToken, nobody.CertData, nobody.KeyData, nobody.CertFile, nobody.KeyFile = "wrong", nil, nil, "", ""
	for name, test := range map[string]struct {
		cfg   *rest.Config
		known bool
		want  error
	}{
		"Unreachable":         {&rest.Config{Host: "https://127.0.0.1:1"}, false, cluster.ErrUnreachable},
		"UnreachableButKnown": {&rest.Config{Host: "https://127.0.0.1:1"}, true, cluster.ErrUnreachable},
		"Unauthorized":        {nobody, false, cluster.ErrUnauthorized},
		"UnauthorizedByName":  {nobody, true, cluster.ErrUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, err := remote.New(test.cfg, remote.Options{Retries: -1})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			rt := NewRuntime("eu-1", client)
			if test.known {
				rt.SetKnown("uid", "v1.36.3")
			}
			c := s.component("web", config("a", "1"))
			deleting, seeded := c, c
			deleting.Deleting, seeded.Template.PerRuntime = true, true
			for _, c := range []reconciler.Component{c, deleting, seeded} {
				r := s.reconciler.Reconcile(t.Context(), reconciler.Request{Component: c, Runtime: rt})
				if r.Outcome != reconciler.OutcomeRetry || !errors.As(r.Err, new(*RuntimeError)) || !errors.Is(r.Err, test.want) {
					t.Errorf("deleting %t, per runtime %t: %+v", c.Deleting, c.Template.PerRuntime, r)
				}
			}
			if _, err := s.reconciler.Verify(t.Context(), rt, []reconciler.Component{c}); !errors.As(err, new(*RuntimeError)) {
				t.Errorf("verifying: %v", err)
			}
			if err := rt.Probe(t.Context()); !errors.As(err, new(*RuntimeError)) || !errors.Is(err, test.want) {
				t.Errorf("probing: %v", err)
			}
		})
	}
}

func TestErrorsOfTheModuleAreNotTheRuntimes(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.install(s.component("web", config("a", "1")))
	other := *s.reconciler
	other.o.Applier = apply.New(apply.Options{Owner: "another control plane"})
	for name, test := range map[string]struct {
		r    *Reconciler
		c    reconciler.Component
		want reconciler.Outcome
	}{
		"ForeignSet": {&other, s.component("web", config("a", "1")), reconciler.OutcomeTerminal},
		"Malformed":  {s.reconciler, s.component("bad", "kind: ["), reconciler.OutcomeTerminal},
		"NoKind":     {s.reconciler, s.component("late", config("b", "1"), widget("one")), reconciler.OutcomeRetry},
	} {
		r := test.r.Reconcile(t.Context(), reconciler.Request{Component: test.c, Runtime: s.rt})
		if r.Outcome != test.want || r.Err == nil || errors.As(r.Err, new(*RuntimeError)) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	stopped, cancel := context.WithCancelCause(t.Context())
	cancel(errNewer)
	r := s.reconciler.Reconcile(stopped, reconciler.Request{Component: s.component("web", config("a", "1")), Runtime: NewRuntime("eu-1", s.client)})
	if r.Outcome != reconciler.OutcomeRetry || !errors.Is(r.Err, errNewer) || errors.As(r.Err, new(*RuntimeError)) {
		t.Errorf("the end of the context: %+v", r)
	}
}
