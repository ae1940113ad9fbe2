package arena

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/bench/internal/workload"
)

const (
	parallel = 8
	// goneInterval is the time between two looks at what is not gone yet; goneLooks bounds them to two minutes.
	goneInterval = 50 * time.Millisecond
	goneLooks    = 2400
	// pokeEvery is after how many looks a definition that is not gone is written to: one that is deleted shortly after it was
	// made can stay until somebody does.
	pokeEvery = 20
)

var errStays = errors.New("it does not go away")

// Clean removes all that a contestant may have left of a module, its inventory and namespaces included, and returns when
// nothing of it is left and the server no longer serves what it defined.
func (a *Arena) Clean(ctx context.Context, r *workload.Rendered) error {
	for _, namespace := range []string{r.Namespace, v1beta2.SystemNamespace} {
		if err := a.empty(ctx, namespace); err != nil {
			return fmt.Errorf("cleaning namespace %s: %w", namespace, err)
		}
	}
	// The namespace is the first of the objects. It goes last, and without a controller that would look for its content.
	objects := slices.Clone(r.Objects[1:])
	slices.Reverse(objects)
	if err := each(objects, func(o workload.Object) error { return a.remove(ctx, o) }); err != nil {
		return fmt.Errorf("cleaning: %w", err)
	}
	if err := each(objects, func(o workload.Object) error { return a.untilGone(ctx, o) }); err != nil {
		return fmt.Errorf("cleaning: %w", err)
	}
	for _, namespace := range []string{r.Namespace, v1beta2.SystemNamespace} {
		if err := a.dropNamespace(ctx, namespace); err != nil {
			return fmt.Errorf("cleaning namespace %s: %w", namespace, err)
		}
	}
	return nil
}

func each(objects []workload.Object, do func(workload.Object) error) error {
	var g errgroup.Group
	g.SetLimit(parallel)
	for _, o := range objects {
		g.Go(func() error { return do(o) })
	}
	return g.Wait()
}

// empty removes what contestants keep beside the module's objects: inventories, releases, events.
func (a *Arena) empty(ctx context.Context, namespace string) error {
	for _, resource := range []string{"configmaps", "secrets", "events"} {
		if _, err := a.call(ctx, http.MethodDelete, "/api/v1/namespaces/"+namespace+"/"+resource, "", nil); err != nil {
			return err
		}
	}
	return nil
}

func (a *Arena) remove(ctx context.Context, o workload.Object) error {
	_, err := a.call(ctx, http.MethodDelete, o.Path+"?propagationPolicy=Background", "", nil)
	return err
}

// untilGone waits until an object is gone, and what it defined is no longer served.
func (a *Arena) untilGone(ctx context.Context, o workload.Object) error {
	for look := range goneLooks {
		left, err := a.left(ctx, o)
		if err != nil || left == "" {
			return err
		}
		if left == o.Path && len(o.Serves) > 0 && look%pokeEvery == pokeEvery-1 {
			poke := fmt.Sprintf(`{"metadata":{"annotations":{"bench":"%d"}}}`, look)
			if _, err := a.call(ctx, http.MethodPatch, o.Path, poke, nil); err != nil {
				return err
			}
		}
		if err := pause(ctx, goneInterval); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s: %w", o.Path, errStays)
}

// left is the first address of an object that the server still answers; empty if it is gone.
func (a *Arena) left(ctx context.Context, o workload.Object) (string, error) {
	for _, path := range append([]string{o.Path}, o.Serves...) {
		query := "?limit=1"
		if path == o.Path {
			query = ""
		}
		code, err := a.call(ctx, http.MethodGet, path+query, "", nil)
		if code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable {
			return path, nil // a definition that is just being removed
		}
		if err != nil || code != http.StatusNotFound {
			return path, err
		}
	}
	return "", nil
}

// dropNamespace deletes an empty namespace, whose content nobody has to look for.
func (a *Arena) dropNamespace(ctx context.Context, name string) error {
	path := "/api/v1/namespaces/" + name
	var namespace map[string]any
	code, err := a.call(ctx, http.MethodDelete, path, "", &namespace)
	if err != nil || code == http.StatusNotFound {
		return err
	}
	namespace["spec"] = map[string]any{"finalizers": []any{}}
	body, err := json.Marshal(namespace)
	if err != nil {
		return err
	}
	if _, err := a.call(ctx, http.MethodPut, path+"/finalize", string(body), nil); err != nil {
		return err
	}
	return a.untilGone(ctx, workload.Object{Path: path})
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

var errMissing = errors.New("not all objects are there")

// Complete says, by its error, which objects of a module the server does not have.
func (a *Arena) Complete(ctx context.Context, r *workload.Rendered) error {
	missing := make([]string, len(r.Objects))
	var g errgroup.Group
	g.SetLimit(parallel)
	for i, o := range r.Objects {
		g.Go(func() error {
			code, err := a.call(ctx, http.MethodGet, o.Path, "", nil)
			if code == http.StatusNotFound {
				missing[i] = o.Path
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("looking for the objects of %s: %w", r.Case.Name, err)
	}
	missing = slices.DeleteFunc(missing, func(s string) bool { return s == "" })
	if len(missing) > 0 {
		return fmt.Errorf("looking for the objects of %s: %w: %s", r.Case.Name, errMissing, strings.Join(missing[:min(5, len(missing))], " "))
	}
	return nil
}
