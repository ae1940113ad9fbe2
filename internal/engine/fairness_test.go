package engine

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// cores are processors that all who work share alike.
type cores struct {
	n     float64
	mu    sync.Mutex
	jobs  map[*job]struct{}
	at    time.Time // of the last look
	alarm *time.Timer
}

type job struct {
	left float64 // seconds on a core of its own
	done chan struct{}
}

func newCores(n float64) *cores { return &cores{n: n, jobs: map[*job]struct{}{}, at: time.Now()} }

// work is d of work on one core.
func (c *cores) work(d time.Duration) {
	j := &job{left: d.Seconds(), done: make(chan struct{})}
	c.mu.Lock()
	c.look()
	c.jobs[j] = struct{}{}
	c.plan()
	c.mu.Unlock()
	<-j.done
}

// speed is what each job has of a core.
func (c *cores) speed() float64 { return min(1, c.n/float64(len(c.jobs))) }

// look books what was worked since the last look.
func (c *cores) look() {
	took := time.Since(c.at).Seconds() * c.speed()
	c.at = time.Now()
	for j := range c.jobs {
		if j.left -= took; j.left <= 1e-9 {
			delete(c.jobs, j)
			close(j.done)
		}
	}
}

// plan looks again when the next job is done.
func (c *cores) plan() {
	if c.alarm != nil {
		c.alarm.Stop()
	}
	if len(c.jobs) == 0 {
		return
	}
	first := slices.MinFunc(slices.Collect(func(yield func(*job) bool) {
		for j := range c.jobs {
			if !yield(j) {
				return
			}
		}
	}), func(a, b *job) int { return cmp.Compare(a.left, b.left) })
	c.alarm = time.AfterFunc(time.Duration(first.left/c.speed()*1e9)+time.Nanosecond, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.look()
		c.plan()
	})
}

// plague is a fleet in virtual time: what runtimes are like, and what happens to them.
type plague struct {
	name string
	// sick says what a runtime is: 0 healthy, or how long it takes until a request to it fails; failing: at once.
	sick func(i int) time.Duration
	// touch gives runtimes something to do beside the changes of the healthy.
	touch func(e *Engine, p *plague)
	// wave is the work of a run that is not a change.
	wave time.Duration
	// most is what the 99th percentile may be, as a multiple of the undisturbed one.
	most float64

	cores     *cores
	mu        sync.Mutex
	changed   map[Key]time.Time
	took      []time.Duration
	requests  map[string]int
	inHand    int
	aside     int
	limitHigh int
}

const (
	plagueRuntimes = 10_000
	// plagueRate is how many changes of healthy runtimes there are a second, each of plagueWork on a core.
	plagueRate  = 20
	plagueWork  = 50 * time.Millisecond
	plagueLasts = 3 * time.Minute
)

func plagueKey(i int) Key { return Key{Runtime: fmt.Sprintf("runtime-%05d", i), Component: "a"} }

// run is one run in the fleet.
func (p *plague) run(_ context.Context, r *Run) Result {
	var i int
	_, _ = fmt.Sscanf(r.Key().Runtime, "runtime-%d", &i)
	answered := r.Ask()
	if fails := p.sick(i); fails > 0 {
		p.mu.Lock()
		p.requests[r.Key().Runtime]++
		p.mu.Unlock()
		<-time.After(fails)
		answered(false)
		return Result{Outcome: Unreachable}
	}
	<-time.After(2 * time.Millisecond)
	answered(true)
	work := p.wave
	if r.priority == PriorityChange {
		work = plagueWork
	}
	p.cores.work(work)
	p.mu.Lock()
	defer p.mu.Unlock()
	if at, ok := p.changed[r.Key()]; ok && r.priority == PriorityChange {
		p.took = append(p.took, time.Since(at))
		delete(p.changed, r.Key())
	}
	return Result{}
}

// live lets the fleet live for a while, and returns how long changes of the healthy took.
func (p *plague) live(t *testing.T) (took []time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		p.cores, p.changed, p.requests = newCores(2), map[Key]time.Time{}, map[string]int{}
		e := startCold(t, RunnerFunc(p.run), Options{BreakerFailures: 1, Probe: Backoff{First: 2 * time.Second, Max: 75 * time.Second, Steep: true}})
		if p.touch != nil {
			go p.touch(e, p)
		}
		random := rand.New(rand.NewPCG(1, 2))
		for begin := time.Now(); time.Since(begin) < plagueLasts; {
			<-time.After(time.Duration(random.ExpFloat64() * float64(time.Second/plagueRate)))
			i := random.IntN(plagueRuntimes)
			for p.sick(i) > 0 {
				i = random.IntN(plagueRuntimes)
			}
			k := plagueKey(i)
			p.mu.Lock()
			p.changed[k] = time.Now()
			p.mu.Unlock()
			e.Add(k, PriorityChange)
			s := e.Stats()
			p.inHand, p.aside, p.limitHigh = max(p.inHand, s.InHand), max(p.aside, s.Aside), max(p.limitHigh, s.Limit)
		}
		pass(time.Minute)
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.changed) > 0 {
			t.Errorf("%d changes are not done", len(p.changed))
		}
		took = p.took
	})
	slices.Sort(took)
	return took
}

func percentile(sorted []time.Duration, p int) time.Duration {
	return sorted[min(len(sorted)*p/100, len(sorted)-1)]
}

// touchSick gives all that are sick something to do within d: each of ten components.
func touchSick(d time.Duration) func(*Engine, *plague) {
	return func(e *Engine, p *plague) {
		<-time.After(10 * time.Second)
		for i := range plagueRuntimes {
			<-time.After(d / plagueRuntimes)
			for c := 0; c < 10 && p.sick(i) > 0; c++ {
				e.Add(Key{Runtime: plagueKey(i).Runtime, Component: string(rune('a' + c))}, PriorityChange)
			}
		}
	}
}

// addAll adds something of each runtime at once.
func addAll(priority Priority) func(*Engine, *plague) {
	return func(e *Engine, _ *plague) {
		for i := range plagueRuntimes {
			e.Add(Key{Runtime: plagueKey(i).Runtime, Component: "b"}, priority)
		}
	}
}

func healthy(int) time.Duration { return 0 }

// tenth: of twenty, two hang until the deadline, one is refused with 401 and one with 503.
func tenth(i int) time.Duration {
	switch i % 20 {
	case 0, 1:
		return 10 * time.Second
	case 2, 3:
		return 2 * time.Millisecond
	}
	return 0
}

// Sick runtimes and waves do not hold up a change of a healthy runtime, and sick ones are left in peace. go test -v -run Fairness
// prints the table.
func TestFairness(t *testing.T) {
	t.Parallel()
	calm := (&plague{sick: healthy}).live(t)
	line := func(name string, took []time.Duration, p *plague) {
		t.Logf("%-44s p50 %6s  p99 %6s  max %6s  %.2f of undisturbed  in hand ≤ %d  set aside ≤ %d  limit ≤ %d", name,
			percentile(took, 50).Round(time.Millisecond), percentile(took, 99).Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond),
			float64(percentile(took, 99))/float64(percentile(calm, 99)), p.inHand, p.aside, p.limitHigh)
	}
	line("undisturbed", calm, &plague{})
	for _, p := range []*plague{
		{name: "20% sick, touched within a minute", sick: tenth, touch: touchSick(time.Minute), most: 1.1},
		{name: "20% sick, touched within two seconds", sick: tenth, touch: touchSick(2 * time.Second), most: 1.1},
		{name: "verification of all at once, 5 ms each", sick: healthy, touch: addAll(PriorityVerify), wave: 5 * time.Millisecond, most: 10},
		{name: "upgrade of all at once, 20 ms each", sick: healthy, touch: addAll(PriorityTrigger), wave: 20 * time.Millisecond, most: 10},
	} {
		took := p.live(t)
		line(p.name, took, p)
		if now, before := percentile(took, 99), percentile(calm, 99); float64(now) > p.most*float64(before) {
			t.Errorf("%s: the 99th percentile is %s, and %s undisturbed", p.name, now, before)
		}
		for runtime, n := range p.requests { // one for the change, and one for each probe of four minutes
			if n > 5 {
				t.Errorf("%s: %d requests to %s in 4 minutes", p.name, n, runtime)
			}
		}
	}
}

// The limit climbs to the knee of throughput and stays about it, from below and from above, on processors and on waits alike.
func TestLimiterFindsTheKnee(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		wait, work  time.Duration
		first       int
		least, most int
	}{
		"FromBelow": {45 * time.Millisecond, 5 * time.Millisecond, 4, 16, 60},     // 2 cores take 400/s: 20 runs of 50 ms
		"FromAbove": {45 * time.Millisecond, 5 * time.Millisecond, 128, 16, 60},   //
		"AllWork":   {time.Millisecond, 20 * time.Millisecond, 64, 4, 12},         // 100/s: 2 runs of 21 ms, and the least is 4
		"AllWait":   {200 * time.Millisecond, 100 * time.Microsecond, 4, 90, 128}, // the most
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newCores(2)
				var e *Engine
				e = New(RunnerFunc(func(_ context.Context, r *Run) Result {
					<-time.After(time.Duration(rand.ExpFloat64() * float64(tt.wait))) // or all would go in step
					c.work(time.Duration(rand.ExpFloat64() * float64(tt.work)))
					e.Add(r.Key(), PriorityTrigger) // there is always more to do
					return Result{}
				}), Options{})
				e.limiter.limit = tt.first
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- e.Run(ctx) }()
				for i := range 500 {
					e.Add(plagueKey(i), PriorityTrigger)
				}
				pass(5 * time.Minute)
				var sum int
				done := e.Stats().Outcomes[Done]
				for range 60 {
					pass(time.Second)
					sum += e.Stats().Limit
				}
				mean, rate := sum/60, float64(e.Stats().Outcomes[Done]-done)/60
				t.Logf("limit %d on average, %.0f runs a second", mean, rate)
				if mean < tt.least || mean > tt.most {
					t.Errorf("the limit is %d on average, want %d to %d", mean, tt.least, tt.most)
				}
				best := min(2/tt.work.Seconds(), 128/(tt.wait+tt.work).Seconds())
				if rate < 0.85*best {
					t.Errorf("%.0f runs a second, of %.0f that are possible", rate, best)
				}
				stop()
				<-ended
			})
		})
	}
}
