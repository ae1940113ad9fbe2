package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kyma-project/mothership/sim/dial"
)

// sickness is what is wrong with a share of the fleet: of each twenty runtimes, the first two are black holes, and so on.
var sickness = []struct {
	name  string
	of20  int
	dials dial.Dials
}{{"black hole", 2, dial.Dials{BlackHole: true}}, {"401", 1, dial.Dials{Unauthorized: true}}, {"503", 1, dial.Dials{Fail: 1}}}

// sick compares changes of the healthy before, while and after a fifth of the fleet is sick and has something to do.
func (b *bench) sick(ctx context.Context) error {
	groups, sick := b.choose()
	if len(sick) == 0 {
		return nil
	}
	healthy := b.spread(b.o.changes, sick)
	s := &Sick{Runtimes: len(sick), PerMinute: map[string]float64{}}
	b.results.Sick = s
	var err error
	if s.Before, err = b.window(ctx, healthy); err != nil {
		return err
	}
	for i, kind := range sickness {
		if err := b.sim.dial(ctx, kind.dials, groups[i]); err != nil {
			return err
		}
	}
	if err := b.touch(ctx, slices.Concat(groups...)); err != nil {
		return err
	}
	if err := pause(ctx, b.o.sick/2); err != nil { // until the breakers are open
		return err
	}
	if _, err := b.sim.requests(ctx, true); err != nil {
		return err
	}
	begun := time.Now()
	if s.During, err = b.window(ctx, healthy); err != nil {
		return err
	}
	if err := pause(ctx, time.Until(begun.Add(b.o.sick))); err != nil {
		return err
	}
	minutes := time.Since(begun).Minutes()
	for i, kind := range sickness {
		n, err := b.sim.requestsOf(ctx, groups[i])
		if err != nil {
			return err
		}
		s.PerMinute[kind.name] = float64(n) / float64(max(len(groups[i]), 1)) / minutes
		s.Requests += n
	}
	s.Minutes = minutes
	return b.recover(ctx, s, healthy, slices.Concat(groups...))
}

// recover makes all well again.
func (b *bench) recover(ctx context.Context, s *Sick, healthy []int, names []string) error {
	begun := time.Now()
	if err := b.sim.dial(ctx, dial.Dials{}, names); err != nil {
		return err
	}
	if err := b.allReady(ctx, b.fleet+1); err != nil {
		return fmt.Errorf("after recovery: %w", err)
	}
	s.RecoverySeconds = time.Since(begun).Seconds()
	var err error
	s.After, err = b.window(ctx, healthy)
	return err
}

// choose says who gets sick, by kind of sickness and as a set.
func (b *bench) choose() (groups [][]string, sick map[int]bool) {
	groups, sick = make([][]string, len(sickness)), map[int]bool{}
	for i := range b.fleet {
		turn := i % 20
		for j, kind := range sickness {
			if turn >= 0 && turn < kind.of20 {
				groups[j], sick[i] = append(groups[j], runtimeName(i)), true
			}
			turn -= kind.of20
		}
	}
	return groups, sick
}

// touch gives each of some runtimes something to do.
func (b *bench) touch(ctx context.Context, names []string) error {
	group, touching := errgroup.WithContext(ctx)
	group.SetLimit(creators)
	for _, name := range names {
		b.serial++
		text := fmt.Sprintf("change %d", b.serial)
		group.Go(func() error { return b.setText(touching, name, text) })
	}
	return group.Wait()
}
