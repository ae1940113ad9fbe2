package shard

import (
	"context"
	"os"
	"testing"
	"time"

	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/kyma-project/mothership/internal/infra/local/localtest"
)

func TestMain(m *testing.M) { os.Exit(localtest.Main(m)) }

// realLease is short, so that little time goes by in which nothing happens.
const realLease = time.Second

// replicaOver starts a replica over a real API server.
func replicaOver(t *testing.T, leases coordinationclient.LeaseInterface, name string) (s *Shard, leave func()) {
	t.Helper()
	s, err := New(Options{Leases: leases, Identity: name, LeaseDuration: realLease, RequestDeadline: realLease / 2, Log: logOf(t)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(stop)
	return s, func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// hold waits until replicas share all slots as they should.
func hold(t *testing.T, replicas ...*Shard) {
	t.Helper()
	var members []string
	for _, r := range replicas {
		members = append(members, r.Identity())
	}
	want := shareOut(members)
	for end := time.Now().Add(20 * realLease); time.Now().Before(end); <-time.After(realLease / 50) {
		var got table
		for s, name := range names() {
			for _, r := range replicas {
				if r.Owns(name) {
					if got[s] != "" {
						t.Fatalf("%s and %s both own slot %d", got[s], r.Identity(), s)
					}
					got[s] = r.Identity()
				}
			}
		}
		if got == want {
			return
		}
	}
	t.Fatalf("%v do not share the slots", members)
}

// A real API server takes what is written, guards it, and lists it by its label.
func TestRealServer(t *testing.T) {
	t.Parallel()
	server := localtest.Server(t)
	leases := localtest.Client(t, server).CoordinationV1().Leases(localtest.Namespace(t, server))
	a, leaveA := replicaOver(t, leases, "a")
	hold(t, a)
	b, leaveB := replicaOver(t, leases, "b")
	c, leaveC := replicaOver(t, leases, "c")
	hold(t, a, b, c)
	leaveA()
	hold(t, b, c)
	d, leaveD := replicaOver(t, leases, "d")
	hold(t, b, c, d)
	leaveB()
	leaveC()
	hold(t, d)
	leaveD()
	if d.Held() > 0 || c.Held() > 0 || a.Held() > 0 || b.Held() > 0 {
		t.Error("somebody holds something after it left")
	}
}
