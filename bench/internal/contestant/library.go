package contestant

import (
	"context"

	"k8s.io/client-go/rest"

	"github.com/kyma-project/mothership"
)

// installByLibrary is what a program does that uses the library with its defaults.
func installByLibrary(ctx context.Context, cfg *rest.Config, j Job) error {
	_, err := mothership.New(mothership.Options{}).Install(ctx, cfg, j.Case.Module(j.Namespace), mothership.InstallOptions{})
	return err
}
