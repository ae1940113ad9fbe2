package journal

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sweepUntil deletes what is over, lazily, until the context ends.
func (j *Journal) sweepUntil(ctx context.Context) {
	tick := time.NewTicker(lazily)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			j.merge()
			j.retry()
			j.sweep(ctx, false)
		}
	}
}

// retry has what is in the queue written: what could not be before, and what is to be merged.
func (j *Journal) retry() {
	if j.waits() {
		j.wake()
	}
}

// sweep takes out of the API what is over, as far as that takes no longer than a call may. What fails is left for the next time: nobody
// waits for it.
func (j *Journal) sweep(ctx context.Context, all bool) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for _, s := range j.over(all) {
		if err := j.clear(ctx, s); err != nil && !apierrors.IsConflict(err) {
			return // the API takes nothing now
		}
	}
}

// over are the segments that something is to be taken out of, in any order: all, or those without entries of ours, shared ones, those with
// many lines that are over, and those in which nothing has ended since the last time. Those that have nothing of ours are forgotten.
func (j *Journal) over(all bool) (out []*segment) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for name, s := range j.segments {
		switch {
		case s.over == 0 && s.live == 0:
			delete(j.segments, name)
		case s.over > 0 && (all || s.live == 0 || s.shared || s.over > s.live+mostOver || s.over == s.seen):
			out = append(out, s)
		}
		s.seen = s.over
	}
	return out
}

// clear takes out of a segment what is over.
func (j *Journal) clear(ctx context.Context, s *segment) error {
	j.mu.Lock()
	over, whole := s.over, s.live == 0 && !s.shared
	j.mu.Unlock()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: j.o.Namespace, Name: s.name}}
	var err error
	if whole {
		err = j.o.Writer.Delete(ctx, m)
	} else {
		err = j.rewrite(ctx, m, s)
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("clearing the journal: %w", err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	s.over -= over
	return nil
}

// rewrite takes our lines that are over out of a segment that other lines stay in, or others have lines in.
func (j *Journal) rewrite(ctx context.Context, m *corev1.ConfigMap, s *segment) error {
	if err := j.o.Reader.Get(ctx, client.ObjectKeyFromObject(m), m); err != nil {
		return err
	}
	all := parse(m.Data[dataKey])
	left := j.left(s, all)
	guard := &client.Preconditions{UID: &m.UID, ResourceVersion: &m.ResourceVersion}
	switch len(left) {
	case len(all):
		return nil
	case 0:
		return j.o.Writer.Delete(ctx, m, guard)
	}
	m.Data[dataKey] = format(left)
	return j.o.Writer.Update(ctx, m) // guarded by the version that was read
}

// left are the lines of a segment that stay in it.
func (j *Journal) left(s *segment, lines []Entry) (out []Entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range lines {
		if known := j.entries[e]; !j.o.Owns(e.Runtime) || (known != nil && known.in == s) {
			out = append(out, e)
		}
	}
	return out
}

// merge puts the entries of segments with few into the queue, to be written anew, together, if there are many such segments.
func (j *Journal) merge() {
	j.mu.Lock()
	defer j.mu.Unlock()
	sparse := map[*segment]bool{}
	for _, s := range j.segments {
		if s.live > 0 && s.live < fewLines {
			sparse[s] = true
		}
	}
	if len(sparse) <= mostSparse {
		return
	}
	for _, e := range j.entries {
		if sparse[e.in] {
			j.enqueue(e)
		}
	}
}
