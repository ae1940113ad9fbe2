package controllers

import (
	"context"
	"time"

	"github.com/kyma-project/mothership/internal/engine"
	"github.com/kyma-project/mothership/internal/source"
)

// ask tells the engine that a run waits for its runtime. What is asked outside of a run concerns nobody.
func ask(ctx context.Context, ahead bool) (answered func(ok bool)) {
	if r := engine.RunOf(ctx); r != nil && ahead {
		return r.AskAhead()
	} else if r != nil {
		return r.Ask()
	}
	return func(bool) {}
}

// patientSources tell the engine of runs that wait for a source, so that a server that hangs holds up only those who need it.
type patientSources struct{ source.Fetcher }

// Fetch fetches.
func (p patientSources) Fetch(ctx context.Context, ref source.Ref) (*source.Tree, error) {
	defer away(ctx)()
	return p.Fetcher.Fetch(ctx, ref)
}

// longRendering is how long a run may wait for a rendering before others take its place: longer than most take.
const longRendering = time.Second

// away tells the engine of a run that waits for somebody other than its runtime: for a rendering, so that charts that loop hold up only
// those who need them. Call back when that is over.
func away(ctx context.Context) (back func()) {
	if r := engine.RunOf(ctx); r != nil {
		return r.Away()
	}
	return func() {}
}
