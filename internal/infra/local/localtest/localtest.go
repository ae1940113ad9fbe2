// Package localtest gives tests a real Kubernetes API server.
package localtest

import (
	"context"
	"testing"

	"github.com/kyma-project/mothership/internal/infra/local"
)

// Option changes what Start starts, as in
//
//	localtest.Start(t, func(o *local.Options) { o.Controllers = local.WorkloadControllers })
type Option = func(*local.Options)

// Start starts a server with the namespace and garbage collection controllers for one test and closes it when the test
// and its subtests are through. Without the executables the test fails; the message says to run make kube.
func Start(t testing.TB, options ...Option) *local.Server {
	t.Helper()
	o := local.Options{Controllers: local.DefaultControllers}
	for _, option := range options {
		option(&o)
	}
	s, err := local.Start(context.Background(), o)
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
