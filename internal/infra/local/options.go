package local

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Options say what Start starts. The zero value is an API server alone, with a temporary state folder.
type Options struct {
	// Assets is the folder of the Kubernetes executables; Assets() if empty.
	Assets string
	// Dir is the state folder: data, keys, logs and pid files, readable by its owner only. It is made if missing, may be
	// used again after Close, and by one Server at a time. Empty: a temporary one, removed by Close.
	Dir string
	// Port of the API server on 127.0.0.1. If zero: the one of the last start from Dir, so that its kubeconfigs stay good, or
	// a free one where there was none or somebody else has it now.
	Port int
	// Controllers of kube-controller-manager, as in DefaultControllers and WorkloadControllers. Without any, it is not
	// started, and nothing deletes the content of namespaces or follows owner references.
	Controllers []string
	// Nodes runs the simulation of the package node, so that pods get Ready without machines.
	Nodes bool
	// GCPercent says when API server and controllers collect their garbage: when the heap has grown by so much since the last time, in percent
	// (GOGC). Default: 100. Frugal takes less memory and more work: for servers of which there are many, or that run for long. A busy
	// server with few cores answers more evenly with more than 100.
	GCPercent int
	// APIServerArgs are further arguments of kube-apiserver; they win over ours.
	APIServerArgs []string
	// Etcd is shared with other servers and closed by its owner, after them. Nil: one of its own.
	Etcd *Etcd
	// Prefix of all keys in etcd, as in "/eu-1"; required with a shared Etcd, "/registry" otherwise.
	Prefix string
}

// DefaultControllers make namespaces deletable and follow owner references: what every cluster does.
var DefaultControllers = []string{"namespace-controller", "garbage-collector-controller"}

// WorkloadControllers are the default ones and those that turn workloads into pods, services into endpoints and
// namespaces into service accounts. The node-lifecycle controller is not among them: nodes are simulated.
var WorkloadControllers = append(slices.Clone(DefaultControllers),
	"deployment-controller", "replicaset-controller", "statefulset-controller", "daemonset-controller",
	"job-controller", "cronjob-controller", "replicationcontroller-controller", "ttl-after-finished-controller",
	"endpointslice-controller", "endpoints-controller", "endpointslice-mirroring-controller",
	"disruption-controller", "horizontal-pod-autoscaler-controller", "resourcequota-controller",
	"serviceaccount-controller", "serviceaccount-token-controller", "root-ca-certificate-publisher-controller",
	"clusterrole-aggregation-controller", "persistentvolumeclaim-protection-controller", "persistentvolume-protection-controller",
)

// validate completes the options.
func (o *Options) validate() error {
	if err := o.findAssets(); err != nil {
		return err
	}
	if o.Etcd != nil && o.Prefix == "" {
		return errors.New("a shared etcd needs a key prefix: set Options.Prefix")
	}
	if o.Prefix == "" {
		o.Prefix = "/registry"
	}
	if !strings.HasPrefix(o.Prefix, "/") {
		return fmt.Errorf("key prefix %q: it must begin with a slash", o.Prefix)
	}
	return nil
}

// Frugal is a GCPercent that saves memory, see the package's overview.
const Frugal = 50

// env is what the children have in their environment besides what all have.
func (o *Options) env() []string {
	if o.GCPercent > 0 {
		return []string{fmt.Sprintf("GOGC=%d", o.GCPercent)}
	}
	return nil
}

// findAssets sets the folder of the executables and checks that it has those that are needed.
func (o *Options) findAssets() (err error) {
	if o.Assets == "" {
		if o.Assets, err = Assets(); err != nil {
			return err
		}
	}
	needed := []string{binEtcd, binAPIServer}
	if len(o.Controllers) > 0 {
		needed = append(needed, binControllerManager)
	}
	return checkAssets(o.Assets, needed...)
}

// idleAdmission names the admission plugins that would wait for a controller that does not run: without service account
// controller no pod would be let in, and without the protection controllers no claim would ever be gone.
func (o *Options) idleAdmission() []string {
	var idle []string
	for _, needs := range []struct{ plugin, controller string }{
		{"ServiceAccount", "serviceaccount-controller"},
		{"StorageObjectInUseProtection", "persistentvolumeclaim-protection-controller"},
	} {
		if !slices.Contains(o.Controllers, needs.controller) && !slices.Contains(o.Controllers, "*") {
			idle = append(idle, needs.plugin)
		}
	}
	return idle
}
