// Package child runs what is measured in processes of their own, which are the benchmark's own executable with other arguments, so
// that their memory and processor time are theirs alone. A child ends when its standard input does, so none outlives the benchmark.
//
// It may import bench/internal/measure and the standard library.
package child

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"time"

	"github.com/kyma-project/mothership/bench/internal/measure"
)

const (
	// patience bounds how long a child may take until it works, and until it has ended.
	patience = 3 * time.Minute
	// readTimeout bounds a request to a child, readSize its answer.
	readTimeout = time.Minute
	readSize    = 16 << 20
)

// Process is a child that works.
type Process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	// Address is what it said.
	Address string
	// Begun is when it was started, Ready how long it took until it worked.
	Begun time.Time
	Ready time.Duration
}

// ready is what a child says once it works.
type ready struct{ Address string }

// Start starts this executable with two arguments, the name of what it shall be and its configuration as JSON, and waits until it
// works. See Run and Serve for its side.
func Start(ctx context.Context, name string, config any) (*Process, error) {
	p := &Process{}
	if err := p.start(ctx, name, config); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the %s: %w", name, err), p.Stop())
	}
	return p, nil
}

func (p *Process) start(ctx context.Context, name string, config any) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	encoded, err := json.Marshal(config)
	if err != nil {
		return err
	}
	p.cmd = exec.Command(self, name, string(encoded)) //nolint:noctx // it ends with its standard input, in order
	p.cmd.Stderr = os.Stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	p.Begun = time.Now()
	if err := p.cmd.Start(); err != nil {
		return err
	}
	return p.awaitReady(ctx, out)
}

// awaitReady waits for the line that says that it works.
func (p *Process) awaitReady(ctx context.Context, out io.Reader) error {
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
		p.Address, p.Ready = r.Address, time.Since(p.Begun)
		return nil
	case <-timer.C:
		return fmt.Errorf("it did not work after %s", patience)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Stop ends the process in order. It may be called again, and of nil.
func (p *Process) Stop() error {
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

// Taken is what the process, which has not been stopped, has taken so far.
func (p *Process) Taken() (measure.Living, error) { return measure.Look(p.cmd.Process.Pid) }

// PID of the process, which has not been stopped.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Read asks the address over HTTP.
func (p *Process) Read(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.Address+path, nil)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	req.Header.Set("Accept-Encoding", "identity") // compressing would be the child's work
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, readSize))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return data, nil
}
