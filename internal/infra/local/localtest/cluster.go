package localtest

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kyma-project/mothership/internal/infra/local"
)

// callTimeout bounds every call of a helper; all of them take milliseconds.
const callTimeout = time.Minute

// notDNS is what a namespace's name cannot have.
var notDNS = regexp.MustCompile(`[^a-z0-9]+`)

// Namespace makes a namespace whose name begins like the test's and is unique, and deletes it when the test is through,
// without waiting until it is gone. It returns the name.
func Namespace(t testing.TB, srv *local.Server) string {
	t.Helper()
	client := Client(t, srv).CoreV1().Namespaces()
	ctx, cancel := context.WithTimeout(t.Context(), callTimeout)
	defer cancel()
	prefix := strings.Trim(notDNS.ReplaceAllString(strings.ToLower(t.Name()), "-"), "-")
	prefix = prefix[:min(len(prefix), 40)] + "-"
	made, err := client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
		defer cancel()
		if err := client.Delete(ctx, made.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("deleting namespace %s: %v", made.Name, err)
		}
	})
	return made.Name
}

// Client returns a typed client of the administrator.
func Client(t testing.TB, srv *local.Server) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(srv.Config())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// Kubeconfig writes the administrator's kubeconfig to a file that lives as long as the test, and returns its path.
func Kubeconfig(t testing.TB, srv *local.Server) string {
	t.Helper()
	data, err := srv.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Kubectl runs the real kubectl as the administrator and returns what it wrote to stdout. The test fails when kubectl
// does.
func Kubectl(t testing.TB, srv *local.Server, args ...string) string {
	t.Helper()
	return KubectlInput(t, srv, "", args...)
}

// KubectlInput is Kubectl with something to read from stdin, as "apply -f -" does.
func KubectlInput(t testing.TB, srv *local.Server, stdin string, args ...string) string {
	t.Helper()
	assets, err := local.Assets()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), callTimeout)
	defer cancel()
	kubeconfig := Kubeconfig(t, srv)
	cmd := exec.CommandContext(ctx, filepath.Join(assets, "kubectl"), append([]string{"--kubeconfig=" + kubeconfig}, args...)...)
	cmd.Env = []string{"HOME=" + filepath.Dir(kubeconfig)} // its discovery cache must not outlive the server
	cmd.Stdin = strings.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s%s", strings.Join(args, " "), err, out, stderr.String())
	}
	return string(out)
}
