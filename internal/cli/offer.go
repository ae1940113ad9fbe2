package cli

import (
	"context"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
)

// offerFlags say what a control plane offers from its start on.
type offerFlags struct {
	servers  serverFlags
	catalogs []string
}

func (o *offerFlags) addTo(fs *pflag.FlagSet) {
	fs.StringArrayVar(&o.catalogs, "catalog", nil, "a catalogue to add when it is ready, `PLACE` is DIR, FILE or oci://…; repeatable")
	o.servers.addTo(fs)
}

// offer adds the catalogues to a control plane, as catalog add does.
func (a *app) offer(ctx context.Context, cfg *rest.Config, o *offerFlags, namespace string) error {
	if len(o.catalogs) == 0 {
		return nil
	}
	entries, err := a.readCatalog(ctx, &o.servers, o.catalogs, namespace)
	if err != nil {
		return err
	}
	fl, err := a.newFleet(cfg, namespace)
	if err != nil {
		return err
	}
	_, err = fl.applyAll(ctx, entries)
	return err
}
