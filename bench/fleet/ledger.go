package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// ledger books what is written of Kymas, from when it was opened.
type ledger struct {
	watch watch.Interface
	done  chan struct{}

	mu      sync.Mutex
	entries map[string]*entry
	ended   bool
}

// entry is what was written of one Kyma.
type entry struct {
	generation int64
	// statuses is how many writes there were that are not of what is asked for.
	statuses int
	// turns is how often it went from reachable to unreachable or back.
	turns       int
	unreachable bool
	ready       bool
}

// openLedger watches all Kymas until close is called. All are taken for reachable at first.
func (b *bench) openLedger(ctx context.Context) (*ledger, error) {
	var now v1beta2.KymaList
	if err := b.api.client.List(ctx, &now, client.InNamespace(space), client.Limit(1)); err != nil {
		return nil, fmt.Errorf("watching Kymas: %w", err)
	}
	l := &ledger{done: make(chan struct{}), entries: map[string]*entry{}}
	var err error
	from := &client.ListOptions{Namespace: space, Raw: &metav1.ListOptions{ResourceVersion: now.ResourceVersion}}
	if l.watch, err = b.api.client.Watch(ctx, &v1beta2.KymaList{}, from); err != nil {
		return nil, fmt.Errorf("watching Kymas: %w", err)
	}
	go l.keep() // ends with the watch
	return l, nil
}

func (l *ledger) keep() {
	defer close(l.done)
	for event := range l.watch.ResultChan() {
		if k, ok := event.Object.(*v1beta2.Kyma); ok && event.Type == watch.Modified {
			l.book(k)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
}

// begin forgets what was booked: all are taken for reachable.
func (l *ledger) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.entries)
}

// failed says whether the watch has ended before the ledger was closed.
func (l *ledger) failed() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return errLedgerEnded
	}
	return nil
}

var errLedgerEnded = errors.New("the watch of Kymas ended")

func (l *ledger) book(k *v1beta2.Kyma) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[k.Name]
	if e == nil {
		e = &entry{generation: k.Generation}
		if k.Status.ObservedGeneration == k.Generation {
			e.statuses++
		}
		l.entries[k.Name] = e
	} else if e.generation == k.Generation {
		e.statuses++
	}
	e.generation, e.ready = k.Generation, k.Status.State == v1beta2.StateReady && k.Status.ObservedGeneration == k.Generation
	if unreachable := meta.IsStatusConditionFalse(k.Status.Conditions, v1beta2.ConditionReachable); unreachable != e.unreachable {
		e.unreachable, e.turns = unreachable, e.turns+1
	}
}

// of sums the writes of statuses of some Kymas, and says how many of them there were written most, and turned most often.
func (l *ledger) of(names []string) (statuses, mostStatuses, flapped int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range names {
		e := l.entries[name]
		if e == nil {
			continue
		}
		statuses, mostStatuses = statuses+e.statuses, max(mostStatuses, e.statuses)
		if e.turns > 1 {
			flapped++
		}
	}
	return statuses, mostStatuses, flapped
}

// ready says whether all of some Kymas were written, and are ready as they are asked for.
func (l *ledger) ready(names []string) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return false, errLedgerEnded
	}
	for _, name := range names {
		if e := l.entries[name]; e == nil || !e.ready {
			return false, nil
		}
	}
	return true, nil
}

func (l *ledger) close() {
	l.watch.Stop()
	<-l.done
}
