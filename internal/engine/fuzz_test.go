package engine

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// FuzzEngine does at random everything that can be done to an engine, in virtual time, and compares it with the model
// after each step. A step is three bytes: what, to whom, how.
func FuzzEngine(f *testing.F) {
	f.Add([]byte("\x00\x00\x03\x05\x00\x00"))                                                 // add, done
	f.Add([]byte("\x00\x01\x03\x05\x00\x02\x06\x00\x01\x05\x00\x02\x06\x00\x02"))             // retries
	f.Add([]byte("\x00\x01\x03\x07\x00\x00\x05\x00\x01\x03\x00\x00\x05\x00\x00"))             // wait, wake
	f.Add([]byte("\x00\x01\x03\x05\x00\x06\x05\x00\x06\x06\x00\x03\x05\x00\x00"))             // breaker, probe
	f.Add([]byte("\x00\x01\x03\x00\x01\x03\x08\x00\x00\x05\x00\x05\x08\x00\x00\x05\x00\x00")) // superseded
	f.Add([]byte("\x00\x01\x03\x01\x01\x00\x08\x00\x00\x04\x00\x00\x00\x01\x00\x05\x00\x00")) // preempt, forget, add
	f.Add([]byte("\x02\x01\x03\x02\x05\x02\x06\x00\x06\x09\x00\x00\x05\x00\x00\x05\x00\x01")) // timers, reset
	f.Add([]byte("\x00\x01\x03\x0a\x00\x00\x06\x00\x03\x0b\x00\x00\x05\x00\x00"))             // ask, set aside, answered
	f.Fuzz(fight)
}

// TestAgainstTheModel is what the fuzz target does, with steps that are the same each time.
func TestAgainstTheModel(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 75 {
		steps := make([]byte, 3*(1+random.IntN(maxSteps)))
		for i := range steps {
			steps[i] = byte(random.Uint32())
		}
		if i%2 == 0 { // more runs end, and time goes on
			for i := 0; i < len(steps); i += 6 {
				steps[i] = pick([]byte{5, 5, 5, 6}, steps[i])
			}
		}
		fight(t, steps)
	}
}

// maxSteps bounds a fight.
const maxSteps = 100

// fight does the steps to both, three bytes each.
func fight(t *testing.T, steps []byte) {
	synctest.Test(t, func(t *testing.T) {
		d := newDuel(t)
		for ; len(steps) >= 3 && d.count < maxSteps && !t.Failed(); steps = steps[3:] {
			d.step(steps[0], steps[1], steps[2])
		}
		d.end()
	})
}

// duel is an engine and its model.
type duel struct {
	t       *testing.T
	engine  *Engine
	model   *model
	results sync.Map // chan Result by *Run
	stop    context.CancelFunc
	count   int
}

func newDuel(t *testing.T) *duel {
	t.Helper()
	d := &duel{t: t}
	d.engine = New(RunnerFunc(func(_ context.Context, r *Run) Result {
		result, _ := d.results.Load(r)
		return <-result.(chan Result)
	}), Options{Workers: 3, MaxRuns: 5, Probes: 1, PerRuntime: 2, Patience: time.Second, RunTimeout: 1e6 * time.Hour})
	d.engine.random = func() float64 { return 0.5 }
	d.model = newModel(t, d.engine)
	d.engine.began = func(r *Run) {
		d.results.Store(r, make(chan Result, 1))
		d.model.began(r)
	}
	ctx, stop := context.WithCancel(t.Context())
	d.stop = stop
	go d.engine.Run(ctx)
	synctest.Wait()
	return d
}

var (
	fuzzRuntimes   = []string{"x", "y", "z"}
	fuzzComponents = []string{"", "a", "b", "c"}
	fuzzFacts      = []string{"f", "g"}
	fuzzAfter      = []time.Duration{0, time.Second, 5 * time.Second, time.Minute, time.Hour}
	fuzzAdvance    = []time.Duration{100 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 10 * time.Second, time.Minute, time.Hour}
)

func pick[T any](from []T, by byte) T { return from[int(by)%len(from)] }

// step does one thing to both. The model goes first: the engine may act before its method returns.
func (d *duel) step(what, whom, how byte) {
	d.count++
	key := Key{Runtime: pick(fuzzRuntimes, whom/4), Component: pick(fuzzComponents, whom)}
	priority := Priority(how % byte(priorities))
	switch what % 14 {
	case 0:
		d.model.add(key, priority)
		d.engine.Add(key, priority)
	case 1:
		d.model.preempt(key)
		d.engine.Preempt(key)
	case 2:
		after := pick(fuzzAfter[1:], how)
		d.model.addAfter(key, after, priority)
		d.engine.AddAfter(key, after, priority)
	case 3:
		d.model.wake(key.Runtime, pick(fuzzFacts, how))
		d.engine.Wake(key.Runtime, pick(fuzzFacts, how))
	case 13:
		d.model.renew(key, priority)
		d.engine.Renew(key, priority)
	case 4:
		d.model.forget(key.Runtime)
		d.engine.Forget(key.Runtime)
	case 6:
		<-time.After(pick(fuzzAdvance, how))
	case 9:
		d.model.reset(key.Runtime)
		d.engine.Reset(key.Runtime)
	default:
		if len(d.model.runs) > 0 {
			d.stepRun(what%14, pick(d.model.runs, whom), how)
		}
	}
	d.compare()
}

// stepRun does something to a run that is under way.
func (d *duel) stepRun(what byte, run *modelRun, how byte) {
	switch what {
	case 5:
		d.finish(run, Result{Outcome: Outcome(int(how) % outcomes), After: pick(fuzzAfter, how/8), Offline: how >= 192})
	case 7:
		facts := fuzzFacts[:1+how%2]
		d.model.await(run, facts...)
		run.real.Await(facts...)
	case 10:
		d.model.event()
		d.model.ask(run, run.real.Ask())
	case 11:
		if len(run.questions) > 0 {
			answered := d.model.answer(run, how%2 == 0)
			answered(how%2 == 0)
			answered(how%3 == 0) // the first call counts
		}
	case 12:
		d.model.progress(run)
		run.real.Progress()
	case 8:
		if want, got := d.model.checkpoint(run), run.real.Checkpoint(); got != want {
			d.t.Errorf("checkpoint of %s: %v, want %v", run.key, got, want)
		}
	}
}

func (d *duel) finish(run *modelRun, result Result) {
	d.model.finish(run, result)
	c, _ := d.results.LoadAndDelete(run.real)
	c.(chan Result) <- result
}

// compare waits until nothing moves, and compares everything that can be seen.
func (d *duel) compare() {
	d.t.Helper()
	synctest.Wait()
	d.model.settled()
	for _, runtime := range fuzzRuntimes {
		want, got := d.model.state(runtime), d.engine.Inspect(runtime)
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(ComponentState{}, "Last", "LastAt", "Message", "Since", "AskingSince"),
			cmpopts.IgnoreFields(RuntimeState{}, "RunningMost", "Position", "Priority"), cmpopts.IgnoreFields(BreakerState{}, "Since")); diff != "" {
			d.t.Errorf("after step %d, %s (-model +engine):\n%s", d.count, runtime, diff)
		}
	}
	checkConsistent(d.t, d.engine)
}

// end lets everything come to an end, and checks that nothing is left.
func (d *duel) end() {
	for _, runtime := range fuzzRuntimes {
		d.model.reset(runtime)
		d.engine.Reset(runtime)
		synctest.Wait()
	}
	for key := range d.model.keys {
		d.model.add(key, PriorityVerify)
		d.engine.Add(key, PriorityVerify)
		synctest.Wait()
	}
	for round := 0; round < 1000 && !d.t.Failed(); round++ {
		d.compare()
		if len(d.model.runs) > 0 {
			d.finish(d.model.runs[0], Result{})
			continue
		}
		if d.engine.Stats().Runtimes == 0 { // its lock also comes between this look at the model and the next run
			break
		}
		<-time.After(time.Hour) // whatever AddAfter asked for
	}
	if n := d.engine.Stats().Runtimes; n > 0 && !d.t.Failed() {
		d.t.Errorf("%d lanes are left although nothing is to be done", n)
	}
	d.stop()
	synctest.Wait()
	d.results.Range(func(_, result any) bool { // after a failure
		result.(chan Result) <- Result{}
		return true
	})
}

// checkConsistent checks that the engine's lists, queues and counters say the same.
func checkConsistent(t *testing.T, e *Engine) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	var (
		timers, open, aside, probing int
		listed                       = map[*lane]bool{}
		phase                        [phases]int
		queued                       [priorities]int
	)
	for name, l := range e.lanes {
		running, inQueue := 0, 0
		for i, en := range l.entries {
			phase[en.phase]++
			switch en.phase {
			case PhaseRunning:
				running++
			case PhaseQueued:
				inQueue++
				queued[en.priority]++
			}
			if en.at != 0 {
				timers++
			}
			if r := en.run; r != nil {
				aside += count(r.aside)
				probing += count(r.probing)
			}
			if (en.run != nil) != (en.phase == PhaseRunning) || en.at != en.due() || i > 0 && l.entries[i-1].component >= en.component {
				t.Errorf("entry %s is not consistent: %+v", en.key(), *en)
			}
		}
		if int(l.running) != running || l.queue.Len() != inQueue || (l.in != nil) != l.ready(e.options.PerRuntime) || len(l.entries) == 0 {
			t.Errorf("lane %s is not consistent: %+v", name, *l)
		}
		if l.in != nil && l.in != &e.probes && l.in != &e.ready[l.queue.first().priority] {
			t.Errorf("lane %s is in the wrong list: %+v", name, *l)
		}
		open += count(l.breaker.open)
		if l.in != nil {
			listed[l] = true
		}
	}
	if phase != e.phases || queued != e.stats.Queued || timers != e.timers.Len() || open != e.stats.OpenBreakers {
		t.Errorf("counters: phases %v, want %v; queued %v, want %v; timers %d, want %d; open breakers %d, want %d",
			e.phases, phase, e.stats.Queued, queued, e.timers.Len(), timers, e.stats.OpenBreakers, open)
	}
	if aside != e.stats.Aside || probing != e.stats.Probing {
		t.Errorf("%d runs are set aside and %d probes, want %d and %d", e.stats.Aside, e.stats.Probing, aside, probing)
	}
	for l := e.probes.first; l != nil; l = l.next {
		delete(listed, l)
	}
	waiting := 0
	for p := range e.ready {
		for l := e.ready[p].first; l != nil; l = l.next {
			waiting++
			delete(listed, l)
		}
	}
	if len(listed) != 0 || waiting != e.waiting {
		t.Errorf("the lists of ready lanes miss %d, and have %d, counted as %d", len(listed), waiting, e.waiting)
	}
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}
