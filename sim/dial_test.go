package sim_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kyma-project/mothership/internal/cluster"
	"github.com/kyma-project/mothership/internal/remote"
	"github.com/kyma-project/mothership/sim"
	"github.com/kyma-project/mothership/sim/dial"
)

// ask reads the server's version with the product's own client, without repetitions.
func ask(t *testing.T, cfg *rest.Config) error {
	t.Helper()
	c, err := remote.New(cfg, remote.Options{Retries: -1, Timeout: time.Second, UserAgent: "asker/1"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = c.ServerVersion(t.Context())
	return err
}

func TestDials(t *testing.T) {
	t.Parallel()
	s := start(t)
	add(t, s, "healthy")
	for name, c := range map[string]struct {
		dials dial.Dials
		want  error
	}{
		"throttle":     {dial.Dials{Throttle: 1, RetryAfterSeconds: 3}, cluster.ErrThrottled},
		"fail":         {dial.Dials{Fail: 1}, cluster.ErrUnavailable},
		"fail-500":     {dial.Dials{Fail: 1, FailCode: 500}, cluster.ErrUnavailable},
		"refuse":       {dial.Dials{Refuse: true}, cluster.ErrUnreachable},
		"black-hole":   {dial.Dials{BlackHole: true}, cluster.ErrTimeout},
		"unauthorized": {dial.Dials{Unauthorized: true}, cluster.ErrUnauthorized},
		"forbidden":    {dial.Dials{Forbidden: true}, cluster.ErrForbidden},
		"certificate":  {dial.Dials{OtherCertificate: true}, cluster.ErrUnreachable},
		"slow":         {dial.Dials{LatencyMillis: 3000}, cluster.ErrTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := add(t, s, name)
			if err := ask(t, cfg); err != nil {
				t.Fatalf("before: %v", err)
			}
			if err := s.Dial(name, c.dials); err != nil {
				t.Fatal(err)
			}
			if err := ask(t, cfg); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
			if err := ask(t, s.Config("healthy")); err != nil {
				t.Errorf("another cluster suffers too: %v", err)
			}
			if err := s.Dial(name, dial.Dials{}); err != nil {
				t.Fatal(err)
			}
			if err := ask(t, cfg); err != nil {
				t.Errorf("well again: %v", err)
			}
		})
	}
}

// TestDialsOfOpenConnections turns dials while a client keeps its connection.
func TestDialsOfOpenConnections(t *testing.T) {
	t.Parallel()
	s := start(t)
	p := newPatcher(t, add(t, s, "eu-1"))
	get := func() (int, error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.host+"/version", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+p.token)
		resp, err := p.client.Do(req)
		if err != nil {
			return 0, err
		}
		resp.Body.Close()
		return resp.StatusCode, nil
	}
	if code, err := get(); code != http.StatusOK {
		t.Fatal(code, err)
	}
	for name, d := range map[string]dial.Dials{"refuse": {Refuse: true}, "blackHole": {BlackHole: true}} {
		if err := s.Dial("eu-1", d); err != nil {
			t.Fatal(err)
		}
		if code, err := get(); err == nil {
			t.Errorf("%s: answered %d", name, code)
		}
	}
}

// TestConnectionsWithoutAnAnswerAreCounted: no request arrives by them, but somebody asked.
func TestConnectionsWithoutAnAnswerAreCounted(t *testing.T) {
	t.Parallel()
	s := start(t)
	for name, d := range map[string]dial.Dials{"refuse": {Refuse: true}, "black-hole": {BlackHole: true}} {
		cfg := add(t, s, name)
		if err := s.Dial(name, d); err != nil {
			t.Fatal(err)
		}
		if err := ask(t, cfg); err == nil {
			t.Errorf("%s answers", name)
		}
		var counts map[string][]dial.Count
		admin(t, s, http.MethodGet, "/requests", "", &counts)
		if got := counts[name]; len(got) != 1 || got[0].Verb != dial.VerbConnect || got[0].N == 0 {
			t.Errorf("%s: counted %v; want connections", name, got)
		}
	}
	var connections int64
	admin(t, s, http.MethodGet, "/connections", "", &connections)
}

func TestHalfDiscovery(t *testing.T) {
	t.Parallel()
	s := start(t)
	c, err := remote.New(add(t, s, "eu-1"), remote.Options{Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := s.Dial("eu-1", dial.Dials{HalfDiscovery: true}); err != nil {
		t.Fatal(err)
	}
	for group, want := range map[string]error{"apps": cluster.ErrUnavailable, "admissionregistration.k8s.io": cluster.ErrNoKind} {
		if _, err = c.ResourceFor(t.Context(), groupKind(group, "Unknown")); !errors.Is(err, want) {
			t.Errorf("an unknown kind of %s: %v, want %v", group, err, want)
		}
	}
}

func TestTokensAreOfOneCluster(t *testing.T) {
	t.Parallel()
	s := start(t)
	cfg, other := add(t, s, "eu-1"), add(t, s, "eu-2")
	cfg.BearerToken = other.BearerToken
	if err := ask(t, cfg); !errors.Is(err, cluster.ErrUnauthorized) {
		t.Errorf("another cluster's token: %v", err)
	}
}

func TestKubeconfigsOutliveTheProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var kubeconfig []byte
	address := ""
	for range 2 {
		s, err := sim.Start(t.Context(), sim.Config{Dir: dir, Listen: address})
		if err != nil {
			t.Fatal(err)
		}
		address = s.Address()
		add(t, s, "eu-1")
		if kubeconfig == nil {
			if kubeconfig, err = s.Kubeconfig("eu-1"); err != nil {
				t.Fatal(err)
			}
		}
		cfg, err := remote.LoadKubeconfig(kubeconfig, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := ask(t, cfg); err != nil {
			t.Error(err)
		}
		s.Close()
		s.Close()
	}
}
