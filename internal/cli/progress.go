package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/kyma-project/mothership"
)

const (
	// redrawEvery is how often the elapsed time moves on a terminal.
	redrawEvery = time.Second
	// sayEvery is the least time between two lines where there is no terminal.
	sayEvery = 5 * time.Second
	// sayAfter is how long it must take before anything is said there.
	sayAfter = time.Second
	// maxSaid is how many objects one such line names.
	maxSaid = 3
	// reservedRows of a terminal are left free of progress.
	reservedRows = 4
)

// progress shows people that something is under way: on a terminal as lines that are redrawn, elsewhere as a line when what
// is waited for has changed. It is safe for concurrent use. Close it before anything else is written.
type progress struct {
	w       io.Writer
	term    terminal
	paint   palette
	doing   string
	started time.Time
	ticks   sync.WaitGroup
	end     chan struct{}

	mu       sync.Mutex
	closed   bool
	events   int
	last     mothership.Event
	notReady []mothership.NotReady
	drawn    int       // lines on the screen
	said     string    // the last line's objects
	saidAt   time.Time // when
}

// progress starts showing what is under way, unless --quiet is given.
func (a *app) progress(doing string) *progress {
	w := a.p.Stderr
	if a.quiet {
		return newProgress(io.Discard, terminal{}, palette{}, doing)
	}
	return newProgress(w, a.terminalOf(w), a.palette(w), doing)
}

func newProgress(w io.Writer, t terminal, paint palette, doing string) *progress {
	p := &progress{w: w, term: t, paint: paint, doing: doing, started: time.Now(), end: make(chan struct{})}
	if t.on {
		p.ticks.Go(p.tick)
	}
	return p
}

// tick redraws until close.
func (p *progress) tick() {
	t := time.NewTicker(redrawEvery)
	defer t.Stop()
	for {
		select {
		case <-p.end:
			return
		case <-t.C:
			p.mu.Lock()
			p.draw()
			p.mu.Unlock()
		}
	}
}

// event is told what happened to an object.
func (p *progress) event(e mothership.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events++
	p.last = e
}

// waiting is told what is waited for.
func (p *progress) waiting(notReady []mothership.NotReady) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notReady = notReady
	if p.term.on {
		p.draw()
		return
	}
	p.say()
}

// close takes the lines off the screen and ends. It may be called twice.
func (p *progress) close() {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	p.closed = true
	p.erase()
	p.mu.Unlock()
	close(p.end)
	p.ticks.Wait()
}

// draw shows the state on a terminal, in place of what was shown before. p.mu is held.
func (p *progress) draw() {
	if p.closed {
		return
	}
	p.erase()
	width, height := p.term.size()
	rows := p.rows(max(height-reservedRows, 1))
	for _, row := range rows {
		fmt.Fprintln(p.w, p.paint.dim(cut(row, width-1)))
	}
	p.drawn = len(rows)
}

// erase moves up over what was drawn and clears to the end of the screen. p.mu is held.
func (p *progress) erase() {
	if p.drawn > 0 {
		fmt.Fprintf(p.w, "\x1b[%dA\x1b[J", p.drawn)
	}
	p.drawn = 0
}

// rows are at most limit lines and a headline. p.mu is held.
func (p *progress) rows(limit int) []string {
	elapsed := seconds(time.Since(p.started).Truncate(time.Second))
	if len(p.notReady) == 0 {
		head := fmt.Sprintf("%s: %s", p.doing, elapsed)
		if p.events > 0 {
			head += fmt.Sprintf(", %s, last %s %s", count(p.events, "object"), p.last.Action, oneLine(p.last.Object.String()))
		}
		return []string{head}
	}
	rows := []string{fmt.Sprintf("%s: %s, waiting for %s", p.doing, elapsed, count(len(p.notReady), "object"))}
	for i, n := range p.notReady {
		if i == limit {
			rows = append(rows, fmt.Sprintf("  and %d more", len(p.notReady)-limit))
			break
		}
		rows = append(rows, "  "+oneLine(n.String()))
	}
	return rows
}

// say writes a line if what is waited for has changed and the last line is long enough ago. p.mu is held.
func (p *progress) say() {
	var all []string
	for _, n := range p.notReady {
		all = append(all, oneLine(n.String()))
	}
	key := strings.Join(all, "\n")
	now := time.Now()
	if len(all) == 0 || now.Sub(p.started) < sayAfter || key == p.said || !p.saidAt.IsZero() && now.Sub(p.saidAt) < sayEvery {
		return
	}
	p.said, p.saidAt = key, now
	more := ""
	if left := len(all) - maxSaid; left > 0 {
		more = fmt.Sprintf("; and %d more", left)
		all = all[:maxSaid]
	}
	fmt.Fprintf(p.w, "%s: %s, waiting for %s%s\n", p.doing, seconds(now.Sub(p.started)), strings.Join(all, "; "), more)
}
