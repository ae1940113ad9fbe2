package render

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"time"
)

// maxServed is after how many renderings a process is replaced, whatever it holds: what a library keeps for ever is bounded.
const maxServed = 1_000

// keepShare is which part of its limit a process may hold after a rendering, for the next: the divisor.
const keepShare = 4

// maxKept is how large the frames may be of a process that is kept, in bytes: encoders keep what they needed for the largest.
const maxKept = 8 << 20

// pool are the child processes that exist. It starts as many as are taken; who takes them bounds that.
type pool struct {
	command []string
	memory  int64
	idleFor time.Duration

	mu       sync.Mutex
	closed   bool
	starting sync.WaitGroup // added to while mu is held and closed is false
	all      map[*process]struct{}
	idle     []*process // the most recently used last
}

// process is a child process. Who has taken it uses it alone.
type process struct {
	stdin, stdout *os.File
	wire          *wire // over these
	stderr        headBuffer
	limit         int64
	pid           int
	kill          func()        // may be called at any time, by anybody, and more than once
	ended         chan struct{} // closed when it has ended and err is set
	err           error

	served int         // answers
	memory int64       // that it said to hold after the last
	expiry *time.Timer // while idle
}

// errClosed is what a renderer says that was closed.
var errClosed = errors.New("rendering in a child process: the renderer was closed")

// errStart is a crash that no source is to blame for.
var errStart = fmt.Errorf("not started: %w", ErrCrash)

// take returns an idle process, or a new one if there is none or it must be one that has rendered nothing yet. It is to be
// given to put or discard.
func (p *pool) take(anew bool) (*process, error) {
	if !anew {
		if c := p.takeIdle(); c != nil {
			return c, nil
		}
	}
	if !p.begin() {
		return nil, errClosed
	}
	defer p.starting.Done()
	c, err := start(p.command, p.memory)
	if err != nil {
		return nil, &Error{Problem: "starting the rendering process: " + err.Error(), Err: errStart}
	}
	p.mu.Lock()
	p.all[c] = struct{}{}
	closed := p.closed
	p.mu.Unlock()
	if closed {
		p.discard(c)
		return nil, errClosed
	}
	return c, nil
}

// begin says whether a process may be started; if so, starting is to be told when it was.
func (p *pool) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.starting.Add(1)
	}
	return !p.closed
}

// isClosed says whether close was called.
func (p *pool) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// takeIdle returns an idle process that lives, nil if there is none.
func (p *pool) takeIdle() *process {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.idle) > 0 {
		last := len(p.idle) - 1
		c := p.idle[last]
		p.idle = p.idle[:last]
		c.expiry.Stop()
		if !c.hasEnded() {
			return c
		}
		c.kill()
		delete(p.all, c)
	}
	return nil
}

// put gives back a process that has answered. It is ended if it holds much memory or has rendered often.
func (p *pool) put(c *process) {
	if p.idleFor < 0 || c.served >= maxServed || c.memory > p.memory/keepShare || c.wire.most > maxKept {
		p.discard(c)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return // close ends it
	}
	p.idle = append(p.idle, c)
	c.expiry = time.AfterFunc(p.idleFor, func() { p.expire(c) })
}

// expire ends a process if it is still idle.
func (p *pool) expire(c *process) {
	p.mu.Lock()
	at := slices.Index(p.idle, c)
	if at >= 0 {
		p.idle = slices.Delete(p.idle, at, at+1)
	}
	p.mu.Unlock()
	if at >= 0 {
		p.discard(c)
	}
}

// discard ends a process and waits for its end.
func (p *pool) discard(c *process) {
	c.kill()
	<-c.ended
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, c)
}

// close ends all processes and waits for their ends.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	for _, c := range p.idle {
		c.expiry.Stop()
	}
	p.idle = nil
	var all []*process
	for c := range p.all {
		all = append(all, c)
	}
	p.mu.Unlock()
	for _, c := range all {
		p.discard(c)
	}
	p.starting.Wait()
}

// start starts a child process and a goroutine that waits for its end.
func start(command []string, memory int64) (*process, error) {
	ctx, cancel := context.WithCancel(context.Background())
	c := &process{ended: make(chan struct{}), limit: memory, stderr: headBuffer{limit: 64 << 10}}
	c.kill = func() {
		cancel()
		_, _ = c.stdin.Close(), c.stdout.Close() // who reads or writes gets an error, whoever else holds the other ends
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = []string{}
	cmd.SysProcAttr = childAttributes()
	cmd.Cancel = func() error { return killGroup(cmd.Process.Pid) }
	cmd.WaitDelay = time.Second
	cmd.Stderr = &c.stderr
	childIn, stdin, err := os.Pipe()
	if err != nil {
		cancel()
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	stdout, childOut, err := os.Pipe()
	if err != nil {
		cancel()
		_, _ = childIn.Close(), stdin.Close()
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	cmd.Stdin, cmd.Stdout, c.stdin, c.stdout = childIn, childOut, stdin, stdout
	c.wire = newWire(stdout, stdin)
	started := make(chan error)
	go func() { // ends with the process
		// The kernel kills the child when the thread that started it ends, so that thread is kept until then.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		_, _ = childIn.Close(), childOut.Close()
		if err == nil {
			c.pid = cmd.Process.Pid
		}
		started <- err
		if err == nil {
			c.err = cmd.Wait()
		}
		cancel()
		close(c.ended)
	}()
	if err := <-started; err != nil {
		c.kill()
		return nil, err
	}
	return c, nil
}

// hasEnded says whether the process has ended.
func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// headBuffer keeps the first bytes of what is written to it and takes the rest.
type headBuffer struct {
	limit int
	buf   bytes.Buffer
}

func (h *headBuffer) Write(p []byte) (int, error) {
	h.buf.Write(p[:min(len(p), h.limit-h.buf.Len())])
	return len(p), nil
}

// String is what was kept. It may be called after the process was waited for.
func (h *headBuffer) String() string { return h.buf.String() }
