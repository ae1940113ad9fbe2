package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	runtimemetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/kyma-project/mothership/internal/controllers"
)

// Bounds of the HTTP server.
const (
	headerTimeout = 5 * time.Second
	answerTimeout = 30 * time.Second
	drainTimeout  = 3 * time.Second
)

// serve answers at the configured address until ctx ends.
func (cp *ControlPlane) serve(ctx context.Context, mgr ctrl.Manager, fleet *controllers.Fleet) error {
	if cp.cfg.Address == "none" {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cp.cfg.Address)
	if err != nil {
		return fmt.Errorf("listening for metrics and health: %w", err)
	}
	address := "http://" + listener.Addr().String()
	cp.mu.Lock()
	cp.address = address
	cp.mu.Unlock()
	server := &http.Server{Handler: cp.handler(fleet), ReadHeaderTimeout: headerTimeout, WriteTimeout: answerTimeout}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }() // ended by Shutdown below
	publishing, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	if err := publish(publishing, mgr.GetClient(), cp.cfg.Namespace, address); err != nil && ctx.Err() == nil {
		cp.cfg.Log.Error(err, "Publishing the address") // explanations are not worth ending for
	}
	select {
	case err := <-served:
		return fmt.Errorf("serving metrics and health: %w", err)
	case <-ctx.Done():
	}
	stopping, stop := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer stop()
	if err := server.Shutdown(stopping); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("ending the HTTP server: %w", err)
	}
	return nil
}

// handler has the endpoints: /metrics, /healthz (it lives), /readyz (it works), /fleet (what is in hand), and below that
// /<namespace>/<name> (what happens next with a runtime) and /<namespace>/<name>/<component> (with one component of it).
func (cp *ControlPlane) handler(fleet *controllers.Fleet) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(fleet.Collectors()...)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(prometheus.Gatherers{registry, runtimemetrics.Registry}, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		select {
		case <-cp.ready:
			fmt.Fprintln(w, "ok")
		default:
			http.Error(w, "starting", http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("GET /fleet", func(w http.ResponseWriter, _ *http.Request) { cp.answer(w, overview(fleet.Overview(topOfOverview))) })
	explain := func(r *http.Request) Explanation {
		return explanation(fleet.Explain(types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}))
	}
	mux.HandleFunc("GET /fleet/{namespace}/{name}", func(w http.ResponseWriter, r *http.Request) { cp.answer(w, explain(r)) })
	mux.HandleFunc("GET /fleet/{namespace}/{name}/{component}", func(w http.ResponseWriter, r *http.Request) {
		e := explain(r)
		e.Components = slices.DeleteFunc(e.Components, func(c ComponentExplanation) bool { return c.Name != r.PathValue("component") })
		cp.answer(w, e)
	})
	return mux
}

// answer writes JSON.
func (cp *ControlPlane) answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		cp.cfg.Log.V(1).Info("Answering", "reason", err.Error()) // whoever asked is gone
	}
}
