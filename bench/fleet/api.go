package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/infra/local"
)

// api is the control plane's API: a kube-apiserver with its etcd, which goes on while the product is restarted.
type api struct {
	server     *local.Server
	kubeconfig string // its file
	client     client.WithWatch
}

// apiGCPercent is the API server's GOGC. With Go's default it collects its garbage for a second of each three at this rate of changes, and
// uses up both cores for that time: what of a change is late then says nothing of the product.
const apiGCPercent = 400

// openAPI starts the servers with their state in a folder.
func openAPI(ctx context.Context, folder string) (_ *api, err error) {
	a := &api{kubeconfig: filepath.Join(folder, "kubeconfig")}
	a.server, err = local.Start(ctx, local.Options{
		Dir: filepath.Join(folder, "api"), Controllers: local.DefaultControllers, GCPercent: apiGCPercent,
	})
	if err != nil {
		return nil, err
	}
	if err := a.prepare(); err != nil {
		return nil, errors.Join(err, a.close())
	}
	return a, nil
}

// prepare writes the kubeconfig and makes the client.
func (a *api) prepare() error {
	kubeconfig, err := a.server.Kubeconfig()
	if err != nil {
		return err
	}
	if err := os.WriteFile(a.kubeconfig, kubeconfig, 0o600); err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1beta2.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			return fmt.Errorf("making the scheme: %w", err)
		}
	}
	cfg := a.server.Config()
	cfg.QPS, cfg.Burst = -1, 0 // the benchmark is not to wait for itself
	if a.client, err = client.NewWithWatch(cfg, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	return nil
}

func (a *api) close() error {
	if a == nil || a.server == nil {
		return nil
	}
	return a.server.Close()
}
