package provider_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/infra"
	"github.com/kyma-project/mothership/internal/infra/infratest"
	"github.com/kyma-project/mothership/internal/infra/local"
	"github.com/kyma-project/mothership/internal/infra/local/node"
	"github.com/kyma-project/mothership/internal/infra/local/provider"
)

// patience bounds what takes seconds, on a loaded machine.
const patience = 2 * time.Minute

// bundle is an etcd and a provider of the test's own. Each cluster takes 500 MiB, so these tests are not parallel.
type bundle struct {
	*testing.T
	*provider.Provider
	options provider.Options
	news    chan string // the name of each cluster that was told of
}

func setup(t *testing.T) *bundle {
	t.Helper()
	etcd, err := local.StartEtcd(local.EtcdOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := etcd.Close(); err != nil {
			t.Error(err)
		}
	})
	b := &bundle{T: t, options: provider.Options{Dir: filepath.Join(t.TempDir(), "runtimes"), Etcd: etcd}}
	b.open()
	return b
}

// open makes a provider, which is closed when the test is through.
func (b *bundle) open() {
	b.Helper()
	p, err := provider.New(b.options)
	if err != nil {
		b.Fatal(err)
	}
	news := make(chan string, 100)
	p.Notify(func(namespace, name string) { news <- namespace + "/" + name })
	b.Provider, b.news = p, news
	b.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			b.Error(err)
		}
	})
}

// named is a cluster with a name and an UID.
func named(name, uid string) infra.Cluster {
	return infra.Cluster{
		Namespace: "kcp-system", Name: name, UID: uid,
		Spec: v1beta2.RuntimeSpec{Provider: v1beta2.ProviderLocal},
	}
}

// told waits until the provider has told of the cluster so many times.
func (b *bundle) told(r infra.Cluster, times int) {
	b.Helper()
	end := time.NewTimer(patience)
	defer end.Stop()
	for heard := 0; heard < times; {
		select {
		case name := <-b.news:
			if name == r.Namespace+"/"+r.Name {
				heard++
			}
		case <-end.C:
			b.Fatalf("told of %s/%s %d times; want %d", r.Namespace, r.Name, heard, times)
		}
	}
}

// client uses the kubeconfig of a state as its owner would.
func (b *bundle) client(s infra.State) *kubernetes.Clientset {
	b.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(s.Kubeconfig)
	if err != nil {
		b.Fatal(err)
	}
	if config.Host != s.Facts[v1beta2.FactEndpoint] {
		b.Errorf("the fact of the endpoint is %q; the kubeconfig's %q", s.Facts[v1beta2.FactEndpoint], config.Host)
	}
	config.Timeout = patience
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		b.Fatal(err)
	}
	return client
}

// identity is the UID of the kube-system namespace, by which clusters are told apart.
func (b *bundle) identity(s infra.State) string {
	b.Helper()
	system, err := b.client(s).CoreV1().Namespaces().Get(b.Context(), "kube-system", metav1.GetOptions{})
	if err != nil {
		b.Fatal(err)
	}
	return string(system.UID)
}

// mark writes something that a cluster of the same data still has.
func (b *bundle) mark(s infra.State) {
	b.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "marked"}}
	if _, err := b.client(s).CoreV1().Namespaces().Create(b.Context(), namespace, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
}

func (b *bundle) marked(s infra.State) bool {
	b.Helper()
	_, err := b.client(s).CoreV1().Namespaces().Get(b.Context(), "marked", metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		b.Fatal(err)
	}
	return err == nil
}

// children returns the command lines of the processes that run from a folder.
func (b *bundle) children(dir string) []string {
	b.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		b.Fatal(err)
	}
	var out []string
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err == nil && bytes.Contains(line, []byte(dir)) { // others come and go meanwhile
			out = append(out, string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
	}
	return out
}

// same says whether the kubeconfig of one state is that of the other.
func same(a, b infra.State) bool {
	return bytes.Equal(a.Kubeconfig, b.Kubeconfig) && a.KubeconfigVersion == b.KubeconfigVersion
}

func TestConformance(t *testing.T) {
	b := setup(t)
	r := named("eu", "uid-1")
	infratest.Conforms(t, b.Provider, r)
	if _, err := b.Ensure(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	infratest.Gone(t, b, r) // while it starts
	if left := b.children(b.options.Dir); len(left) > 0 {
		t.Errorf("still running: %q", left)
	}
	if left, err := os.ReadDir(b.options.Dir); err != nil || len(left) > 0 {
		t.Errorf("left in the folder: %v, %v", left, err)
	}
}

func TestDeletedClusterLeavesNoData(t *testing.T) {
	b := setup(t)
	r := named("eu", "uid-1")
	first := infratest.Ready(t, b, r)
	identity := b.identity(first)
	b.mark(first)
	if left := b.children(b.options.Dir); len(left) != 2 {
		t.Errorf("children %q; want an API server and a controller manager", left)
	}
	b.told(r, 1)
	infratest.Gone(t, b, r)
	b.told(r, 1) // so that nobody has to ask again and again
	if left := b.children(b.options.Dir); len(left) > 0 {
		t.Errorf("still running: %q", left)
	}
	if n, err := b.options.Etcd.CountPrefix(t.Context(), "/runtimes/uid-1"); err != nil || n != 0 {
		t.Errorf("%d keys are left, %v", n, err)
	}
	second := infratest.Ready(t, b, r)
	if b.marked(second) || b.identity(second) == identity || same(first, second) {
		t.Error("the cluster was deleted, and has data of before")
	}
}

func TestKilledClusterComesBack(t *testing.T) {
	b := setup(t)
	r := named("eu", "uid-1")
	before := infratest.Ready(t, b, r)
	identity := b.identity(before)
	b.told(r, 1)
	if err := b.Kill(r.Namespace, r.Name); err != nil {
		t.Fatal(err)
	}
	b.told(r, 1)
	down, err := b.Ensure(t.Context(), r)
	if err != nil || down.Ready || !strings.HasPrefix(down.Message, "restarting after: kube-apiserver ended: signal: killed") {
		t.Errorf("after the kill: %v, %v; want it restarting and the reason", down, err)
	}
	if err := b.Kill(r.Namespace, r.Name); !errors.Is(err, provider.ErrNotRunning) {
		t.Errorf("killing what is dead: %v; want ErrNotRunning", err)
	}
	b.told(r, 1) // it comes back without being asked
	after, err := b.Ensure(t.Context(), r)
	if err != nil || !after.Ready || !same(before, after) {
		t.Fatalf("%v, %v; want it ready with the kubeconfig of before", after, err)
	}
	if b.identity(after) != identity {
		t.Error("another cluster came back")
	}
	b.simulated(after)
	requests, err := b.Requests(t.Context(), r.Namespace, r.Name)
	if err != nil || requests[local.Request{Verb: "GET", Resource: "namespaces"}] == 0 {
		t.Errorf("requests %v, %v; want ours among them", requests, err)
	}
	hurry, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Close(hurry); !errors.Is(err, context.Canceled) {
		t.Errorf("closing in no time: %v; want it to say that it killed", err)
	}
	if left := b.children(b.options.Dir); len(left) > 0 {
		t.Errorf("still running: %q", left)
	}
}

// simulated checks that nobody can take the nodes for real ones.
func (b *bundle) simulated(s infra.State) {
	b.Helper()
	nodes, err := b.client(s).CoreV1().Nodes().List(b.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) == 0 {
		b.Fatalf("nodes: %v, %v", nodes, err)
	}
	for _, n := range nodes.Items {
		if n.Labels[node.Label] != "true" || !strings.Contains(n.Status.NodeInfo.KubeletVersion, "simulated") {
			b.Errorf("node %s does not say that it is simulated", n.Name)
		}
	}
}

func TestRestartGoesOn(t *testing.T) {
	b := setup(t)
	b.options.Starts = 1
	b.open()
	eu, us := named("eu", "uid-1"), named("us", "uid-10")
	before := b.bothReady(eu, us)
	b.mark(before[0])
	if b.marked(before[1]) || b.identity(before[0]) == b.identity(before[1]) {
		t.Error("one cluster sees the other's objects")
	}
	b.closeWhileAsked(us)
	if left := b.children(b.options.Dir); len(left) > 0 {
		t.Errorf("still running: %q", left)
	}
	b.open()
	after := infratest.Ready(t, b, eu)
	if !same(before[0], after) || !b.marked(after) {
		t.Error("after a restart the cluster has another kubeconfig or other data")
	}
	infratest.Gone(t, b, us) // it was not asked for since the restart, and exists nevertheless
	if n, err := b.options.Etcd.CountPrefix(t.Context(), "/runtimes/uid-10"); err != nil || n != 0 {
		t.Errorf("%d keys are left, %v", n, err)
	}
	if !b.marked(after) {
		t.Error("the other cluster's data went too")
	}
}

// bothReady starts two clusters, of which one waits for the other.
func (b *bundle) bothReady(one, other infra.Cluster) [2]infra.State {
	b.Helper()
	var messages []string
	first := infratest.Until(b, b, one, func(s infra.State) bool {
		t, err := b.Ensure(b.Context(), other)
		if err != nil {
			b.Fatal(err)
		}
		if s.Message == "starting" && t.Message == "starting" {
			b.Error("two clusters start at the same time")
		}
		messages = append(messages, s.Message, t.Message)
		return s.Ready
	})
	second := infratest.Ready(b, b, other)
	for _, want := range []string{"starting", "waiting to start, after others"} {
		if !slices.Contains(messages, want) {
			b.Errorf("nobody was told %q; only %q", want, slices.Compact(slices.Sorted(slices.Values(messages))))
		}
	}
	return [2]infra.State{first, second}
}

// closeWhileAsked closes the provider while others ask for a cluster.
func (b *bundle) closeWhileAsked(r infra.Cluster) {
	b.Helper()
	var asking sync.WaitGroup
	defer asking.Wait()
	asked := make(chan struct{})
	asking.Go(func() {
		for i := 0; ; i++ {
			_, err := b.Ensure(context.Background(), r)
			if i == 0 {
				close(asked)
			}
			if errors.Is(err, provider.ErrClosed) {
				return
			}
		}
	})
	<-asked
	for range 2 {
		if err := b.Close(context.Background()); err != nil {
			b.Error(err)
		}
	}
	if _, err := b.Delete(context.Background(), r); !errors.Is(err, provider.ErrClosed) {
		b.Errorf("deleting after Close: %v; want ErrClosed", err)
	}
}

func TestNewClusterTakesAName(t *testing.T) {
	b := setup(t)
	old, young := named("eu", "uid-1"), named("eu", "uid-2")
	oldState := infratest.Ready(t, b, old)
	b.mark(oldState)
	youngState := infratest.Ready(t, b, young)
	if b.marked(youngState) || b.identity(youngState) == "" || same(oldState, youngState) {
		t.Error("the new cluster is the old one")
	}
	infratest.Gone(t, b, old)
	if left := b.children(filepath.Join(b.options.Dir, old.UID)); len(left) > 0 {
		t.Errorf("still running: %q", left)
	}
	if again := infratest.Ready(t, b, young); !same(youngState, again) {
		t.Error("the new cluster changed when the old one was deleted")
	}
}

func TestStartThatFails(t *testing.T) {
	b := setup(t)
	b.options.Assets = t.TempDir() // where no executables are
	b.open()
	r := named("eu", "uid-1")
	state := infratest.Until(t, b, r, func(s infra.State) bool { return strings.HasPrefix(s.Message, "restarting after:") })
	if !strings.Contains(state.Message, "run make kube") {
		t.Errorf("%v; want it to say what to do", state)
	}
	b.told(r, 2) // it is tried again
	infratest.Gone(t, b, r)
}

func TestWhatMakesNoSense(t *testing.T) {
	b := setup(t)
	for name, r := range map[string]infra.Cluster{
		"NoUID": named("eu", ""), "NoName": named("", "uid-1"), "Parent": named("eu", ".."), "Path": named("eu", "a/b"),
		"Long": named("eu", strings.Repeat("a", 64)),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := b.Ensure(t.Context(), r); err == nil {
				t.Error("it was begun")
			}
			if gone, err := b.Delete(t.Context(), r); err == nil || gone {
				t.Errorf("gone: %t, %v", gone, err)
			}
		})
	}
	for name, o := range map[string]provider.Options{
		"NoDir": {Etcd: b.options.Etcd}, "NoEtcd": {Dir: t.TempDir()}, "NegativeStarts": {Dir: t.TempDir(), Etcd: b.options.Etcd, Starts: -1},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := provider.New(o); err == nil {
				t.Error("it was made")
			}
		})
	}
	if err := b.Kill("kcp-system", "eu"); !errors.Is(err, provider.ErrNotRunning) {
		t.Errorf("killing what is not there: %v", err)
	}
	if _, err := b.Requests(t.Context(), "kcp-system", "eu"); !errors.Is(err, provider.ErrNotRunning) {
		t.Errorf("counting what is not there: %v", err)
	}
}
