package controlplane_test

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kyma-project/mothership/controlplane"
)

func TestConfigIsValidated(t *testing.T) {
	t.Parallel()
	local := func() *controlplane.Local { return &controlplane.Local{Dir: "state"} }
	for want, cfg := range map[string]controlplane.Config{
		"set either Local or Cluster":                                  {},
		"Local or Cluster":                                             {Local: local(), Cluster: &rest.Config{}},
		"set Local.Dir":                                                {Local: &controlplane.Local{}},
		"VerifyInterval is 2h0m0s":                                     {Local: local(), VerifyInterval: 2 * time.Hour},
		"VerifyInterval is -1s":                                        {Local: local(), VerifyInterval: -time.Second},
		"Workers is -1":                                                {Local: local(), Workers: -1},
		"RequestTimeout is -1s":                                        {Local: local(), RequestTimeout: -time.Second},
		"set Sharded with a Cluster":                                   {Local: local(), Sharded: true},
		"LeaseDuration is -1s":                                         {Local: local(), LeaseDuration: -time.Second},
		`SourceRoot is "here": it must be an`:                          {Local: local(), SourceRoot: "here"},
		"Sources.CacheBytes is -1: it must be":                         {Local: local(), Sources: controlplane.Sources{CacheBytes: -1}},
		"Sources.PerHost is -1: it must be":                            {Local: local(), Sources: controlplane.Sources{PerHost: -1}},
		"Sources.RatePerHost is -1: it must be":                        {Local: local(), Sources: controlplane.Sources{RatePerHost: -1}},
		"Sources.PollInterval is 1ms: it must":                         {Local: local(), Sources: controlplane.Sources{PollInterval: time.Millisecond}},
		`mirror "https://b" of "a" in Sources.Mirrors: both are HOST`:  {Local: local(), Sources: controlplane.Sources{Mirrors: map[string]string{"a": "https://b"}}},
		`"10.0.0.0/x" in Sources.PrivateHosts is no network`:           {Local: local(), Sources: controlplane.Sources{PrivateHosts: []string{"10.0.0.0/x"}}},
		`"https://a" in Sources.PrivateHosts is neither a host's name`: {Local: local(), Sources: controlplane.Sources{PrivateHosts: []string{"https://a"}}},
	} {
		if _, err := controlplane.Start(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// A start that fails says why, ends by itself, and can be closed.
func TestStartFails(t *testing.T) {
	t.Parallel()
	cp, err := controlplane.Start(t.Context(), controlplane.Config{Local: &controlplane.Local{Dir: t.TempDir(), Assets: filepath.Join(t.TempDir(), "nowhere")}})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-cp.Err(); err == nil || !strings.Contains(err.Error(), "starting etcd") {
		t.Errorf("error %v", err)
	}
	if cp.Config() != nil || cp.Address() != "" {
		t.Error("it has an API")
	}
	for range 2 {
		if err := cp.Close(); err == nil {
			t.Error("Close does not say what ended it")
		}
	}
	select {
	case <-cp.Ready():
		t.Error("it is ready")
	default:
	}
}

// Over a cluster that does not answer, with an address that somebody else has, and as it should be.
func TestStartOverACluster(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for want, cfg := range map[string]controlplane.Config{
		"preparing the control plane's API": {Cluster: &rest.Config{Host: "https://127.0.0.1:1"}},
		"listening":                         {Cluster: s.target.Config(), Namespace: s.name, Address: listener.Addr().String()},
	} {
		cp, err := controlplane.Start(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		select {
		case err = <-cp.Err():
		case <-time.After(patience):
			err = errors.New("it goes on")
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
		_ = cp.Close()
	}
	cp, err := controlplane.Start(t.Context(), controlplane.Config{Cluster: s.target.Config(), Namespace: s.name})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	if err := awaitReady(ctx, cp); err != nil {
		t.Error(err)
	}
	if err := cp.Close(); err != nil {
		t.Errorf("closing: %v", err)
	}
	if err, open := <-cp.Err(); open {
		t.Errorf("it was told to end, and says %v", err)
	}
}
