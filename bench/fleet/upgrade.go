package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/bench/internal/wait"
)

// upgradePoll is the time between two looks at how much is applied, for each cluster: the simulator adds up all of them for each look, and
// has better to do.
const upgradePoll = 25 * time.Microsecond

// upgrade has a module upgraded on all runtimes, and compares that with bare loops of the same requests, before and after.
func (b *bench) upgrade(ctx context.Context) error {
	objects, err := b.prepareLoop(ctx)
	if err != nil {
		return err
	}
	before, err := b.runLoop(ctx, objects, 0)
	if err != nil {
		return err
	}
	for i := range b.o.turns {
		u := Upgrade{Before: before}
		if err := b.quiet(ctx); err != nil {
			return err
		}
		asked, err := b.api.requests(ctx)
		if err != nil {
			return err
		}
		u.Share, err = b.spend(func() error {
			u.Product, u.Requests, err = b.upgradeAll(ctx, fmt.Sprintf("%d.0.0", i+2))
			return err
		})
		if err != nil {
			return err
		}
		u.API, err = b.api.requestsSince(ctx, asked)
		if err != nil {
			return err
		}
		if u.After, err = b.runLoop(ctx, objects, i+1); err != nil {
			return err
		}
		before = u.After
		b.results.Upgrades = append(b.results.Upgrades, u)
	}
	return nil
}

// runLoop has the loop apply the objects of one more release, when all is quiet.
func (b *bench) runLoop(ctx context.Context, objects []object, turn int) (l Loop, err error) {
	bodies, err := patches(objects, fmt.Sprintf("%d.0.0", turn+2))
	if err != nil {
		return l, err
	}
	if err := b.quiet(ctx); err != nil {
		return l, err
	}
	l.Share, err = b.spend(func() error {
		l.Applied, err = b.loop(ctx, bodies)
		return err
	})
	return l, err
}

// upgradeAll publishes a version of the last module, and waits until all have it.
func (b *bench) upgradeAll(ctx context.Context, version string) (Applied, map[string]int, error) {
	var a Applied
	module := moduleName(b.o.modules - 1)
	if err := b.create(ctx, b.templateOf(module, version)); err != nil {
		return a, nil, err
	}
	if _, err := b.plane.rests(ctx, b.fleet+1, fleetPatience); err != nil {
		return a, nil, err
	}
	if _, err := b.sim.requests(ctx, true); err != nil {
		return a, nil, err
	}
	before, err := b.shares()
	if err != nil {
		return a, nil, err
	}
	begun := time.Now()
	patch := fmt.Appendf(nil, `{"spec": {"channels": [{"channel": %q, "version": %q}]}}`, channel, version)
	if err := b.api.client.Patch(ctx, &v1beta2.ModuleReleaseMeta{ObjectMeta: named(module)}, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return a, nil, fmt.Errorf("upgrading %s: %w", module, err)
	}
	want := (b.fleet + 1) * b.o.objects
	writes := want + b.fleet + 1 // the inventory of each is written once, after its objects
	applying := wait.Patience{Bound: fleetPatience.Bound, Poll: max(time.Duration(b.fleet)*upgradePoll, time.Millisecond)}
	err = applying.Until(ctx, "all objects are applied", func(ctx context.Context) (bool, error) {
		counts, err := b.sim.requests(ctx, false)
		return counts["apply"] >= writes, err
	})
	if err != nil {
		return a, nil, err
	}
	applied := time.Now()
	atApplied, err := b.shares()
	if err != nil {
		return a, nil, err
	}
	ended, err := b.plane.rests(ctx, b.fleet+1, wavePatience)
	if err != nil {
		return a, nil, err
	}
	after, err := b.shares()
	if err != nil {
		return a, nil, err
	}
	counts, err := b.sim.requests(ctx, true)
	return Applied{
		Objects: want, Seconds: applied.Sub(begun).Seconds(), Reported: ended.Sub(begun).Seconds(), CPU: after.since(before)[productShare],
		Share: atApplied.since(before),
	}, counts, err
}
