package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Remove removes what a server with these options (Dir, and the shared Etcd with Prefix) left behind: its keys first, its
// folder last, so that a Remove that was cut short is simply called again. It is an ErrInUse while the server runs. What
// was never there, or is gone already, is no error. The context bounds the deletion of the keys.
func Remove(ctx context.Context, o Options) error {
	if o.Dir == "" || (o.Etcd != nil && o.Prefix == "") {
		return errors.New("removing a local API server: Dir is needed, and Prefix with a shared Etcd")
	}
	if err := o.remove(ctx); err != nil {
		return fmt.Errorf("removing the local API server of %s: %w", o.Dir, err)
	}
	return nil
}

func (o *Options) remove(ctx context.Context) error {
	if _, err := os.Stat(o.Dir); errors.Is(err, fs.ErrNotExist) {
		return o.removeKeys(ctx)
	}
	f, err := openFolder(o.Dir)
	if err != nil {
		return err
	}
	defer f.lock.Close() // at the end: until then nobody may start from the folder
	for _, name := range []string{binControllerManager, binAPIServer} {
		if err := (command{name: name, dir: f.path}).reap(); err != nil {
			return err
		}
	}
	if err := o.removeKeys(ctx); err != nil {
		return err
	}
	return os.RemoveAll(f.path)
}

func (o *Options) removeKeys(ctx context.Context) error {
	if o.Etcd == nil {
		return nil // they are in the folder
	}
	_, err := o.Etcd.DeletePrefix(ctx, o.Prefix)
	return err
}
