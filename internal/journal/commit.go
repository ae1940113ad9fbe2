package journal

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// Run commits until the context ends, and what is left to be said then. It returns nil.
func (j *Journal) Run(ctx context.Context) error {
	swept := make(chan struct{})
	go func() { // ends with the context
		defer close(swept)
		j.sweepUntil(ctx)
	}()
	pace := rate.NewLimiter(perSecond, atOnce)
	for {
		select {
		case <-ctx.Done():
			<-swept
			j.close(ctx)
			return nil
		case <-j.kick:
			if j.waits() && pace.Wait(ctx) == nil { // else nothing is to be written, or the journal is closed, which commits
				j.commit(ctx)
			}
		}
	}
}

// waits says whether something is to be written.
func (j *Journal) waits() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.queue) > 0
}

// close writes for the last time; who comes later is told that it is too late.
func (j *Journal) close(ctx context.Context) {
	j.mu.Lock()
	j.ended = true
	j.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	j.commit(ctx)
	j.mu.Lock()
	for _, e := range j.queue {
		e.tell(errClosed)
	}
	j.queue = nil
	j.mu.Unlock()
	j.sweep(ctx, true)
}

// commit writes what waits for it as one segment, and tells those who wait. What could not be written goes into the next write.
func (j *Journal) commit(ctx context.Context) {
	entries, more := j.take()
	if len(entries) == 0 {
		return
	}
	lines := make([]Entry, len(entries))
	for i, e := range entries {
		lines[i] = e.Entry
	}
	s := &segment{name: fmt.Sprintf("%s%016x", prefix, rand.Uint64())}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := j.o.Writer.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: j.o.Namespace, Name: s.name, Labels: map[string]string{Label: labelIs}},
		Data:       map[string]string{dataKey: format(lines)},
	})
	j.settle(s, entries, err)
	if more && err == nil { // else with the next one that begins, or the next sweep
		j.wake()
	}
}

// take is what is to be written, as far as one segment takes it.
func (j *Journal) take() (out []*entry, more bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for len(j.queue) > 0 && len(out) < mostLines {
		e := j.queue[0]
		j.queue[0], j.queue = nil, j.queue[1:]
		e.queued = false
		switch {
		case e.removed:
		case !j.o.Owns(e.Runtime) && e.in != nil: // Leave will say so
			e.tell(errNotOwned)
		case !j.o.Owns(e.Runtime):
			j.remove(e, errNotOwned)
		default:
			e.queued = true
			out = append(out, e)
		}
	}
	return out, len(j.queue) > 0
}

// settle books a write. What was written although it is not ours any more, or was ended meanwhile, goes with the next sweep; so does a
// segment of which it is not known whether it was written.
func (j *Journal) settle(s *segment, entries []*entry, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if known := j.segments[s.name]; known != nil { // it was loaded meanwhile
		s = known
	}
	if mayBeThere(err) {
		j.segments[s.name] = s
	}
	for _, e := range entries {
		e.queued = false
		switch {
		case e.removed:
			s.over++
			s.shared = s.shared || !j.o.Owns(e.Runtime)
		case err != nil:
			s.over++
			e.tell(err)
			j.enqueue(e)
		default:
			j.move(e, s)
			e.tell(nil)
		}
	}
}

// move books that a segment has an entry now. The lock is held.
func (j *Journal) move(e *entry, to *segment) {
	if e.in != nil {
		e.in.live--
		e.in.over++
	}
	e.in = to
	to.live++
}

// mayBeThere says whether what a write led to leaves it possible that it was carried out.
func mayBeThere(err error) bool {
	var refused apierrors.APIStatus
	if errors.As(err, &refused) {
		return refused.Status().Code >= http.StatusInternalServerError
	}
	return !utilnet.IsConnectionRefused(err)
}
