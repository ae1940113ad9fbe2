package mothership

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/kyma-project/mothership/internal/module"
	"github.com/kyma-project/mothership/internal/render"
)

// RenderOptions of Render. The zero value works.
type RenderOptions struct {
	// KubeVersion that charts see, such as v1.36.3. Default: that of the Kubernetes this library is built for.
	KubeVersion string
	// APIVersions that charts see in addition to the built-in ones.
	APIVersions []string
	// Timeout of the whole call. Default: 5 m.
	Timeout time.Duration
}

// Render is the module as it would be sent to a cluster, without a cluster.
func (i *Installer) Render(ctx context.Context, m Module, o RenderOptions) (*Rendered, error) {
	ctx, cancel := withTimeout(ctx, cmp.Or(o.Timeout, defaultTimeout))
	defer cancel()
	r, err := i.shared.Render(ctx, m.component(), module.RenderOptions{
		Capabilities: render.Capabilities{KubeVersion: o.KubeVersion, APIVersions: o.APIVersions},
	})
	if err != nil {
		return nil, err
	}
	out := &Rendered{
		Module: m.Name, Namespace: m.Namespace, SourceDigest: r.SourceDigest,
		BundleDigest: r.Bundle.Digest, Hooks: r.Bundle.Hooks, Images: r.Bundle.Images, Warnings: r.Bundle.Warnings,
	}
	for _, obj := range r.Bundle.Objects {
		out.Objects = append(out.Objects, Object{Ref: obj.Ref, Stage: obj.Stage.String(), JSON: slices.Clone(obj.Bytes)})
	}
	return out, nil
}

func sortEvents(events []Event) {
	slices.SortFunc(events, func(a, b Event) int { return cmp.Compare(a.Object.String(), b.Object.String()) })
}
