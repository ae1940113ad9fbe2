package status

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// What a wave of work over the fleet reports, such as that the next thousand runtimes have the new version, is for nobody in particular,
// and each of it costs the API more than the work itself. So it is written when less is going on, or a while later.
const (
	// lullPoll is how often it is looked whether less is going on, while something waits for that.
	lullPoll = 50 * time.Millisecond
	// maxLull is after how long a report is let through at the API's pace, come what may: about as long as a wave over 10,000 runtimes takes.
	maxLull = time.Minute
	// maxPatient is how many reports may wait: for each of them the journal has an entry, by which whoever starts after a process that was
	// killed looks at the module again.
	maxPatient = 20_000
)

// patient is a report that waits, in the order of their arrival.
type patient struct {
	kyma  types.NamespacedName
	since time.Time
}

// lull has changes written when less is going on. Where too many wait for that already, the oldest is written. Whatever else is reported
// on the Kyma takes with it what waits.
func (w *Writer) lull(kyma types.NamespacedName, c *changes) {
	if !w.o.Owns(kyma) {
		return
	}
	w.keep(kyma, c, false)
	w.wait(kyma)
	w.look()
}

func (w *Writer) wait(kyma types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ending {
		w.queue.Add(kyma)
		return
	}
	if len(w.patient) == maxPatient {
		w.letFirstThrough()
	}
	w.account(kyma).lulled = true
	w.patient = append(w.patient, patient{kyma, time.Now()})
	if len(w.patient) == 1 {
		select {
		case w.waits <- struct{}{}:
		default: // it is known already
		}
	}
}

// letFirstThrough has the first of those that wait written, unless it was already, with something else. The lock is held.
func (w *Writer) letFirstThrough() (writes int) {
	kyma := w.patient[0].kyma
	w.patient = w.patient[1:]
	a := w.open[kyma]
	if a == nil || !a.lulled {
		return 0
	}
	a.lulled = false
	w.queue.Add(kyma)
	return 1
}

// letThrough has those that wait written, until the context ends.
func (w *Writer) letThrough(ctx context.Context) {
	tick := time.NewTicker(lullPoll)
	tick.Stop()
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.waits:
			tick.Reset(lullPoll)
		case now := <-tick.C:
			if !w.letSomeThrough(now) {
				tick.Stop()
			}
		}
	}
}

// letSomeThrough has as many of those that wait written as does not keep others waiting, or, of those that have waited for too long, as
// does not hold up the work itself. It says whether more do.
func (w *Writer) letSomeThrough(now time.Time) (more bool) {
	defer w.look()
	busy := w.o.Busy()
	w.mu.Lock()
	defer w.mu.Unlock()
	written := w.queue.Len()
	for len(w.patient) > 0 {
		room := w.o.MaxBacklog / 4
		if now.Sub(w.patient[0].since) >= maxLull {
			room *= 3 // still less than what has Behind told
		} else if busy {
			return true
		}
		if written >= room {
			return true
		}
		written += w.letFirstThrough()
	}
	w.patient = nil // for the garbage collector
	return false
}
