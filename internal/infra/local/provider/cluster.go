package provider

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"time"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/infra"
	"github.com/kyma-project/mothership/internal/infra/local"
)

const (
	// firstPause and longestPause bound the time between the end of a server and its next start.
	firstPause   = time.Second
	longestPause = 30 * time.Second
	// settled is how long a server has to be up until its next end is taken for the first.
	settled = time.Minute
	// removeTimeout bounds a removal, which takes milliseconds once the server is down.
	removeTimeout = time.Minute
	// longestMessage bounds, in bytes, what a state says of an error.
	longestMessage = 300
)

// phase of a cluster.
type phase string

const (
	queued   phase = "queued"   // waits until few enough others start
	starting phase = "starting" // or pausing before the next start, if it failed before
	running  phase = "running"
	stopped  phase = "stopped"  // another has its name; or its removal failed
	removing phase = "removing" // from the first Delete
	removed  phase = "removed"  // until Delete has said so
)

// supervised says that the cluster has a supervisor that was not told to end.
func (p phase) supervised() bool { return p == queued || p == starting || p == running }

// cluster is one that was asked for since the provider was made. Its fields are guarded by the provider's lock, except for
// those that never change.
type cluster struct {
	id     infra.Cluster      // never changes
	cancel context.CancelFunc // never changes; ends done
	done   chan struct{}      // never changes; closed when supervisor or removal are through and no child is left

	phase   phase
	server  *local.Server // while it runs, and until it is down
	answer  infra.State   // while it runs
	failure string        // why it ended or did not start the last time
	removal error         // of the last removal, until Delete has returned it
}

// newCluster returns the one that comes after previous, which may be nil, and the context of what it does.
func (p *Provider) newCluster(r infra.Cluster, phase phase) (context.Context, *cluster) {
	ctx, cancel := context.WithCancel(context.Background())
	c := &cluster{id: r, phase: phase, cancel: cancel, done: make(chan struct{})}
	p.clusters[r.UID] = c
	return ctx, c
}

// finish returns a channel that is closed when a cluster, or nil, has come to its end, which it is told to do.
func finish(c *cluster) <-chan struct{} {
	if c == nil {
		closed := make(chan struct{})
		close(closed)
		return closed
	}
	c.cancel()
	return c.done
}

// launch makes the cluster that comes after previous and has it supervised. The caller holds the lock.
func (p *Provider) launch(r infra.Cluster, previous *cluster) *cluster {
	ctx, c := p.newCluster(r, queued)
	before := finish(previous)
	p.work.Go(func() {
		defer close(c.done)
		defer c.cancel()
		<-before
		p.supervise(ctx, c)
	})
	return c
}

// discard makes the cluster, which comes after previous, be removed. The caller holds the lock.
func (p *Provider) discard(r infra.Cluster, previous *cluster) {
	ctx, c := p.newCluster(r, removing)
	before := finish(previous)
	p.work.Go(func() {
		defer close(c.done)
		defer c.cancel()
		<-before
		p.remove(ctx, c)
	})
}

// supervise keeps the cluster running until the context ends.
func (p *Provider) supervise(ctx context.Context, c *cluster) {
	for pause := time.Duration(0); ; {
		lasted := p.serve(ctx, c)
		pause = pauseAfter(pause, lasted)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// pauseAfter returns how long to wait after the end of a server that lasted for some time, given the pause before it.
func pauseAfter(pause, lasted time.Duration) time.Duration {
	if pause == 0 || lasted >= settled {
		return firstPause
	}
	return min(2*pause, longestPause)
}

// serve starts the server, and returns when it has ended and is cleaned up: how long it was up.
func (p *Provider) serve(ctx context.Context, c *cluster) (lasted time.Duration) {
	server, err := p.start(ctx, c)
	if err != nil {
		p.ended(ctx, c, err)
		return 0
	}
	begun := time.Now()
	if err = p.started(c, server); err == nil {
		select {
		case <-server.Done():
			err = server.Err()
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	lasted = time.Since(begun)
	p.ended(ctx, c, err) // before what takes a second: nobody should call it any more
	if err := server.Close(); err != nil {
		p.log(c).Error(err, "Stopping the cluster")
	}
	p.set(c, func() { c.server = nil })
	return lasted
}

// start starts the server when few enough others do.
func (p *Provider) start(ctx context.Context, c *cluster) (*local.Server, error) {
	p.set(c, func() { c.phase = queued })
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	p.set(c, func() { c.phase = starting })
	return local.Start(ctx, p.serverOptions(c))
}

// serverOptions are those of a cluster's server. They follow from the UID alone.
func (p *Provider) serverOptions(c *cluster) local.Options {
	return local.Options{
		Assets: p.options.Assets, Dir: filepath.Join(p.options.Dir, c.id.UID),
		Controllers: local.WorkloadControllers, Nodes: true, GCPercent: local.Frugal,
		Etcd: p.options.Etcd, Prefix: "/runtimes/" + c.id.UID,
	}
}

// started records that the server runs.
func (p *Provider) started(c *cluster, server *local.Server) error {
	kubeconfig, err := server.Kubeconfig()
	if err != nil {
		return err
	}
	version := sha256.Sum256(kubeconfig) // of 130 random bits, so that nothing can be told from it
	endpoint := server.Config().Host
	p.set(c, func() {
		c.phase, c.server, c.failure = running, server, ""
		c.answer = infra.State{
			Ready: true, Kubeconfig: kubeconfig, KubeconfigVersion: hex.EncodeToString(version[:8]),
			Facts: map[string]string{v1beta2.FactEndpoint: endpoint},
		}
	})
	p.log(c).Info("Started the cluster", "endpoint", endpoint)
	p.tell(c)
	return nil
}

// ended records that the server did not start, or ended. That it was told to end is no news.
func (p *Provider) ended(ctx context.Context, c *cluster, err error) {
	if ctx.Err() != nil {
		p.set(c, func() { c.phase, c.answer = starting, infra.State{} })
		return
	}
	why := reason(err, filepath.Join(p.options.Dir, c.id.UID))
	p.set(c, func() { c.phase, c.answer, c.failure = starting, infra.State{}, why })
	p.log(c).Info("Restarting the cluster", "reason", why)
	p.tell(c)
}

// set changes the cluster under the lock. A phase that Delete, or a successor, has set is never taken back.
func (p *Provider) set(c *cluster, change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := c.phase
	if change(); !before.supervised() {
		c.phase = before
	}
}

// remove removes what the cluster has left, which has no supervisor any more.
func (p *Provider) remove(ctx context.Context, c *cluster) {
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	err := local.Remove(ctx, p.serverOptions(c))
	p.mu.Lock()
	c.phase, c.removal = removed, err
	if err != nil {
		c.phase = stopped
	}
	p.mu.Unlock()
	if err != nil && ctx.Err() == nil {
		p.log(c).Error(err, "Removing the cluster")
	} else if err == nil {
		p.log(c).Info("Removed the cluster")
	}
	p.tell(c)
}

// state is how the cluster is. The caller holds the lock.
func (c *cluster) state() infra.State {
	switch {
	case c.phase == running:
		answer := c.answer
		answer.Kubeconfig, answer.Facts = bytes.Clone(answer.Kubeconfig), maps.Clone(answer.Facts)
		return answer
	case c.phase == removing:
		return infra.State{Message: "it is being removed"}
	case c.failure != "":
		return infra.State{Message: "restarting after: " + c.failure}
	case c.phase == queued:
		return infra.State{Message: "waiting to start, after others"}
	}
	return infra.State{Message: "starting"}
}

// reason says in a few words why a server ended. The last lines of a child's log are left out: who wants them knows where.
func reason(err error, dir string) string {
	if exit := (*local.ExitError)(nil); errors.As(err, &exit) {
		return fmt.Sprintf("%s ended: %s; its log is in %s", exit.Name, exit.How, dir)
	}
	if err == nil {
		return "the server was stopped"
	}
	text := strings.ReplaceAll(err.Error(), "\n", "; ")
	return strings.ToValidUTF8(text[:min(len(text), longestMessage)], "")
}
