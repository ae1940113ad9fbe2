package local_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kyma-project/mothership/internal/infra/local"
	"github.com/kyma-project/mothership/internal/infra/local/localtest"
)

// sharedEtcd starts an etcd in a folder whose socket's path fits into no address.
func sharedEtcd(t *testing.T) *local.Etcd {
	t.Helper()
	etcd, err := local.StartEtcd(local.EtcdOptions{Dir: filepath.Join(t.TempDir(), strings.Repeat("long", 30))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := etcd.Close(); err != nil {
			t.Error(err)
		}
	})
	return etcd
}

// load is what writes to a server: so many objects, by so many clients at once.
const (
	load    = 300
	writers = 16
)

// write makes and changes objects, none of which may fail.
func write(ctx context.Context, c *kubernetes.Clientset) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	maps := c.CoreV1().ConfigMaps("default")
	for i := range load {
		group.Go(func() error {
			object := &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("load-%d", i)},
				Data:       map[string]string{"text": strings.Repeat("x", 4096)},
			}
			object, err := maps.Create(ctx, object, metav1.CreateOptions{})
			if err == nil {
				object.Data["text"] = "changed"
				_, err = maps.Update(ctx, object, metav1.UpdateOptions{})
			}
			return err
		})
	}
	return group.Wait()
}

func count(t *testing.T, etcd *local.Etcd, prefix string) int {
	t.Helper()
	n, err := etcd.CountPrefix(t.Context(), prefix)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestManyServersOnOneEtcd(t *testing.T) {
	t.Parallel()
	etcd := sharedEtcd(t)
	if n := count(t, etcd, "/eu-1"); n != 0 { // asked before etcd serves
		t.Errorf("%d keys before anything was written", n)
	}
	euDir := t.TempDir()
	eu := localtest.Start(t, alone, func(o *local.Options) { o.Etcd, o.Prefix, o.Dir = etcd, "/eu-1", euDir })
	us := localtest.Start(t, alone, func(o *local.Options) { o.Etcd, o.Prefix = etcd, "/eu-10" })

	begin := time.Now()
	group, ctx := errgroup.WithContext(t.Context())
	for _, srv := range []*local.Server{eu, us} {
		group.Go(func() error { return write(ctx, client(t, srv.Config())) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d writes in %s", 2*2*load, time.Since(begin))

	t.Run("DoNotSeeEachOther", func(t *testing.T) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}
		if _, err := client(t, eu.Config()).CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		_, err := client(t, us.Config()).CoreV1().Namespaces().Get(t.Context(), "mine", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			t.Errorf("the other server: %v; want not found", err)
		}
	})
	t.Run("AreRemovedAlone", func(t *testing.T) {
		gone := local.Options{Dir: euDir, Etcd: etcd, Prefix: "/eu-1"}
		if err := local.Remove(t.Context(), gone); !errors.Is(err, local.ErrInUse) {
			t.Fatalf("removing a server that runs: %v; want ErrInUse", err)
		}
		if n := count(t, etcd, "/eu-1"); n < load {
			t.Fatalf("%d keys; want those of %d objects at least", n, load)
		}
		if err := eu.Close(); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time there is nothing to do
			if err := local.Remove(t.Context(), gone); err != nil {
				t.Fatal(err)
			}
		}
		if n := count(t, etcd, "/eu-1"); n != 0 {
			t.Errorf("%d keys are left", n)
		}
		if _, err := os.Stat(euDir); !os.IsNotExist(err) {
			t.Errorf("the folder is left: %v", err)
		}
		maps, err := client(t, us.Config()).CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(maps.Items) < load {
			t.Errorf("the other server has %d objects, %v; want %d", len(maps.Items), err, load)
		}
	})
}

func TestRemoveOfNothing(t *testing.T) {
	t.Parallel()
	if err := local.Remove(t.Context(), local.Options{Dir: filepath.Join(t.TempDir(), "never")}); err != nil {
		t.Errorf("what never was is gone: %v", err)
	}
	if err := local.Remove(t.Context(), local.Options{}); err == nil {
		t.Error("nothing was named")
	}
	if err := local.Remove(t.Context(), local.Options{Dir: t.TempDir(), Etcd: new(local.Etcd)}); err == nil {
		t.Error("all keys of a shared etcd would have gone")
	}
}

func TestEtcdThatEnded(t *testing.T) {
	t.Parallel()
	etcd := sharedEtcd(t)
	if err := etcd.Close(); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	_, err := local.Start(t.Context(), local.Options{Etcd: etcd, Prefix: "/eu-1"})
	var exit *local.ExitError
	if !errors.As(err, &exit) || exit.Name != "etcd" {
		t.Errorf("starting: %v; want the end of etcd", err)
	}
	if _, err := etcd.DeletePrefix(t.Context(), "/eu-1"); !errors.As(err, &exit) {
		t.Errorf("deleting keys: %v; want the end of etcd", err)
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("it took %s to notice", took)
	}
}
