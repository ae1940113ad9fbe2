package localtest_test

import (
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/kyma-project/mothership/internal/infra/local/localtest"
)

func TestStart(t *testing.T) {
	begin := time.Now()
	s := localtest.Start(t)
	t.Logf("ready in %s", time.Since(begin))
	version, err := kubernetes.NewForConfigOrDie(s.Config()).ServerVersion()
	if err != nil || version.Minor == "" {
		t.Fatalf("version %v: %v", version, err)
	}
}
