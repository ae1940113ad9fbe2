package mothership_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/kyma-project/mothership/internal/catalog/artifact"
	"github.com/kyma-project/mothership/internal/infra/local"
	"github.com/kyma-project/mothership/internal/infra/local/localtest"
	"github.com/kyma-project/mothership/internal/source"
)

var programs = regexp.MustCompile("(?s)```go\n// Program ([a-z]+) .*?\n```\n")

// program compiles one of the programs of docs/embedding.md as its reader would.
func program(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("docs/embedding.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, found := range programs.FindAllSubmatch(text, -1) {
		if string(found[1]) != name {
			continue
		}
		code := bytes.TrimSuffix(bytes.TrimPrefix(found[0], []byte("```go\n")), []byte("```\n"))
		file, out := filepath.Join(dir, "main.go"), filepath.Join(dir, name)
		if err := os.WriteFile(file, code, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"vet", file}, {"build", "-o", out, file}} {
			if text, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput(); err != nil {
				t.Fatalf("go %s: %v\n%s", args[0], err, text)
			}
		}
		return out
	}
	t.Fatalf("docs/embedding.md has no program %s", name)
	return ""
}

// TestEmbeddingInstall runs the document's first program against a real registry and a real cluster.
func TestEmbeddingInstall(t *testing.T) {
	t.Parallel()
	binary := program(t, "install")
	srv := localtest.Server(t)
	dir := t.TempDir()
	kubeconfig, err := srv.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	address, authority := registryWithChart(t, dir)
	for _, want := range []string{"ConfigMap demo/web created\n", "ConfigMap demo/web unchanged\n"} {
		cmd := exec.CommandContext(t.Context(), binary, file, address)
		cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+authority)
		out, err := cmd.CombinedOutput()
		if err != nil || string(out) != want {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if got := localtest.Kubectl(t, srv, "get", "configmap", "web", "--namespace=demo", "-o", "jsonpath={.data.greeting}"); got != "hello" {
		t.Errorf("greeting is %q", got)
	}
}

// registryWithChart is a registry with a chart, and the file of its authority.
func registryWithChart(t *testing.T, dir string) (address, authority string) {
	t.Helper()
	srv := httptest.NewTLSServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(srv.Close)
	authority = filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"Chart.yaml":         "apiVersion: v2\nname: web\nversion: 1.0.0\n",
		"templates/web.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {greeting: {{ .Values.greeting }}}\n",
	} {
		file := filepath.Join(dir, "web", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	ref, err := artifact.ParseReference("oci://" + srv.Listener.Addr().String() + "/charts/catalog:1")
	if err != nil {
		t.Fatal(err)
	}
	const template = "apiVersion: operator.kyma-project.io/v1beta2\nkind: ModuleTemplate\nmetadata: {name: web-1.0.0}\n" +
		"spec: {moduleName: web, version: 1.0.0, source: {chart: {path: web}}}\n"
	_, err = artifact.Mirror(t.Context(), artifact.Files{{Path: "web.yaml", Data: []byte(template)}}, artifact.MirrorOptions{
		Dir: dir, Sources: source.New(source.Options{}),
		To: artifact.Target{Registry: artifact.NewRegistry(artifact.Options{RootCAs: roots}), Reference: ref},
	})
	if err != nil {
		t.Fatal(err)
	}
	return "oci://" + srv.Listener.Addr().String() + "/charts/catalog/web:1.0.0", authority
}

// TestEmbeddingControlPlane starts the document's second program, and ends it in order.
func TestEmbeddingControlPlane(t *testing.T) {
	t.Parallel()
	binary := program(t, "fleet")
	assets, err := local.Assets()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, filepath.Join(t.TempDir(), "state"))
	cmd.Env = append(os.Environ(), "KUBEBUILDER_ASSETS="+assets)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "ready: https://127.0.0.1:") {
		t.Errorf("it says %q: %v", line, err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v: %s", err, stderr.String())
	}
}
