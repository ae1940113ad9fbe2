package local_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kyma-project/mothership/internal/infra/local"
)

// memoryRounds is how often BenchmarkMemory writes its load and deletes it again.
const memoryRounds = 12

// BenchmarkMemory measures what a server has for itself, in MiB, when it is ready and after 7,200 writes: pages of the
// executable are everybody's and not counted. The package's overview has the results.
//
//	go test ./internal/infra/local -run '^$' -bench Memory -benchtime 1x -count 3
func BenchmarkMemory(b *testing.B) {
	for name, percent := range map[string]int{"Usual": 0, "Frugal": local.Frugal} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				measureMemory(b, local.Options{Controllers: local.WorkloadControllers, Nodes: true, GCPercent: percent})
			}
		})
	}
}

func measureMemory(b *testing.B, o local.Options) {
	b.Helper()
	srv, err := local.Start(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	defer srv.Close()
	b.ReportMetric(private(b, srv, "kube-apiserver"), "ready-MiB")
	c := client(b, srv.Config())
	for range memoryRounds {
		if err := write(b.Context(), c); err != nil {
			b.Fatal(err)
		}
		err := c.CoreV1().ConfigMaps("default").DeleteCollection(b.Context(), metav1.DeleteOptions{}, metav1.ListOptions{})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(private(b, srv, "kube-apiserver"), "loaded-MiB")
}

// private is the anonymous memory of a child (RssAnon of proc_pid_status(5)), in MiB.
func private(b *testing.B, srv *local.Server, name string) float64 {
	b.Helper()
	line, err := os.ReadFile(filepath.Join(srv.Dir(), name+".pid"))
	if err != nil {
		b.Fatal(err)
	}
	pid, _, _ := strings.Cut(string(line), " ")
	status, err := os.ReadFile(filepath.Join("/proc", pid, "status"))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "RssAnon:")
	var kib float64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		b.Fatal(err)
	}
	return kib / 1024
}
