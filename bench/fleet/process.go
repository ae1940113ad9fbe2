package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/kyma-project/mothership/bench/internal/measure"
)

const (
	// patience bounds every wait but those for the whole fleet, fleetPatience those.
	patience      = 3 * time.Minute
	fleetPatience = time.Hour
	// callTimeout bounds every request of the benchmark's own.
	callTimeout = time.Minute
	// poll is the time between two looks at what is waited for.
	poll = 100 * time.Millisecond
)

// process is a child that is this program too.
type process struct {
	cmd     *exec.Cmd
	stdin   io.Closer
	address string
	// begun is when it was started, ready how long it took until it worked.
	begun time.Time
	ready time.Duration
}

// startProcess starts a child and waits until it works.
func startProcess(ctx context.Context, argument string, config any) (*process, error) {
	p := &process{}
	if err := p.start(ctx, argument, config); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the %s: %w", argument, err), p.stop())
	}
	return p, nil
}

func (p *process) start(ctx context.Context, argument string, config any) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	encoded, err := json.Marshal(config)
	if err != nil {
		return err
	}
	p.cmd = exec.Command(self, argument, string(encoded)) //nolint:noctx // it ends with its standard input, in order
	p.cmd.Stderr = os.Stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	p.begun = time.Now()
	if err := p.cmd.Start(); err != nil {
		return err
	}
	return p.awaitReady(ctx, out)
}

// awaitReady waits for the line that says that it works.
func (p *process) awaitReady(ctx context.Context, out io.Reader) error {
	line := make(chan ready, 1)
	go func() { // ends with the child's standard output
		defer close(line)
		var r ready
		text, err := bufio.NewReader(out).ReadBytes('\n')
		if err == nil && json.Unmarshal(text, &r) == nil {
			line <- r
		}
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case r, ok := <-line:
		if !ok {
			return errors.New("it ended before it worked")
		}
		p.address, p.ready = r.Address, time.Since(p.begun)
		return nil
	case <-timer.C:
		return fmt.Errorf("it did not work after %s", patience)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// stop ends the process in order. It may be called again.
func (p *process) stop() error {
	if p == nil || p.cmd == nil || p.cmd.Process == nil {
		return nil
	}
	_ = p.stdin.Close() // it may have ended
	timer := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	err := p.cmd.Wait()
	p.cmd = nil
	if err != nil {
		return fmt.Errorf("stopping a process: %w", err)
	}
	return nil
}

// taken is what the process has taken so far.
func (p *process) taken() (measure.Living, error) { return measure.Look(p.cmd.Process.Pid) }

// await looks until ok holds.
func await(ctx context.Context, bound time.Duration, what string, ok func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		done, err := ok(ctx)
		if err != nil {
			return fmt.Errorf("waiting until %s: %w", what, err)
		}
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w", what, ctx.Err())
		case <-tick.C:
		}
	}
}

// pause lets time pass.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
