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
	// maxLull is how long a report waits at most.
	maxLull = 10 * time.Second
	// maxPatient is how many Kymas may wait: for each of them, the journal has an entry.
	maxPatient = 2000
)

// patient is a Kyma whose reports wait, in the order of their arrival.
type patient struct {
	kyma  types.NamespacedName
	since time.Time
}

// lull has changes written when less is going on, unless too many wait for that already. Whatever else is reported on the Kyma takes
// with it what waits.
func (w *Writer) lull(kyma types.NamespacedName, c *changes) {
	if !w.o.Owns(kyma) {
		return
	}
	w.keep(kyma, c, false)
	if !w.wait(kyma) {
		w.queue.Add(kyma)
		w.look()
	}
}

func (w *Writer) wait(kyma types.NamespacedName) (waits bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ending || len(w.patient) >= maxPatient {
		return false
	}
	w.account(kyma).lulled = true
	w.patient = append(w.patient, patient{kyma, time.Now()})
	select {
	case w.waits <- struct{}{}:
	default: // it is known already
	}
	return true
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

// letSomeThrough has as many of those that wait written as does not keep others waiting. It says whether more do.
func (w *Writer) letSomeThrough(now time.Time) (more bool) {
	busy := w.o.Busy()
	w.mu.Lock()
	defer w.mu.Unlock()
	room := w.o.MaxBacklog/4 - w.queue.Len() // less than what has Behind told
	n := 0
	for n < len(w.patient) && n < room && (!busy || now.Sub(w.patient[n].since) >= maxLull) {
		kyma := w.patient[n].kyma
		if a := w.open[kyma]; a != nil {
			a.lulled = false
			w.queue.Add(kyma)
		}
		n++
	}
	w.patient = w.patient[n:]
	if len(w.patient) == 0 {
		w.patient = nil // for the garbage collector
	}
	return w.patient != nil
}
