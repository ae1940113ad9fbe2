package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/controlplane"
	"github.com/kyma-project/mothership/internal/infra/local"
)

const (
	// space is the namespace of the control plane's objects.
	space = controlplane.DefaultNamespace
	// watchdog bounds every wait.
	watchdog = 2 * time.Minute
	// callTimeout bounds every request of the demo's own.
	callTimeout = 30 * time.Second
)

// fleet is a control plane with its runtimes, in a temporary folder.
type fleet struct {
	dir, kubectl string
	// chart is cert-manager's, of version chartVersion.
	chart, chartVersion string
	scheme              *runtime.Scheme
	control             *controlplane.ControlPlane
	client              client.WithWatch
	screen              *screen
	begun               time.Time
	acts                int
}

// openFleet makes the folder, and finds what the demo needs. Nothing runs yet.
func openFleet(ctx context.Context) (_ *fleet, err error) {
	f := &fleet{begun: time.Now(), screen: newScreen(os.Stdout), scheme: runtime.NewScheme()}
	for _, add := range []func(*runtime.Scheme) error{v1beta2.AddToScheme, corev1.AddToScheme, appsv1.AddToScheme} {
		if err := add(f.scheme); err != nil {
			return nil, fmt.Errorf("making the scheme: %w", err)
		}
	}
	assets, err := local.Assets()
	if err != nil {
		return nil, err
	}
	f.kubectl = filepath.Join(assets, "kubectl")
	if f.chart, f.chartVersion, err = certManagerChart(ctx); err != nil {
		return nil, err
	}
	if f.dir, err = os.MkdirTemp("", "mothership-demo-"); err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	return f, nil
}

// start starts the control plane and waits until it works.
func (f *fleet) start(ctx context.Context) error {
	cp, err := controlplane.Start(ctx, controlplane.Config{Local: &controlplane.Local{Dir: f.dir}})
	if err != nil {
		return err
	}
	f.control = cp
	timer := time.NewTimer(watchdog)
	defer timer.Stop()
	select {
	case <-cp.Ready():
	case err := <-cp.Err():
		return errors.Join(err, context.Cause(ctx))
	case <-timer.C:
		return fmt.Errorf("the control plane is not ready after %s", watchdog)
	}
	f.client, err = client.NewWithWatch(cp.Config(), client.Options{Scheme: f.scheme})
	if err != nil {
		return fmt.Errorf("making a client of the control plane: %w", err)
	}
	return nil
}

// stop stops the control plane with all its runtimes, in order.
func (f *fleet) stop() error {
	if f.control == nil {
		return nil
	}
	cp := f.control
	f.control = nil
	return cp.Close()
}

// close stops everything, removes the folder and makes sure that nothing is left.
func (f *fleet) close() error {
	err := f.stop()
	if left := processesOf(f.dir); len(left) > 0 {
		err = errors.Join(err, fmt.Errorf("processes were left running: %s", strings.Join(left, ", ")))
	}
	return errors.Join(err, os.RemoveAll(f.dir))
}

// processesOf are those whose command line or working directory is in a folder.
func processesOf(dir string) []string {
	var out []string
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		process := filepath.Dir(link)
		cwd, _ := os.Readlink(link) // empty for what has ended, or is not ours
		command, _ := os.ReadFile(filepath.Join(process, "cmdline"))
		if strings.HasPrefix(cwd, dir) || strings.Contains(string(command), dir) {
			name, _, _ := strings.Cut(string(command), "\x00")
			out = append(out, filepath.Base(name)+" "+filepath.Base(process))
		}
	}
	return out
}

// access is the way to a runtime by its own kubeconfig, as anybody else would go.
type access struct {
	file   string // the kubeconfig
	client client.WithWatch
}

// access reads a runtime's kubeconfig from its Secret.
func (f *fleet) access(ctx context.Context, name string) (*access, error) {
	var secret corev1.Secret
	key := types.NamespacedName{Namespace: space, Name: name + "-kubeconfig"}
	if err := f.client.Get(ctx, key, &secret); err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of %s: %w", name, err)
	}
	data := secret.Data["kubeconfig"]
	file := filepath.Join(f.dir, name+".kubeconfig")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return nil, fmt.Errorf("writing the kubeconfig of %s: %w", name, err)
	}
	cfg, err := clientcmd.RESTConfigFromKubeConfig(data)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of %s: %w", name, err)
	}
	c, err := f.clientOf(cfg)
	return &access{file: file, client: c}, err
}

func (f *fleet) clientOf(cfg *rest.Config) (client.WithWatch, error) {
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: f.scheme})
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return c, nil
}

// create creates objects of the control plane.
func (f *fleet) create(ctx context.Context, objects ...client.Object) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for _, obj := range objects {
		if err := f.client.Create(ctx, obj); err != nil {
			return fmt.Errorf("creating %T %s: %w", obj, obj.GetName(), err)
		}
	}
	return nil
}

// change reads an object of the control plane, changes it and writes it, as kubectl edit would.
func change[T client.Object](ctx context.Context, f *fleet, name string, obj T, edit func(T)) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := f.client.Get(ctx, types.NamespacedName{Namespace: space, Name: name}, obj); err != nil {
		return fmt.Errorf("reading %T %s: %w", obj, name, err)
	}
	before, ok := obj.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("changing %T %s: it is not an object", obj, name)
	}
	edit(obj)
	if err := f.client.Patch(ctx, obj, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("changing %T %s: %w", obj, name, err)
	}
	return nil
}

// named is the metadata of an object of the control plane.
func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: space, Name: name} }
