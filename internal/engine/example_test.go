package engine_test

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/kyma-project/mothership/internal/engine"
)

// The cluster needs the network's name: nothing says in which order the two are made.
func Example() {
	var (
		e       *engine.Engine
		network atomic.Value // the fact, where it is stored
	)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	e = engine.New(engine.RunnerFunc(func(_ context.Context, r *engine.Run) engine.Result {
		if r.Key().Component == "network" {
			fmt.Println("network: made")
			network.Store("vnet-1")
			e.Wake(r.Key().Runtime, "network.name") // stored first, announced afterwards
			return engine.Result{Outcome: engine.Done}
		}
		r.Await("network.name") // registered first, looked at afterwards
		name := network.Load()
		if name == nil {
			fmt.Println("cluster: waits")
			return engine.Result{Outcome: engine.Waiting, Message: "needs network.name"}
		}
		fmt.Println("cluster: made in", name)
		stop()
		return engine.Result{Outcome: engine.Done}
	}), engine.Options{Workers: 1})

	e.Add(engine.Key{Runtime: "eu-1", Component: "cluster"}, engine.PriorityChange)
	e.Add(engine.Key{Runtime: "eu-1", Component: "network"}, engine.PriorityChange)
	if err := e.Run(ctx); err != nil {
		panic(err)
	}
	// Output:
	// cluster: waits
	// network: made
	// cluster: made in vnet-1
}

// Inspect is what "explain" shows of a component.
func ExampleEngine_Inspect() {
	ran := make(chan struct{})
	e := engine.New(engine.RunnerFunc(func(context.Context, *engine.Run) engine.Result {
		return engine.Result{Outcome: engine.Failed, Message: "chart not found"}
	}), engine.Options{Observe: func(engine.Event) { close(ran) }})
	ctx, stop := context.WithCancel(context.Background())
	e.Add(engine.Key{Runtime: "eu-1", Component: "istio"}, engine.PriorityChange)
	ended := make(chan error)
	go func() { ended <- e.Run(ctx) }()
	<-ran
	stop()
	<-ended
	for _, c := range e.Inspect("eu-1").Components {
		fmt.Printf("%s is %s after %d attempt: %s\n", c.Component, c.Phase, c.Attempts, c.Message)
	}
	// Output:
	// istio is failed after 1 attempt: chart not found
}
