// Package localtest gives tests a real Kubernetes API server: one per test (Start), or one that all tests of a package
// share, which is started by the first that asks for it:
//
//	func TestMain(m *testing.M) { os.Exit(localtest.Main(m)) }
//
//	func TestApply(t *testing.T) {
//		t.Parallel()
//		srv := localtest.Server(t)
//		namespace := localtest.Namespace(t, srv)
//		...
//	}
//
// A server takes 2.2 s to start and 490 MiB, so share one unless the test needs a server of its own: tests of one
// package keep to their namespaces, and give what is cluster-wide names of their own. Without the executables the tests
// fail and say "run make kube"; they are never skipped.
//
// It may import internal/infra/local and client-go, and is for tests only.
package localtest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/kyma-project/mothership/internal/infra/local"
)

// Option changes what is started, as in
//
//	localtest.Start(t, func(o *local.Options) { o.Nodes, o.Controllers = true, local.WorkloadControllers })
type Option = func(*local.Options)

// Start starts a server with the namespace and garbage collection controllers for one test, and closes it when the test
// and its subtests are through.
func Start(t testing.TB, options ...Option) *local.Server {
	t.Helper()
	s, err := start(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func start(options []Option) (*local.Server, error) {
	o := local.Options{Controllers: local.DefaultControllers}
	for _, option := range options {
		option(&o)
	}
	return local.Start(context.Background(), o)
}

// shared is the server of the package under test; Main sets it before any test runs.
var shared struct {
	get     func() (*local.Server, error)
	started bool // written by get, read when no test runs any more
}

// Main runs the tests of a package and closes the server that they shared, if any of them asked for it. It returns the
// exit code for os.Exit.
func Main(m *testing.M, options ...Option) int {
	shared.get = sync.OnceValues(func() (*local.Server, error) {
		s, err := start(options)
		shared.started = err == nil
		return s, err
	})
	code := m.Run()
	if !shared.started {
		return code
	}
	s, _ := shared.get()
	if err := s.Close(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	return code
}

// Server returns the server that all tests of the package share, and starts it if this is the first call. The package
// needs a TestMain that calls Main.
func Server(t testing.TB) *local.Server {
	t.Helper()
	if shared.get == nil {
		t.Fatal("localtest.Server needs this in the package's tests: func TestMain(m *testing.M) { os.Exit(localtest.Main(m)) }")
	}
	s, err := shared.get()
	if err != nil {
		t.Fatal(err)
	}
	return s
}
