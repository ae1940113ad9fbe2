package controlplane

import (
	"fmt"
	"os"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/rand"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/kyma-project/mothership/internal/shard"
)

// leaseQPS and leaseBurst are limits of their own: a renewal must not wait behind the writes of a busy fleet.
const (
	leaseQPS   = 20
	leaseBurst = 40
)

// shard is this process's part of the fleet, nil if it has all of it.
func (cp *ControlPlane) shard(cfg *rest.Config) (*shard.Shard, error) {
	if !cp.cfg.Sharded {
		return nil, nil //nolint:nilnil // there is none, and that is fine
	}
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.Burst = leaseQPS, leaseBurst
	leases, err := coordinationclient.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("making the client of leases: %w", err)
	}
	return shard.New(shard.Options{
		Leases: leases.Leases(cp.cfg.Namespace), Identity: replicaName(), LeaseDuration: cp.cfg.LeaseDuration,
		RequestDeadline: cp.cfg.RequestTimeout, Log: cp.cfg.Log.WithName("shard"),
	})
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// maxHost is how much of a host's name a replica has in its own.
const maxHost = 40

// replicaName is one that no other process has or had: a process that starts again on the same host is another one.
func replicaName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "host" // the rest tells it from others
	}
	host = notInNames.ReplaceAllString(strings.ToLower(host), "-")
	return strings.Trim(host[:min(len(host), maxHost)]+"-"+rand.String(6), "-")
}
