package main

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
	"path/filepath"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/bench/internal/measure"
	"github.com/kyma-project/mothership/controlplane"
)

const (
	// patience bounds every wait but that for the modules of an installation.
	patience = 2 * time.Minute
	// callTimeout bounds every request of the benchmark's own.
	callTimeout = time.Minute
	// poll is the time between two looks at what is waited for; no latency that is measured ends with a look.
	poll = 20 * time.Millisecond
	// metricsSize bounds what is read of metrics and explanations.
	metricsSize = 16 << 20
)

// plane is a control plane in a process of its own.
type plane struct {
	config  childConfig
	cmd     *exec.Cmd
	stdin   io.Closer
	address string
	// started is how long it took from the start of the process until it worked.
	started time.Duration
	scheme  *runtime.Scheme
	client  client.WithWatch
}

// startPlane starts a control plane with its state in the folder, and waits until it works.
func startPlane(ctx context.Context, c childConfig) (*plane, error) {
	p := &plane{config: c, scheme: runtime.NewScheme()}
	for _, add := range []func(*runtime.Scheme) error{v1beta2.AddToScheme, corev1.AddToScheme} {
		if err := add(p.scheme); err != nil {
			return nil, fmt.Errorf("making the scheme: %w", err)
		}
	}
	if err := p.start(ctx); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

func (p *plane) start(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	config, err := json.Marshal(p.config)
	if err != nil {
		return fmt.Errorf("starting the control plane: %w", err)
	}
	p.cmd = exec.Command(self, childArgument, string(config)) //nolint:noctx // it ends with its standard input, in order
	p.cmd.Stderr = os.Stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return fmt.Errorf("starting the control plane: %w", err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("starting the control plane: %w", err)
	}
	begun := time.Now()
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("starting the control plane: %w", err)
	}
	if err := p.awaitReady(ctx, out); err != nil {
		return err
	}
	p.started = time.Since(begun)
	cfg, err := clientcmd.BuildConfigFromFlags("", filepath.Join(p.config.Dir, controlplane.KubeconfigFile))
	if err != nil {
		return fmt.Errorf("reading the control plane's kubeconfig: %w", err)
	}
	cfg.QPS, cfg.Burst = -1, 0 // the benchmark is not to wait for itself
	if p.client, err = client.NewWithWatch(cfg, client.Options{Scheme: p.scheme}); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	return nil
}

// awaitReady waits for the line that says that it works.
func (p *plane) awaitReady(ctx context.Context, out io.Reader) error {
	line := make(chan childReady, 1)
	go func() { // ends with the child's standard output
		defer close(line)
		var ready childReady
		text, err := bufio.NewReader(out).ReadBytes('\n')
		if err == nil && json.Unmarshal(text, &ready) == nil {
			line <- ready
		}
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case ready, ok := <-line:
		if !ok {
			return errors.New("the control plane ended before it worked")
		}
		p.address = ready.Address
		return nil
	case <-timer.C:
		return fmt.Errorf("the control plane did not work after %s", patience)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// stop ends the control plane in order.
func (p *plane) stop() error {
	if p.cmd == nil || p.cmd.Process == nil {
		return nil
	}
	_ = p.stdin.Close() // it may have ended
	timer := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	err := p.cmd.Wait()
	p.cmd = nil
	if err != nil {
		return fmt.Errorf("stopping the control plane: %w", err)
	}
	return nil
}

// taken is what the control plane's process has taken so far.
func (p *plane) taken() (measure.Living, error) { return measure.Look(p.cmd.Process.Pid) }

// read asks the control plane's HTTP address.
func (p *plane) read(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.address+path, nil)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	req.Header.Set("Accept-Encoding", "identity") // compressing would be the controller's work
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	defer resp.Body.Close()
	return io.ReadAll(io.LimitReader(resp.Body, metricsSize))
}

// metric sums the samples of a metric, by the value of its first label.
func (p *plane) metric(ctx context.Context, name string) (map[string]int, error) {
	data, err := p.read(ctx, "/metrics")
	if err != nil {
		return nil, err
	}
	out := map[string]int{}
	for line := range strings.Lines(string(data)) {
		sample, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		metric, labels, _ := strings.Cut(sample, "{")
		value, err := strconv.ParseFloat(text, 64)
		if metric != name || err != nil {
			continue
		}
		_, label, _ := strings.Cut(labels, `"`)
		label, _, _ = strings.Cut(label, `"`)
		out[label] += int(value)
	}
	return out, nil
}

// busy says whether the control plane has anything in hand for a runtime.
func (p *plane) busy(ctx context.Context, runtime string) (bool, error) {
	data, err := p.read(ctx, "/fleet/"+space+"/"+runtime)
	if err != nil {
		return false, err
	}
	var e controlplane.Explanation
	if err := json.Unmarshal(data, &e); err != nil {
		return false, fmt.Errorf("reading what is done with %s: %w", runtime, err)
	}
	for _, c := range e.Components {
		if c.Phase == "running" || c.Phase == "queued" || (c.Phase == "delayed" && c.Name != "") {
			return true, nil
		}
	}
	return false, nil
}

// settled waits until a Kyma is ready, as it is asked for, and nothing is in hand.
func (p *plane) settled(ctx context.Context, name string) error {
	return await(ctx, patience, "Kyma "+name+" is settled", func(ctx context.Context) (bool, error) {
		var k v1beta2.Kyma
		if err := p.client.Get(ctx, types.NamespacedName{Namespace: space, Name: name}, &k); err != nil {
			return false, err
		}
		if k.Status.State != v1beta2.StateReady || k.Status.ObservedGeneration != k.Generation {
			return false, nil
		}
		busy, err := p.busy(ctx, name)
		return !busy, err
	})
}

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
