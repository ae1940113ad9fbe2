package controlplane_test

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/controlplane"
	"github.com/kyma-project/mothership/internal/shard"
)

const (
	// replicaEnv makes this test binary a replica of a control plane; it names the kubeconfig. sourcesEnv is where modules are.
	replicaEnv = "CONTROLPLANE_TEST_REPLICA"
	sourcesEnv = "CONTROLPLANE_TEST_SOURCES"
	// shardLease is that of the replicas; requestTimeout is their longest request.
	shardLease = 2 * time.Second
	// shardRuntimes is how many runtimes they share.
	shardRuntimes = 9
)

// replicaMain is the life of a replica: it says when it is ready, and ends when its parent closes its input, or ends.
func replicaMain() int {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	if err := replicate(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	return 0
}

func replicate(ctx context.Context) (err error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", os.Getenv(replicaEnv))
	if err != nil {
		return err
	}
	cp, err := controlplane.Start(ctx, controlplane.Config{
		Cluster: cfg, Sharded: true, LeaseDuration: shardLease, RequestTimeout: requestTimeout, Address: "none", SourceRoot: os.Getenv(sourcesEnv),
		Log: funcr.New(func(prefix, args string) {
			fmt.Fprintln(os.Stderr, time.Now().Format("05.000"), prefix, args)
		}, funcr.Options{}),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cp.Close()) }()
	select {
	case <-cp.Ready():
		fmt.Println("ready")
		return <-cp.Err()
	case err := <-cp.Err():
		return err
	}
}

// process is a replica as a process of its own.
type process struct {
	*exec.Cmd
	log   string // its file
	stdin io.Closer
	ready chan error
}

// replicas starts some over the site's API, all at once, and waits until they work.
func (s *site) replicas(n int) []*process {
	s.t.Helper()
	dir := s.t.TempDir()
	kubeconfig, err := s.target.Kubeconfig()
	if err != nil {
		s.t.Fatal(err)
	}
	file := filepath.Join(dir, "kubeconfig")
	s.write(file, string(kubeconfig))
	out := make([]*process, n)
	for i := range out {
		out[i] = s.replica(file, filepath.Join(dir, fmt.Sprintf("replica-%d.log", i)))
	}
	for _, p := range out {
		select {
		case err := <-p.ready:
			if err != nil {
				s.t.Fatal(err)
			}
		case <-time.After(patience):
			s.t.Fatal("a replica does not work")
		}
	}
	return out
}

func (s *site) replica(kubeconfig, logFile string) *process {
	s.t.Helper()
	p := &process{Cmd: exec.Command(os.Args[0]), log: logFile, ready: make(chan error, 1)} //nolint:noctx,gosec // ourselves; ended below
	p.Env = append(os.Environ(), replicaEnv+"="+kubeconfig, sourcesEnv+"="+s.dir)
	log, err := os.Create(logFile)
	if err != nil {
		s.t.Fatal(err)
	}
	p.Stderr = log
	stdout, err := p.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if p.stdin, err = p.StdinPipe(); err != nil {
		s.t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = p.Process.Kill()
		_ = p.Wait() // killed, or ended by the test
		_ = log.Close()
		if text, err := os.ReadFile(logFile); err == nil && s.t.Failed() {
			s.t.Logf("%s:\n%s", filepath.Base(logFile), text)
		}
	})
	go func() { // ends with the process
		_, err := bufio.NewReader(stdout).ReadString('\n')
		p.ready <- err
	}()
	return p
}

func (p *process) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := p.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// holders are the slots that each replica has, as the table says.
func (s *site) holders() map[string][]shard.Slot {
	s.t.Helper()
	var table coordinationv1.Lease
	if err := s.api.Get(s.t.Context(), client.ObjectKey{Namespace: space, Name: "mothership-shards"}, &table); err != nil {
		s.t.Fatal(err)
	}
	var sets map[string]string
	if err := json.Unmarshal([]byte(table.Annotations["operator.kyma-project.io/slots"]), &sets); err != nil {
		s.t.Fatal(err)
	}
	out := map[string][]shard.Slot{}
	for holder, digits := range sets {
		set, err := hex.DecodeString(digits)
		if err != nil {
			s.t.Fatal(err)
		}
		for i := range slots {
			if set[i/8]&(1<<(i%8)) != 0 {
				out[holder] = append(out[holder], shard.Slot(i))
			}
		}
	}
	return out
}

// share waits until all slots are shared by some number of replicas, none of which has too little, and says which.
func (s *site) share(n int) map[string][]shard.Slot {
	s.t.Helper()
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		got, all := s.holders(), 0
		for _, has := range got {
			if all += len(has); len(has) < slots/n/3 {
				all = 0
				break
			}
		}
		if all == slots && len(got) == n {
			return got
		}
		<-time.After(50 * time.Millisecond)
	}
	s.t.Fatalf("the slots are not shared by %d replicas: %v", n, s.holders())
	return nil
}

// slots that a fleet has.
const slots = shard.Slots

// counter is one runtime whose module shows a number that grows and grows.
type counter struct {
	*site
	n    int
	pace *atomic.Int64 // the shortest time between two changes, of all counters
}

const (
	// slow leaves the machine to other tests; fast has every replica in the middle of something at any moment.
	slow = int64(250 * time.Millisecond)
	fast = int64(50 * time.Millisecond)
)

func (c *counter) text() string { return fmt.Sprintf("%06d", c.n) }

// grow changes the Kyma, again and again, until the context ends.
func (c *counter) grow(ctx context.Context) {
	for ctx.Err() == nil {
		c.n++
		c.changes(func(k *v1beta2.Kyma) { inline(`{"inline": "` + c.text() + `"}`)(&k.Spec.Modules[0]) })
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(c.pace.Load()) + rand.N(100*time.Millisecond)):
		}
	}
}

// watch checks that the number in the runtime never goes back, until the context ends, and returns how often it was seen to change.
func (c *counter) watch(ctx context.Context) (seen int, err error) {
	w, err := c.cloud.Watch(ctx, &corev1.ConfigMapList{}, client.InNamespace(c.name), client.MatchingFields{"metadata.name": c.mod("app")})
	if err != nil {
		return 0, err
	}
	defer w.Stop()
	last := ""
	for e := range w.ResultChan() {
		m, is := e.Object.(*corev1.ConfigMap)
		switch {
		case !is && ctx.Err() != nil:
			return seen, err
		case !is:
			return seen, fmt.Errorf("the watch of %s ended: %v", c.name, e.Object)
		}
		if now := m.Data["inline"]; now < last {
			err = errors.Join(err, fmt.Errorf("%s: %s was there, and then %s", c.name, last, now))
		} else if now > last {
			last = now
			seen++
		}
	}
	return seen, err
}

// Three processes share a fleet that changes without end. One is killed, one is stopped for longer than its lease and goes on:
// every Kyma comes to its newest state, and in no runtime an older one ever replaces a newer one.
func TestShards(t *testing.T) {
	t.Parallel()
	s := newShardSite(t)
	replicas := s.replicas(3)
	s.share(3)
	counters := s.counters()
	takers := s.takers(counters)
	stop := s.churn(counters)

	during(t, time.Second/2)
	replicas[0].signal(t, syscall.SIGKILL)
	s.share(2)
	counters[0].pace.Store(fast)
	during(t, time.Second)
	replicas[1].signal(t, syscall.SIGSTOP)
	s.share(1)
	during(t, time.Second/2)
	replicas[1].signal(t, syscall.SIGCONT)
	s.share(2)
	during(t, time.Second/2)
	stop()
	for _, c := range counters {
		c.data("app", "inline", c.text())
		c.ready()
	}
	for _, other := range takers {
		if other.unreachable(v1beta2.ReasonClusterTaken); other.has("app") {
			t.Errorf("Kyma %s works on a cluster that another has", other.name)
		}
	}
	for _, p := range replicas[1:] {
		_ = p.stdin.Close()
		if err := p.Wait(); err != nil {
			t.Errorf("a replica did not end in order: %v", err)
		}
	}
	ours := map[shard.Slot]bool{}
	for _, c := range counters {
		ours[shard.SlotOf(c.key().String())] = true
	}
	for _, other := range takers {
		ours[shard.SlotOf(other.key().String())] = true
	}
	for holder, set := range s.holders() {
		for _, slot := range set {
			if !ours[slot] { // one with a request that was cut short stays until the lease has ended, by when that cannot arrive any more
				t.Errorf("%s has left and still holds slot %d, in which there is nothing", holder, slot)
			}
		}
	}
}

// newShardSite is one whose control plane is in the cluster that others only use as runtime: nobody else works on what is in it.
func newShardSite(t *testing.T) *site {
	t.Helper()
	w, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	own := *w
	if own.api, err = connect(w.target.Config()); err != nil {
		t.Fatal(err)
	}
	return own.bare(t)
}

func during(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-t.Context().Done():
	case <-time.After(d):
	}
}

// counters makes the fleet, and waits until it is ready.
func (s *site) counters() (out []*counter) {
	s.t.Helper()
	pace := &atomic.Int64{}
	pace.Store(slow)
	for i := range shardRuntimes {
		c := &counter{site: s.beside(fmt.Sprint(i)), pace: pace}
		c.join()
		c.offersChart("app")
		c.wants(c.entry("app", inline(`{"inline": "`+c.text()+`"}`)))
		out = append(out, c)
	}
	for _, c := range out {
		c.ready()
	}
	return out
}

// takers makes Kymas that want clusters which others have, most of them in other replicas.
func (s *site) takers(counters []*counter) (out []*site) {
	s.t.Helper()
	for i := range 3 {
		other := s.beside(fmt.Sprint("taker-", i))
		other.proxy = counters[i].proxy
		other.join()
		other.offers("app", "1.0.0")
		other.wants(other.entry("app"))
		out = append(out, other)
	}
	for _, other := range out {
		other.unreachable(v1beta2.ReasonClusterTaken)
	}
	return out
}

// churn changes all Kymas and watches all runtimes, until stop is called, which waits for the changes; the watches end with the test.
func (s *site) churn(counters []*counter) (stop func()) {
	changing, end := context.WithCancel(s.t.Context())
	watching, unwatch := context.WithCancel(s.t.Context())
	var changes, watches sync.WaitGroup
	var total atomic.Int64
	for _, c := range counters {
		changes.Go(func() { c.grow(changing) })
		watches.Go(func() {
			seen, err := c.watch(watching)
			if err != nil {
				s.t.Errorf("%s, which was seen to change %d times: %v", c.name, seen, err)
			}
			total.Add(int64(seen))
		})
	}
	s.t.Cleanup(func() {
		unwatch()
		watches.Wait()
		if n := total.Load(); n < 5*shardRuntimes {
			s.t.Errorf("%d changes were seen in all: the test shows little", n)
		}
	})
	return func() {
		end()
		changes.Wait()
	}
}
