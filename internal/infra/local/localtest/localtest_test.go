package localtest_test

import (
	"os"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kyma-project/mothership/internal/infra/local/localtest"
)

func TestMain(m *testing.M) { os.Exit(localtest.Main(m)) }

func TestServerIsShared(t *testing.T) {
	t.Parallel()
	if a, b := localtest.Server(t), localtest.Server(t); a != b {
		t.Fatal("two servers for one package")
	}
}

func TestNamespaceIsRemovedWithTheTest(t *testing.T) {
	t.Parallel()
	srv := localtest.Server(t)
	namespaces := localtest.Client(t, srv).CoreV1().Namespaces()
	var name string
	t.Run("Sub/With_Odd.Name", func(t *testing.T) {
		name = localtest.Namespace(t, srv)
		if !strings.HasPrefix(name, "testnamespaceisremovedwiththetest-sub-w") {
			t.Errorf("name %q does not tell the test", name)
		}
	})
	got, err := namespaces.Get(t.Context(), name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) && (err != nil || got.DeletionTimestamp.IsZero()) {
		t.Fatalf("after the test: %v, %v; want it deleted", got, err)
	}
}

func TestKubectl(t *testing.T) {
	t.Parallel()
	srv := localtest.Server(t)
	namespace := localtest.Namespace(t, srv)
	const manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: greeting}\ndata: {text: hello}\n"
	localtest.KubectlInput(t, srv, manifest, "apply", "--server-side", "-n", namespace, "-f", "-")
	if got := localtest.Kubectl(t, srv, "get", "configmap", "greeting", "-n", namespace, "-o", "jsonpath={.data.text}"); got != "hello" {
		t.Errorf("kubectl get: %q", got)
	}
}
