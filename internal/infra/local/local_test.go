package local_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kyma-project/mothership/internal/infra/local"
	"github.com/kyma-project/mothership/internal/infra/local/localtest"
)

// alone starts an API server without controllers, for tests of the processes.
func alone(o *local.Options) { o.Controllers = nil }

// client returns a client for a configuration.
func client(t testing.TB, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestConfigs(t *testing.T) {
	t.Parallel()
	srv := localtest.Server(t)
	list := func(t *testing.T, config *rest.Config) error {
		t.Helper()
		_, err := client(t, config).CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{})
		return err
	}
	t.Run("Admin", func(t *testing.T) {
		t.Parallel()
		if err := list(t, srv.Config()); err != nil {
			t.Error(err)
		}
	})
	t.Run("Kubeconfig", func(t *testing.T) {
		t.Parallel()
		data, err := srv.Kubeconfig()
		if err != nil {
			t.Fatal(err)
		}
		config, err := clientcmd.RESTConfigFromKubeConfig(data)
		if err != nil {
			t.Fatal(err)
		}
		if config.CAFile != "" || config.BearerTokenFile != "" || config.Insecure {
			t.Errorf("the kubeconfig refers to files or is insecure:\n%s", data)
		}
		if err := list(t, config); err != nil {
			t.Error(err)
		}
	})
	t.Run("UserIsForbidden", func(t *testing.T) {
		t.Parallel()
		config, err := srv.UserConfig("jane", "developers")
		if err != nil {
			t.Fatal(err)
		}
		if err := list(t, config); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `"jane"`) {
			t.Errorf("listing secrets as jane: %v; want it forbidden to jane", err)
		}
	})
	t.Run("UserOfAdminGroup", func(t *testing.T) {
		t.Parallel()
		config, err := srv.UserConfig("root", "system:masters")
		if err != nil {
			t.Fatal(err)
		}
		if err := list(t, config); err != nil {
			t.Error(err)
		}
	})
	t.Run("WrongToken", func(t *testing.T) {
		t.Parallel()
		config := srv.Config()
		config.BearerToken = "wrong"
		if err := list(t, config); !apierrors.IsUnauthorized(err) {
			t.Errorf("listing secrets with a wrong token: %v; want unauthorized", err)
		}
	})
	t.Run("OtherAuthority", func(t *testing.T) {
		t.Parallel()
		config := srv.Config()
		config.CAData = nil
		if err := list(t, config); err == nil {
			t.Error("the server's certificate was accepted without its authority")
		}
	})
}

func TestRequestsAreCounted(t *testing.T) {
	t.Parallel()
	srv := localtest.Start(t, alone)
	before, err := srv.Requests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	secrets := client(t, srv.Config()).CoreV1().Secrets("default")
	for range 3 {
		if _, err := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{GenerateName: "s-"}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	after, err := srv.Requests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	creation := local.Request{Verb: "POST", Resource: "secrets"}
	if made := after[creation] - before[creation]; made != 3 {
		t.Errorf("%d creations counted; want 3 (%v, %v)", made, before, after)
	}
}

func TestTwoServersAtOnce(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			srv, err := local.Start(t.Context(), local.Options{})
			if err != nil {
				t.Error(err)
				return
			}
			if err := srv.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestStateSurvivesRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := localtest.Start(t, alone, func(o *local.Options) { o.Dir = dir })
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}
	if _, err := client(t, first.Config()).CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := local.Start(t.Context(), local.Options{Dir: dir})
	if !errors.Is(err, local.ErrInUse) {
		t.Errorf("a second server in the same folder: %v; want ErrInUse", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := localtest.Start(t, alone, func(o *local.Options) { o.Dir = dir })
	kept := client(t, first.Config()) // its keys and its port are still good
	if _, err := kept.CoreV1().Namespaces().Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", strings.TrimPrefix(second.Config().Host, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	third := localtest.Start(t, alone, func(o *local.Options) { o.Dir = dir })
	if third.Config().Host == second.Config().Host {
		t.Errorf("two listen on %s", third.Config().Host)
	}
}

func TestStartErrors(t *testing.T) {
	t.Parallel()
	t.Run("MissingExecutables", func(t *testing.T) {
		t.Parallel()
		_, err := local.Start(t.Context(), local.Options{Assets: t.TempDir()})
		if !errors.Is(err, local.ErrNoAssets) || !strings.Contains(err.Error(), "run make kube") {
			t.Errorf("error %v; want ErrNoAssets with what to do", err)
		}
	})
	t.Run("MissingControllerManager", func(t *testing.T) {
		t.Parallel()
		assets, err := local.Assets()
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		for _, bin := range []string{"etcd", "kube-apiserver"} {
			if err := os.Symlink(filepath.Join(assets, bin), filepath.Join(dir, bin)); err != nil {
				t.Fatal(err)
			}
		}
		_, err = local.Start(t.Context(), local.Options{Assets: dir, Controllers: local.DefaultControllers})
		if !errors.Is(err, local.ErrNoAssets) || !strings.Contains(err.Error(), "kube-controller-manager") {
			t.Errorf("error %v; want ErrNoAssets for kube-controller-manager", err)
		}
	})
	t.Run("SharedEtcdWithoutPrefix", func(t *testing.T) {
		t.Parallel()
		if _, err := local.Start(t.Context(), local.Options{Etcd: new(local.Etcd)}); err == nil {
			t.Error("two servers would share their keys")
		}
	})
	t.Run("PortTaken", func(t *testing.T) {
		t.Parallel()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		port := l.Addr().(*net.TCPAddr).Port
		_, err = local.Start(t.Context(), local.Options{Port: port})
		if !errors.Is(err, local.ErrPortTaken) {
			t.Errorf("error %v; want ErrPortTaken", err)
		}
	})
	t.Run("WrongArgument", func(t *testing.T) {
		t.Parallel()
		_, err := local.Start(t.Context(), local.Options{APIServerArgs: []string{"--no-such-flag"}})
		var exit *local.ExitError
		if !errors.As(err, &exit) || exit.Name != "kube-apiserver" || !strings.Contains(exit.Log, "no-such-flag") {
			t.Errorf("error %v; want the last words of kube-apiserver", err)
		}
	})
	t.Run("WrongController", func(t *testing.T) {
		t.Parallel()
		_, err := local.Start(t.Context(), local.Options{Controllers: []string{"no-such-controller"}})
		var exit *local.ExitError
		if !errors.As(err, &exit) || exit.Name != "kube-controller-manager" {
			t.Errorf("error %v; want the last words of kube-controller-manager", err)
		}
	})
}
