package cli

import (
	"context"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/kyma-project/mothership"
	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/catalog/artifact"
	"github.com/kyma-project/mothership/internal/source"
)

// place is a catalogue that was opened: its files, and the folder that relative source paths start at.
type place struct {
	files artifact.Files
	dir   string
	// close removes what was written for it.
	close func()
}

// open reads a catalogue of a folder, a file or a registry. Close it.
func (a *app) open(ctx context.Context, s *serverFlags, name string) (*place, error) {
	p := &place{dir: name, close: func() {}}
	if !strings.HasPrefix(name, artifact.Scheme) {
		return p, p.read()
	}
	files, _, err := a.pull(ctx, s, name)
	if err != nil {
		return nil, err
	}
	if p.dir, err = os.MkdirTemp("", "mothership-catalog-"); err != nil {
		return nil, fmt.Errorf("unpacking the catalogue: %w", err)
	}
	dir := p.dir
	p.files, p.close = files, func() { _ = os.RemoveAll(dir) } // it is in the folder for such
	if err := files.Write(dir); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// read reads a folder, or one file.
func (p *place) read() error {
	info, err := os.Stat(p.dir)
	if err != nil {
		return fmt.Errorf("reading the catalogue: %w", err)
	}
	if info.IsDir() {
		p.files, err = artifact.Read(p.dir)
	} else {
		var data []byte
		data, err = readFile(p.dir)
		p.files = artifact.Files{{Path: filepath.Base(p.dir), Data: data}}
		p.dir = filepath.Dir(p.dir)
	}
	if err == nil {
		p.dir, err = filepath.Abs(p.dir)
	}
	return err
}

// pull reads a catalogue from a registry.
func (a *app) pull(ctx context.Context, s *serverFlags, address string) (artifact.Files, string, error) {
	ref, err := artifact.ParseReference(address)
	if err != nil {
		return nil, "", err
	}
	registry, err := a.registry(s, s.caFile)
	if err != nil {
		return nil, "", err
	}
	return registry.Pull(ctx, ref)
}

// registry speaks to registries whose authorities are in a file, or the system's.
func (a *app) registry(s *serverFlags, caFile string) (*artifact.Registry, error) {
	o := artifact.Options{Credential: a.credentialOf(s)}
	if caFile == "" {
		return artifact.NewRegistry(o), nil
	}
	data, err := readFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("reading authorities: %w", err)
	}
	o.RootCAs = x509.NewCertPool()
	if !o.RootCAs.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("reading authorities: %s holds no PEM certificate", caFile)
	}
	return artifact.NewRegistry(o), nil
}

// outfit completes the sources of templates with what the flags say of servers.
type outfit struct {
	a       *app
	cmd     *cobra.Command
	servers *serverFlags
	dir     string
	// secrets are credentials by name: of the file of --credentials, and of registries by registryPrefix and their host.
	secrets map[string]secretData
}

// registryPrefix begins the names of credentials that docker's configuration has. No Secret has such a name.
const registryPrefix = "registry "

// outfit reads the file of --credentials.
func (a *app) outfit(cmd *cobra.Command, s *serverFlags, dir string) (*outfit, error) {
	o := &outfit{a: a, cmd: cmd, servers: s, dir: dir, secrets: map[string]secretData{}}
	if s.secrets == "" {
		return o, nil
	}
	objects, err := readObjects(s.secrets)
	if err != nil {
		return nil, err
	}
	for _, secret := range objects.secrets {
		o.secrets[secret.Name] = secret.Data
	}
	return o, nil
}

// dressed is a source with its path in the catalogue's folder, authorities and credentials.
func (o *outfit) dressed(ctx context.Context, s v1beta2.Source) (v1beta2.Source, error) {
	out := artifact.Rooted(s, o.dir)
	ref := refOf(&out)
	if ref == nil || addressOf(ref) == "" {
		return out, nil
	}
	if err := o.a.withAuthorities(o.cmd, o.servers.caFile, ref); err != nil {
		return out, err
	}
	if ref.OCI == nil || ref.CredentialsRef != nil {
		return out, nil
	}
	creds, err := o.a.registryCredentials(ctx, o.servers, ref.OCI.URL)
	if creds != nil {
		name := registryPrefix + ref.OCI.URL
		o.secrets[name] = creds
		ref.CredentialsRef = &v1beta2.SecretReference{Name: name}
	}
	return out, err
}

// sources are the library's options for it. They are to be used after everything was dressed, or by the same goroutine.
func (o *outfit) sources() mothership.Sources {
	return mothership.Sources{Credentials: func(_ context.Context, name string) (map[string][]byte, error) {
		if data, ok := o.secrets[name]; ok {
			return data, nil
		}
		return nil, fmt.Errorf("there is no Secret %s: give the credentials that templates name by --credentials FILE", name)
	}}
}

// secretOf is a Secret's data, with what is written in plain text.
func secretOf(s *corev1.Secret) {
	for key, text := range s.StringData {
		if s.Data == nil {
			s.Data = map[string][]byte{}
		}
		s.Data[key] = []byte(text)
	}
	s.StringData = nil
}

// sourceOfRef is a reference as a template has it.
func sourceOfRef(ref source.Ref) v1beta2.Source {
	switch ref.Kind {
	case source.Chart:
		return v1beta2.Source{Chart: &ref.SourceRef}
	case source.Kustomize:
		return v1beta2.Source{Kustomize: &ref.SourceRef}
	default:
		return v1beta2.Source{Manifests: &ref.SourceRef}
	}
}
