package cli_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kyma-project/mothership/controlplane"
	"github.com/kyma-project/mothership/internal/infra/local"
	"github.com/kyma-project/mothership/internal/statedir"
)

// plane is the embedded control plane that all tests of the package share. It is started by the first that asks for it.
var plane struct {
	once sync.Once
	dir  string
	cp   *controlplane.ControlPlane
	err  error
}

// planeTimeout bounds its start.
const planeTimeout = time.Minute

// sharedPlane returns the kubeconfig of the shared control plane.
func sharedPlane(t *testing.T) string {
	t.Helper()
	plane.once.Do(func() { plane.err = startPlane() })
	if plane.err != nil {
		t.Fatal(plane.err)
	}
	return filepath.Join(plane.dir, statedir.Kubeconfig)
}

func startPlane() (err error) {
	if plane.dir, err = os.MkdirTemp("", "mothership-cli-"); err != nil {
		return err
	}
	if plane.cp, err = controlplane.Start(context.Background(), controlplane.Config{Local: &controlplane.Local{Dir: plane.dir}}); err != nil {
		return err
	}
	timer := time.NewTimer(planeTimeout)
	defer timer.Stop()
	select {
	case <-plane.cp.Ready():
		return nil
	case err := <-plane.cp.Err():
		return fmt.Errorf("the shared control plane: %w", err)
	case <-timer.C:
		return errors.New("the shared control plane was not ready in time")
	}
}

// closePlane ends the shared control plane, if any test has started it.
func closePlane() error {
	if plane.cp == nil {
		return nil
	}
	return errors.Join(plane.cp.Close(), os.RemoveAll(plane.dir))
}

// usePlane makes the shared control plane that of a script, and a namespace in it its own: $NS.
func usePlane(t *testing.T, ts *testscript.TestScript, args []string) {
	t.Helper()
	if len(args) != 1 {
		ts.Fatalf("usage: plane NAMESPACE")
	}
	kubeconfig := sharedPlane(t)
	assets, err := local.Assets()
	ts.Check(err)
	ts.Setenv("MOTHERSHIP_KUBECONFIG", kubeconfig)
	ts.Setenv("KUBECONFIG", kubeconfig)
	ts.Setenv("HOME", ts.Getenv("WORK"))
	ts.Setenv("PATH", ts.Getenv("PATH")+string(os.PathListSeparator)+assets)
	ts.Setenv("NS", args[0])
	kubectl := func(ignore bool, args ...string) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, filepath.Join(assets, "kubectl"), append([]string{"--kubeconfig", kubeconfig}, args...)...)
		cmd.Env = []string{"HOME=" + ts.Getenv("WORK")}
		if out, err := cmd.CombinedOutput(); err != nil && !ignore {
			ts.Fatalf("kubectl %v: %v: %s", args, err, out)
		}
	}
	kubectl(args[0] == controlplane.DefaultNamespace, "create", "namespace", args[0])
}
