package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sight is an event of a ConfigMap, and when it arrived.
type sight struct {
	at      time.Time
	deleted bool
	config  *corev1.ConfigMap
}

// eye watches the modules' ConfigMaps in a runtime. Events are stamped as they arrive.
type eye struct {
	watch  watch.Interface
	sights chan sight
}

// sightsKept is how many events may wait to be looked at.
const sightsKept = 4096

// open watches until close is called.
func open(ctx context.Context, c client.WithWatch) (*eye, error) {
	w, err := c.Watch(ctx, &corev1.ConfigMapList{}, client.InNamespace(target))
	if err != nil {
		return nil, fmt.Errorf("watching the runtime: %w", err)
	}
	e := &eye{watch: w, sights: make(chan sight, sightsKept)}
	go e.look() // ends with the watch
	return e, nil
}

func (e *eye) look() {
	defer close(e.sights)
	for event := range e.watch.ResultChan() {
		if c, ok := event.Object.(*corev1.ConfigMap); ok {
			e.sights <- sight{at: time.Now(), deleted: event.Type == watch.Deleted, config: c}
		}
	}
}

func (e *eye) close() { e.watch.Stop() }

// see waits for an event of a ConfigMap for which ok holds, and returns when it came.
func (e *eye) see(ctx context.Context, name string, ok func(sight) bool) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, patience.Bound)
	defer cancel()
	for {
		select {
		case s, open := <-e.sights:
			if !open {
				return time.Time{}, errors.New("the watch of the runtime ended")
			}
			if s.config.Name == name && ok(s) {
				return s.at, nil
			}
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("waiting for ConfigMap %s in the runtime: %w", name, ctx.Err())
		}
	}
}
