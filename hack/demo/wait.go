package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// redraw is how often the table is drawn anew, for its clock.
const redraw = 200 * time.Millisecond

// awaitFleet watches the Kymas, and shows them, until ok holds. The watchdog's error says what was not ready.
func (f *fleet) awaitFleet(ctx context.Context, ok func(kymas) bool) (kymas, error) {
	ctx, cancel := context.WithTimeout(ctx, watchdog)
	defer cancel()
	begun, now := time.Now(), kymas{}
	tick := time.NewTicker(redraw)
	defer tick.Stop()
	for ctx.Err() == nil { // a watch ends when its server says so
		w, err := f.client.Watch(ctx, &v1beta2.KymaList{}, client.InNamespace(space))
		if err != nil {
			return nil, fmt.Errorf("watching the Kymas: %w", err)
		}
		done := f.follow(ctx, w, now, tick.C, begun, ok)
		w.Stop()
		if done {
			f.screen.settle(now, begun)
			return now, nil
		}
	}
	f.screen.settle(now, begun)
	return nil, fmt.Errorf("waiting for the fleet: %w: %s", ctx.Err(), unready(now))
}

// follow shows what a watch tells until ok holds; false if the watch or the context ended before.
func (f *fleet) follow(ctx context.Context, w watch.Interface, now kymas, tick <-chan time.Time, begun time.Time, ok func(kymas) bool) bool {
	for {
		select {
		case e, open := <-w.ResultChan():
			if !open {
				return false
			}
			k, is := e.Object.(*v1beta2.Kyma)
			if !is {
				return false
			}
			now[k.Name] = k
			if e.Type == watch.Deleted {
				delete(now, k.Name)
			}
			f.screen.show(now, begun)
			if ok(now) {
				return true
			}
		case <-tick:
			if f.screen.terminal {
				f.screen.show(now, begun)
			}
		case <-ctx.Done():
			return false
		}
	}
}

// allReady says whether every runtime has what it shall have.
func allReady(now kymas) bool {
	for _, k := range now {
		if !ready(k) {
			return false
		}
	}
	return len(now) == len(runtimes)
}

func ready(k *v1beta2.Kyma) bool {
	return k.Status.State == v1beta2.StateReady && k.Status.ObservedGeneration == k.Generation && len(k.Status.Modules) > 0
}

// unready names what is not ready, and why.
func unready(now kymas) string {
	var out []string
	for _, name := range sorted(now) {
		k := now[name]
		if c := conditionOf(k, v1beta2.ConditionReady); c != nil && c.Status != metav1.ConditionTrue {
			out = append(out, name+": "+c.Message)
		}
		for _, m := range k.Status.Modules {
			if m.State != v1beta2.StateReady {
				out = append(out, fmt.Sprintf("%s/%s is %s: %s", name, m.Name, m.State, m.Message))
			}
		}
	}
	if len(out) == 0 {
		return "all are ready, but not as was asked for"
	}
	return strings.Join(out, "; ")
}

func conditionOf(k *v1beta2.Kyma, name string) *metav1.Condition {
	return meta.FindStatusCondition(k.Status.Conditions, name)
}
