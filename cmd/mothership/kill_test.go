package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/infra/local"
)

// kills is how often the control plane is killed; `make soak` kills it ten times.
var kills = flag.Int("kills", 2, "how often TestKill kills the control plane in the middle of an installation")

const (
	// objects of each module.
	objects = 40
	// bookkeeping is how many more writes of ConfigMaps an installation may take: the set's parent, before, after, and once more
	// after a conflict with what the killed one wrote last.
	bookkeeping = 4
	// patience bounds each wait.
	patience = 90 * time.Second
)

// TestKill kills a control plane with -9 at a random moment of an installation, again and again. Each time its children must be
// gone, the next one must bring the module to its end, and what was installed before must not be written again.
func TestKill(t *testing.T) {
	t.Parallel()
	f := &fleet{t: t, dir: filepath.Join(t.TempDir(), "state"), source: t.TempDir()}
	f.up()
	f.create(
		&v1beta2.Runtime{ObjectMeta: named("eu-1"), Spec: v1beta2.RuntimeSpec{Provider: v1beta2.ProviderLocal}},
		&v1beta2.Kyma{ObjectMeta: named("eu-1"), Spec: v1beta2.KymaSpec{Channel: "regular"}},
	)
	f.install(0)
	f.untilReady(1)
	for i := range *kills {
		before := f.versions()
		f.install(i + 1)
		f.kill(rand.N(700 * time.Millisecond))
		f.childrenAreGone()
		f.up()
		f.untilReady(i + 2)
		f.check(before, i+2)
	}
	f.process.Process.Signal(os.Interrupt) //nolint:errcheck // its end is checked
	if err := f.process.Wait(); err != nil {
		t.Errorf("the control plane did not end in order: %v", err)
	}
	f.childrenAreGone()
}

// fleet is a control plane as a process, and its one runtime.
type fleet struct {
	t       *testing.T
	dir     string
	source  string
	process *exec.Cmd
	client  client.WithWatch
}

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "kcp-system", Name: name}
}

// up starts the control plane and waits until it says that it is ready.
func (f *fleet) up() {
	f.t.Helper()
	f.process = exec.Command("mothership", "up", "--dir", f.dir, "--log-file") //nolint:noctx // it is killed below, or by the end of the test
	out, err := f.process.StdoutPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	f.process.Stderr = os.Stderr
	if err := f.process.Start(); err != nil {
		f.t.Fatal(err)
	}
	process := f.process.Process
	f.t.Cleanup(func() { _ = process.Kill() })
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); err != nil {
		logged, _ := os.ReadFile(filepath.Join(f.dir, "mothership.log"))
		f.t.Fatalf("the control plane did not start: %v: %s\n%s", err, line, logged)
	}
	go io.Copy(io.Discard, lines) //nolint:errcheck // ends with the process
	cfg, err := clientcmd.BuildConfigFromFlags("", filepath.Join(f.dir, "kubeconfig"))
	if err != nil {
		f.t.Fatal(err)
	}
	f.client = f.clientOf(cfg)
}

func (f *fleet) clientOf(cfg *rest.Config) client.WithWatch {
	f.t.Helper()
	log.SetLogger(logr.Discard()) // it complains where nobody has set one
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1beta2.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			f.t.Fatal(err)
		}
	}
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme})
	if err != nil {
		f.t.Fatal(err)
	}
	return c
}

func (f *fleet) create(all ...client.Object) {
	f.t.Helper()
	for _, obj := range all {
		if err := f.client.Create(f.t.Context(), obj); err != nil {
			f.t.Fatal(err)
		}
	}
}

// install adds module i to the Kyma.
func (f *fleet) install(i int) {
	f.t.Helper()
	module := fmt.Sprintf("m%d", i)
	var manifests strings.Builder
	for n := range objects {
		fmt.Fprintf(&manifests, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s-%d}\ndata: {n: \"%d\"}\n", module, n, n)
	}
	file := filepath.Join(f.source, module+".yaml")
	if err := os.WriteFile(file, []byte(manifests.String()), 0o600); err != nil {
		f.t.Fatal(err)
	}
	f.create(&v1beta2.ModuleTemplate{ObjectMeta: named(module + "-1.0.0"), Spec: v1beta2.ModuleTemplateSpec{
		ModuleName: module, Version: "1.0.0", Source: v1beta2.Source{Manifests: &v1beta2.SourceRef{Path: file}},
	}})
	var k v1beta2.Kyma
	if err := f.client.Get(f.t.Context(), types.NamespacedName{Namespace: "kcp-system", Name: "eu-1"}, &k); err != nil {
		f.t.Fatal(err)
	}
	base := k.DeepCopy()
	k.Spec.Modules = append(k.Spec.Modules, v1beta2.Module{Name: module, Version: "1.0.0"})
	if err := f.client.Patch(f.t.Context(), &k, client.MergeFrom(base)); err != nil {
		f.t.Fatal(err)
	}
}

// kill kills the control plane after a time.
func (f *fleet) kill(after time.Duration) {
	f.t.Helper()
	<-time.After(after)
	if err := f.process.Process.Kill(); err != nil {
		f.t.Fatal(err)
	}
	_ = f.process.Wait() // it was killed
	f.t.Logf("killed after %s", after)
}

// childrenAreGone waits until no process is left that a pid file names: the kernel kills them with their parent.
func (f *fleet) childrenAreGone() {
	f.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		alive := f.children()
		if len(alive) == 0 {
			return
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("still running: %s", strings.Join(alive, ", "))
		}
		<-time.After(20 * time.Millisecond)
	}
}

// children are the processes that work in the state folder.
func (f *fleet) children() (alive []string) {
	entries, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		f.t.Fatal(err)
	}
	for _, entry := range entries {
		if cwd, err := os.Readlink(entry); err == nil && strings.HasPrefix(cwd, f.dir) {
			alive = append(alive, entry+" in "+cwd)
		}
	}
	return alive
}

// untilReady waits until the Kyma says that n modules are ready.
func (f *fleet) untilReady(n int) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	f.untilAnswers(ctx)
	w, err := f.client.Watch(ctx, &v1beta2.KymaList{}, client.InNamespace("kcp-system"))
	if err != nil {
		f.t.Fatal(err)
	}
	defer w.Stop()
	var last v1beta2.KymaStatus
	for e := range w.ResultChan() {
		k, ok := e.Object.(*v1beta2.Kyma)
		if !ok {
			continue
		}
		last = k.Status
		if last.State == v1beta2.StateReady && last.ObservedGeneration == k.Generation && last.ModulesReady == fmt.Sprintf("%d/%d", n, n) {
			return
		}
	}
	f.t.Fatalf("%d modules were not ready in time: %+v", n, last)
}

// untilAnswers waits until the runtime's API server does: after a start, what the status says is from before.
func (f *fleet) untilAnswers(ctx context.Context) {
	f.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		var secret corev1.Secret
		err := f.client.Get(ctx, types.NamespacedName{Namespace: "kcp-system", Name: "eu-1-kubeconfig"}, &secret)
		if err == nil {
			_, err = local.RequestsAt(ctx, f.runtimeConfig())
		}
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			f.t.Fatalf("the runtime does not answer: %v", err)
		}
	}
}

// runtimeConfig is the way to the runtime.
func (f *fleet) runtimeConfig() *rest.Config {
	f.t.Helper()
	var secret corev1.Secret
	if err := f.client.Get(f.t.Context(), types.NamespacedName{Namespace: "kcp-system", Name: "eu-1-kubeconfig"}, &secret); err != nil {
		f.t.Fatal(err)
	}
	cfg, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["kubeconfig"])
	if err != nil {
		f.t.Fatal(err)
	}
	return cfg
}

// versions are the resourceVersions of all objects of modules in the runtime, by name.
func (f *fleet) versions() map[string]string {
	f.t.Helper()
	var list corev1.ConfigMapList
	if err := f.clientOf(f.runtimeConfig()).List(f.t.Context(), &list, client.HasLabels{v1beta2.ApplySetPartOfLabel}); err != nil {
		f.t.Fatal(err)
	}
	out := map[string]string{}
	for i := range list.Items {
		out[list.Items[i].Name] = list.Items[i].ResourceVersion
	}
	return out
}

// check compares the runtime with what should be there, and the writes since its start with what was missing.
func (f *fleet) check(before map[string]string, modules int) {
	f.t.Helper()
	after := f.versions()
	if len(after) != modules*objects {
		f.t.Errorf("%d objects, want %d", len(after), modules*objects)
	}
	for name, version := range before {
		if after[name] != version {
			f.t.Errorf("%s was written again: resourceVersion %s, before %s", name, after[name], version)
		}
	}
	counts, err := local.RequestsAt(f.t.Context(), f.runtimeConfig())
	if err != nil {
		f.t.Fatal(err)
	}
	if n := counts[local.Request{Verb: "APPLY", Resource: "configmaps"}]; n > objects+bookkeeping {
		f.t.Errorf("%d writes since the start, for a module of %d objects", n, objects)
	}
}
