// Package infratest has the tests that every provider of clusters passes, and what tests of one need. It is for tests only.
//
// It may import the contract infra and the API types.
package infratest

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/kyma-project/mothership/internal/infra"
)

const (
	// patience bounds every wait: a local cluster takes seconds, on a loaded machine ten times as long.
	patience = 2 * time.Minute
	// interval is how often a provider is asked, whether or not it notifies.
	interval = 50 * time.Millisecond
	// soon is how long a call may take on a loaded machine: less than anything that waits for a cluster.
	soon = 2 * time.Second
)

// Conforms makes a cluster that does not exist yet and takes it away again, and checks what the contract promises.
func Conforms(t *testing.T, p infra.Provider, r infra.Cluster) {
	t.Helper()
	ready := Ready(t, p, r)
	again := ensure(t, p, r)
	if !again.Ready || again.KubeconfigVersion != ready.KubeconfigVersion || !bytes.Equal(again.Kubeconfig, ready.Kubeconfig) {
		t.Errorf("asked again, nothing having changed: %v; want %v", again, ready)
	}
	if (len(ready.Kubeconfig) > 0) != (ready.KubeconfigVersion != "") {
		t.Errorf("%v: a kubeconfig and its version come together", ready)
	}
	if len(ready.Kubeconfig) > 0 && bytes.Contains(ready.Kubeconfig, []byte(ready.KubeconfigVersion)) {
		t.Error("the version is a part of the kubeconfig")
	}
	Gone(t, p, r)
	Gone(t, p, r) // a second time, and after a crash, it is no error
}

// Ready asks for the cluster until it is ready, and returns its state then.
func Ready(t testing.TB, p infra.Provider, r infra.Cluster) infra.State {
	t.Helper()
	return Until(t, p, r, func(s infra.State) bool { return s.Ready })
}

// Until asks for the cluster until its state is as wanted, and returns it.
func Until(t testing.TB, p infra.Provider, r infra.Cluster, wanted func(infra.State) bool) infra.State {
	t.Helper()
	var state infra.State
	poll(t, func() bool {
		state = ensure(t, p, r)
		return wanted(state)
	}, func() any { return state })
	return state
}

// Gone deletes the cluster until it is gone.
func Gone(t testing.TB, p infra.Provider, r infra.Cluster) {
	t.Helper()
	poll(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		begin := time.Now()
		gone, err := p.Delete(ctx, r)
		if err != nil {
			t.Fatalf("deleting %s/%s: %v", r.Namespace, r.Name, err)
		}
		if took := time.Since(begin); took > soon {
			t.Errorf("Delete took %s: it shall not wait", took)
		}
		return gone
	}, func() any { return "not gone" })
}

// ensure asks once.
func ensure(t testing.TB, p infra.Provider, r infra.Cluster) infra.State {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	begin := time.Now()
	state, err := p.Ensure(ctx, r)
	if err != nil {
		t.Fatalf("ensuring %s/%s: %v", r.Namespace, r.Name, err)
	}
	if took := time.Since(begin); took > soon {
		t.Errorf("Ensure took %s: it shall not wait", took)
	}
	if !state.Ready && (state.Message == "" || len(state.Kubeconfig) > 0) {
		t.Errorf("%v: what is not ready says why, and has no kubeconfig", state)
	}
	return state
}

// poll asks until the answer is yes, for as long as patience lasts.
func poll(t testing.TB, done func() bool, last func() any) {
	t.Helper()
	end := time.NewTimer(patience)
	defer end.Stop()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for !done() {
		select {
		case <-end.C:
			t.Fatalf("after %s: %v", patience, last())
		case <-tick.C:
		}
	}
}
