package journal

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Run commits until the context ends, and what is left to be said then. It returns nil.
func (j *Journal) Run(ctx context.Context) error {
	tick := time.NewTicker(lazily)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			j.close(ctx)
			return nil
		case <-j.kick:
		case <-tick.C:
		}
		j.commit(ctx)
	}
}

// close writes for the last time; who comes later is told that it is too late.
func (j *Journal) close(ctx context.Context) {
	j.mu.Lock()
	j.ended = true
	j.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	j.commit(ctx)
}

// commit writes the slots that have changed, and tells those who wait for it. What could not be written is tried again with the next
// commit.
func (j *Journal) commit(ctx context.Context) {
	c := j.take()
	if len(c.data) == 0 {
		c.tell(nil)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := j.write(ctx, c.data)
	j.settle(c, err)
	c.tell(err)
}

// commit is one write.
type commit struct {
	data    map[string]*string // by slot; nil for one without entries
	slots   map[Slot]types.NamespacedName
	entries []Entry
	waiting []chan error
}

func (c *commit) tell(err error) {
	for _, wait := range c.waiting {
		wait <- err // it has room
	}
}

// take is all that there is to be written.
func (j *Journal) take() *commit {
	j.mu.Lock()
	defer j.mu.Unlock()
	c := &commit{data: map[string]*string{}, slots: j.dirty, waiting: j.waiting}
	j.dirty, j.waiting = map[Slot]types.NamespacedName{}, nil
	maps.DeleteFunc(c.slots, func(_ Slot, runtime types.NamespacedName) bool { return !j.o.Owns(runtime) })
	of := map[Slot][]Entry{}
	for e := range j.entries {
		slot := j.o.SlotOf(e.Runtime)
		if _, changed := c.slots[slot]; changed {
			of[slot] = append(of[slot], e)
			c.entries = append(c.entries, e)
		}
	}
	for slot := range c.slots {
		key := strconv.Itoa(int(slot))
		c.data[key] = nil
		if len(of[slot]) > 0 {
			text := format(of[slot])
			c.data[key] = &text
		}
	}
	return c
}

// settle books a write. Entries that were removed meanwhile are dirty again already.
func (j *Journal) settle(c *commit, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil {
		maps.Copy(j.dirty, c.slots)
		return
	}
	for _, e := range c.entries {
		if known := j.entries[e]; known != nil {
			known.durable = true
		}
	}
}

// write patches the ConfigMap, or makes it.
func (j *Journal) write(ctx context.Context, data map[string]*string) error {
	body, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		return fmt.Errorf("serialising the journal: %w", err)
	}
	meta := metav1.ObjectMeta{Namespace: j.o.Namespace, Name: Name}
	patch := func() error {
		return j.o.Writer.Patch(ctx, &corev1.ConfigMap{ObjectMeta: meta}, client.RawPatch(types.MergePatchType, body))
	}
	err = patch()
	if !apierrors.IsNotFound(err) {
		return err
	}
	if err := j.o.Writer.Create(ctx, &corev1.ConfigMap{ObjectMeta: meta}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return patch()
}
