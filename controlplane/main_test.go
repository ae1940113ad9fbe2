package controlplane_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/controlplane"
	"github.com/kyma-project/mothership/internal/infra/local"
)

// space is the namespace of everything in the control plane.
const space = controlplane.DefaultNamespace

// probeInterval is short for runtimes that tests make well again.
const probeInterval = 3 * time.Second

// parallel is how many tests run at once at least: they wait for the control plane more than they compute.
const parallel = 8

// TestMain runs the tests over one control plane and one cluster, and looks in the end whether a secret of any of them is where
// it must not be.
func TestMain(m *testing.M) {
	if os.Getenv(replicaEnv) != "" {
		os.Exit(replicaMain())
	}
	flag.Parse()
	if n, err := strconv.Atoi(flag.Lookup("test.parallel").Value.String()); err == nil && n < parallel {
		_ = flag.Set("test.parallel", strconv.Itoa(parallel))
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	code := m.Run()
	if !started.Load() {
		return code
	}
	w, err := shared()
	if err == nil {
		err = errors.Join(w.audit(), w.close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	return code
}

// world is a control plane, and a cluster that many runtimes stand for.
type world struct {
	dir    string
	cp     *controlplane.ControlPlane
	api    client.WithWatch // of the control plane
	target *local.Server
	cloud  client.WithWatch // of the target
	uid    string           // of the target
	log    *logbook
	custom *scripted
}

// shared is the world of this package's tests.
var (
	started atomic.Bool
	shared  = sync.OnceValues(func() (*world, error) {
		started.Store(true)
		return newWorld()
	})
)

// startTimeout bounds the start of the world.
const startTimeout = time.Minute

func newWorld() (*world, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	dir, err := os.MkdirTemp("", "controlplane-test-")
	if err != nil {
		return nil, err
	}
	w := &world{dir: dir, log: &logbook{}, custom: newScripted()}
	w.cp, err = controlplane.Start(context.Background(), controlplane.Config{
		ProbeInterval: probeInterval,
		Local:         &controlplane.Local{Dir: dir}, Log: w.log.logger(), Reconcilers: w.custom.all(), RequestTimeout: requestTimeout,
		Sources: controlplane.Sources{PollInterval: pollInterval},
	})
	if err != nil {
		return nil, err
	}
	if w.target, err = local.Start(ctx, local.Options{Controllers: local.DefaultControllers}); err != nil {
		return nil, errors.Join(err, w.cp.Close())
	}
	if err := awaitReady(ctx, w.cp); err != nil {
		return nil, errors.Join(err, w.close())
	}
	if w.api, err = connect(w.cp.Config()); err == nil {
		w.cloud, err = connect(w.target.Config())
	}
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	var system corev1.Namespace
	if err := w.cloud.Get(ctx, client.ObjectKey{Name: "kube-system"}, &system); err != nil {
		return nil, errors.Join(err, w.close())
	}
	w.uid = string(system.UID)
	return w, nil
}

// requestTimeout is short, so that a runtime that hangs is found out within a test.
const requestTimeout = 2 * time.Second

func awaitReady(ctx context.Context, cp *controlplane.ControlPlane) error {
	select {
	case <-cp.Ready():
		return nil
	case err := <-cp.Err():
		return fmt.Errorf("the control plane ended: %w", err)
	case <-ctx.Done():
		return errors.New("the control plane was not ready in time")
	}
}

// connect makes a client that knows the kinds of the tests.
func connect(cfg *rest.Config) (client.WithWatch, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1beta2.AddToScheme, corev1.AddToScheme, eventsv1.AddToScheme, coordinationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	cfg.QPS, cfg.Burst = 500, 1000
	return client.NewWithWatch(cfg, client.Options{Scheme: scheme})
}

func (w *world) close() error {
	return errors.Join(w.cp.Close(), w.target.Close(), os.RemoveAll(w.dir))
}

// logbook keeps a control plane's log.
type logbook struct {
	mu    sync.Mutex
	lines []string // guarded by mu
}

func (j *logbook) logger() logr.Logger {
	return funcr.New(func(prefix, args string) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.lines = append(j.lines, time.Now().Format("05.000 ")+prefix+" "+args)
	}, funcr.Options{Verbosity: 1})
}

// about are the lines that have a text.
func (j *logbook) about(text string) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []string
	for _, line := range j.lines {
		if strings.Contains(line, text) {
			out = append(out, line)
		}
	}
	return out
}
