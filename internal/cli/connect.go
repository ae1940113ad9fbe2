package cli

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/kyma-project/mothership"
	"github.com/kyma-project/mothership/internal/remote"
)

// job is a command line that was understood: a module, and what works on it.
type job struct {
	installer *mothership.Installer
	cluster   *rest.Config
	module    mothership.Module
	flags     *flags
	cmd       *cobra.Command
}

// job makes one of the flags of a command that works on a cluster.
func (a *app) job(cmd *cobra.Command, f *flags, needsSource bool) (*job, error) {
	j, err := a.offline(cmd, f, needsSource)
	if err != nil {
		return nil, err
	}
	j.cluster, err = a.clusterOf(cmd, f)
	return j, err
}

// clusterOf is the cluster that the flags name.
func (a *app) clusterOf(cmd *cobra.Command, f *flags) (*rest.Config, error) {
	file, err := a.kubeconfig(cmd, f)
	if err != nil {
		return nil, err
	}
	cluster, err := remote.ReadKubeconfig(file, f.context)
	if errors.Is(err, fs.ErrNotExist) && f.kubeconfig == "" {
		err = &hintedError{err: err, hint: "name a kubeconfig with --kubeconfig, or with KUBECONFIG"}
	}
	return cluster, err
}

// offline makes a job that needs no cluster.
func (a *app) offline(cmd *cobra.Command, f *flags, needsSource bool) (*job, error) {
	m, err := f.module(cmd, needsSource, a.decrypt)
	if err != nil {
		return nil, err
	}
	var creds secretData
	if needsSource {
		if m.Template.Source, creds, err = a.sourceOf(cmd, f); err != nil {
			return nil, err
		}
	}
	isolation, err := a.isolation(cmd, f)
	if err != nil {
		return nil, err
	}
	o := mothership.Options{Isolate: isolation, IsolateAll: f.isolate, RenderMemory: isolation.MemoryBytes, PostRender: f.post}
	if creds != nil {
		o.Sources.Credentials = func(context.Context, string) (map[string][]byte, error) { return creds, nil }
	}
	if f.filename == "-" {
		o.Stdin = interruptible(cmd.Context(), a.p.Stdin)
	}
	return &job{installer: mothership.New(o), module: m, flags: f, cmd: cmd}, nil
}

// kubeconfig is the file to use. KUBECONFIG may name several for kubectl, which merges them: that is not done here.
func (a *app) kubeconfig(cmd *cobra.Command, f *flags) (string, error) {
	if f.kubeconfig != "" {
		return f.kubeconfig, nil
	}
	switch files := filepath.SplitList(a.p.Getenv("KUBECONFIG")); {
	case len(files) == 1:
		return files[0], nil
	case len(files) > 1:
		return "", usage(cmd, "KUBECONFIG names %d files: name one with --kubeconfig", len(files))
	}
	home := a.p.Getenv("HOME")
	if home == "" {
		return "", usage(cmd, "neither KUBECONFIG nor HOME is set: name a kubeconfig with --kubeconfig")
	}
	return filepath.Join(home, ".kube", "config"), nil
}
