package controlplane

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/render/post"
	"github.com/kyma-project/mothership/reconciler"
)

// Config of Start. Either Local or Cluster is needed; for the rest, the zero value works.
type Config struct {
	// Local starts a control plane of its own on this machine: a real kube-apiserver and etcd as child processes.
	Local *Local
	// Cluster is the existing cluster whose API holds the control plane's objects.
	Cluster *rest.Config
	// Namespace for what the control plane keeps for itself. Default: kcp-system.
	Namespace string
	// Address of metrics, health and explanations, over HTTP. Whoever reaches it can read the state of the fleet, but no secret.
	// Default: a free port on 127.0.0.1. "none": none.
	Address string
	// Reconcilers that templates can name, by name.
	Reconcilers map[string]reconciler.Reconciler
	// RenderCommand starts a child process that renders downloads (see mothership.RenderChild), so that none can harm the control
	// plane. Without it they are rendered in this process.
	RenderCommand []string
	// PostRender is done to the objects of every module, besides what its template says: images taken from mirrors, pull
	// secrets, labels and annotations. Default: nothing.
	PostRender v1beta2.PostRender
	// SourceRoot is the folder that templates' local paths must be in. "/" allows all; empty allows none, except that a Local
	// control plane allows all.
	SourceRoot string
	// Sources says how what modules are made of is fetched.
	Sources Sources
	// VerifyInterval is how often each runtime is compared with what it should be. Default: 1 h, which is also the most.
	VerifyInterval time.Duration
	// Workers is how many modules are worked on at the same time at most; how many are is found out. Modules of runtimes that do not
	// answer do not count. Default: 128.
	Workers int
	// APIQPS and APIBurst limit what the control plane asks of its own API, by second and at once. Default: 500 and 1000.
	APIQPS, APIBurst int
	// ProbeInterval is how often a runtime that does not answer, or refuses us, is asked whether it does now, after a first time two
	// seconds later (give or take a fifth). Default: 75 s: once a minute at most.
	ProbeInterval time.Duration
	// RequestTimeout is the deadline of one request to a runtime: one that hangs is given up after two of them. Default: 20 s.
	RequestTimeout time.Duration
	// Sharded shares the fleet between all processes over one Cluster that have it, in place of the lease by which one works and the
	// others wait. All must have it: end those without it before.
	Sharded bool
	// LeaseDuration is how long a sharing process counts as alive without a word of it. What it has is taken up by the others when
	// that and RequestTimeout have gone by. Default: 15 s.
	LeaseDuration time.Duration
	// Log of the control plane. Default: none.
	Log logr.Logger
}

// Local says how to run a control plane on this machine.
type Local struct {
	// Dir is its state folder, also that of the runtimes of provider "local". A start from the same folder continues. One
	// control plane at a time can use it. Needed.
	Dir string
	// Assets is the folder of the Kubernetes executables. Default: KUBEBUILDER_ASSETS, or what make kube has built.
	Assets string
	// Port of its API server on 127.0.0.1. Default: that of the last start, or a free one.
	Port int
}

// DefaultNamespace is that of the control plane's objects.
const DefaultNamespace = "kcp-system"

// maxVerifyInterval is the longest that drift may go unnoticed where nothing watches.
const maxVerifyInterval = time.Hour

// Defaults of the limits of what the control plane asks of its own API, and of probes: 75 s less a fifth is a minute.
const (
	defaultAPIQPS        = 500
	defaultAPIBurst      = 1000
	defaultProbeInterval = 75 * time.Second
)

// defaultRequestTimeout is short for a request, so that runtimes that hang do not keep the workers from the others.
const defaultRequestTimeout = 20 * time.Second

// Validate says what is wrong with the configuration.
func (c *Config) Validate() error {
	switch {
	case (c.Local == nil) == (c.Cluster == nil):
		return errors.New("set either Local or Cluster")
	case c.Local != nil && c.Local.Dir == "":
		return errors.New("set Local.Dir: the folder that the control plane keeps its state in")
	case c.VerifyInterval < 0 || c.VerifyInterval > maxVerifyInterval:
		return fmt.Errorf("VerifyInterval is %s: it must be at most %s, or 0 for that", c.VerifyInterval, maxVerifyInterval)
	case c.Workers < 0:
		return fmt.Errorf("number of Workers is %d: it must be positive, or 0 for the default", c.Workers)
	case c.APIQPS < 0 || c.APIBurst < 0:
		return fmt.Errorf("APIQPS is %d and APIBurst %d: they must be positive, or 0 for the default", c.APIQPS, c.APIBurst)
	case c.ProbeInterval < 0:
		return fmt.Errorf("ProbeInterval is %s: it must be positive, or 0 for the default", c.ProbeInterval)
	case c.RequestTimeout < 0:
		return fmt.Errorf("RequestTimeout is %s: it must be positive, or 0 for the default", c.RequestTimeout)
	case c.Sharded && c.Cluster == nil:
		return errors.New("set Sharded with a Cluster: a Local control plane has nobody to share its fleet with")
	case c.LeaseDuration < 0:
		return fmt.Errorf("LeaseDuration is %s: it must be positive, or 0 for the default", c.LeaseDuration)
	case c.SourceRoot != "" && !filepath.IsAbs(c.SourceRoot):
		return fmt.Errorf("SourceRoot is %q: it must be an absolute path", c.SourceRoot)
	}
	return errors.Join(post.Check(c.PostRender), c.Sources.validate())
}

func (c Config) withDefaults() Config {
	if c.Namespace == "" {
		c.Namespace = DefaultNamespace
	}
	if c.Address == "" {
		c.Address = "127.0.0.1:0"
	}
	if c.SourceRoot == "" && c.Local != nil {
		c.SourceRoot = "/"
	}
	c.Sources = c.Sources.withDefaults(c.Local)
	if c.VerifyInterval == 0 {
		c.VerifyInterval = maxVerifyInterval
	}
	if c.RequestTimeout == 0 {
		c.RequestTimeout = defaultRequestTimeout
	}
	if c.ProbeInterval == 0 {
		c.ProbeInterval = defaultProbeInterval
	}
	if c.APIQPS == 0 {
		c.APIQPS = defaultAPIQPS
	}
	if c.APIBurst == 0 {
		c.APIBurst = max(defaultAPIBurst, c.APIQPS)
	}
	if c.Log.GetSink() == nil {
		c.Log = logr.Discard()
	}
	return c
}
