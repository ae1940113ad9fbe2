package contestant

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/fluxcd/cli-utils/pkg/kstatus/polling"
	"github.com/fluxcd/pkg/ssa"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/kyma-project/mothership/bench/internal/workload"
)

// fluxConcurrency is the default of kustomize-controller's --concurrent-ssa.
const fluxConcurrency = 4

// Flux decodes the objects; what it returns applies them as kustomize-controller does: in stages, with the default options, waiting for
// definitions, with connections and a discovery of its own.
func Flux(cfg *rest.Config, objects []workload.Object) (func(context.Context) error, error) {
	decoded := make([]*unstructured.Unstructured, len(objects))
	for i, o := range objects {
		decoded[i] = &unstructured.Unstructured{}
		if err := json.Unmarshal(o.Body, decoded[i]); err != nil {
			return nil, fmt.Errorf("reading %s: %w", o.Path, err)
		}
	}
	return func(ctx context.Context) error { return applyByFlux(ctx, cfg, decoded) }, nil
}

func applyByFlux(ctx context.Context, cfg *rest.Config, objects []*unstructured.Unstructured) error {
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	defer httpClient.CloseIdleConnections()
	mapper, err := apiutil.NewDynamicRESTMapper(cfg, httpClient)
	if err != nil {
		return fmt.Errorf("making a mapper: %w", err)
	}
	c, err := client.New(cfg, client.Options{HTTPClient: httpClient, Mapper: mapper})
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	poller := polling.NewStatusPoller(c, mapper, polling.Options{})
	manager := ssa.NewResourceManager(c, poller, ssa.Owner{Field: "bench", Group: "bench.example.org"})
	manager.SetConcurrency(fluxConcurrency)
	_, err = manager.ApplyAllStaged(ctx, objects, ssa.DefaultApplyOptions())
	return err
}
