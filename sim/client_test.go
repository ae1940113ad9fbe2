package sim_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/internal/infra/local"
)

func groupKind(group, kind string) schema.GroupKind {
	return schema.GroupKind{Group: group, Kind: kind}
}

// TestControllerRuntimeClient writes protobuf, as that client does for built-in kinds.
func TestControllerRuntimeClient(t *testing.T) {
	t.Parallel()
	s := start(t)
	c, err := client.New(add(t, s, "eu-1"), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cm := &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Data: map[string]string{"k": "v"}}
	if err := c.Create(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	cm.Data["k"] = "w"
	if err := c.Update(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	var got core.ConfigMap
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(cm), &got); err != nil || got.Data["k"] != "w" {
		t.Fatalf("%v %v", got.Data, err)
	}
	stale := cm.DeepCopy()
	stale.ResourceVersion = "1"
	if err := c.Update(t.Context(), stale); !apierrors.IsConflict(err) {
		t.Errorf("a stale update: %v", err)
	}
}

// TestInformer follows a resource as controllers do, from its list through its changes.
func TestInformer(t *testing.T) {
	t.Parallel()
	s := start(t)
	clients, err := kubernetes.NewForConfig(add(t, s, "eu-1"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	events := make(chan string, 16)
	factory := informers.NewSharedInformerFactoryWithOptions(clients, 0, informers.WithNamespace("default"))
	_, err = factory.Core().V1().ConfigMaps().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { events <- "added" },
		UpdateFunc: func(any, any) { events <- "changed" },
		DeleteFunc: func(any) { events <- "gone" },
	})
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	maps := clients.CoreV1().ConfigMaps("default")
	cm, err := maps.Create(ctx, &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
	expect(ctx, t, events, "added", err)
	cm.Data = map[string]string{"k": "v"}
	_, err = maps.Update(ctx, cm, metav1.UpdateOptions{})
	expect(ctx, t, events, "changed", err)
	expect(ctx, t, events, "gone", maps.Delete(ctx, "a", metav1.DeleteOptions{}))
	cancel()
	factory.Shutdown()
}

func expect(ctx context.Context, t *testing.T, events <-chan string, want string, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-events:
		if got != want {
			t.Fatalf("%s, want %s", got, want)
		}
	case <-ctx.Done():
		t.Fatalf("no event, want %s", want)
	}
}

// TestKubectl uses the real one, which asks discovery and OpenAPI before it writes.
func TestKubectl(t *testing.T) {
	t.Parallel()
	s := start(t)
	add(t, s, "eu-1")
	assets, err := local.Assets()
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := s.Kubeconfig("eu-1")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	const manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: greeting, namespace: default}\ndata: {text: hello}\n"
	for _, step := range []struct{ args, want string }{
		{"apply --server-side -f -", "serverside-applied"},
		{"apply -f -", "configured"},
		{"get configmap greeting -n default -o jsonpath={.data.text}", "hello"},
		{"get cm -A", "greeting"},
		{"label cm greeting -n default a=b", "labeled"},
		{"delete cm greeting -n default --wait", "deleted"},
		{"auth can-i create pods", "yes"},
		{"create namespace demo", "created"},
		{"delete namespace demo --wait", "deleted"},
	} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(assets, "kubectl"), append([]string{"--kubeconfig=" + file}, strings.Fields(step.args)...)...)
		cmd.Env = []string{"HOME=" + dir}
		cmd.Stdin = strings.NewReader(manifest)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), step.want) {
			t.Errorf("kubectl %s: %v, no %q: %s", step.args, err, step.want, out)
		}
	}
}
