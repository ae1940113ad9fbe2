package cli

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// serverFlags say how servers are spoken to that sources and catalogues come from.
type serverFlags struct {
	registryConfig, caFile, secrets string
}

func (s *serverFlags) addTo(fs *pflag.FlagSet) {
	fs.StringVar(&s.registryConfig, "registry-config", "", "a docker configuration `FILE` with the credentials of registries (default: $DOCKER_CONFIG/config.json, else ~/.docker/config.json)")
	fs.StringVar(&s.caFile, "ca-file", "", "a PEM `FILE` with the authorities of servers, in place of the system's")
}

// addSecretsTo adds what only catalogues have: credentials by name.
func (s *serverFlags) addSecretsTo(fs *pflag.FlagSet) {
	fs.StringVar(&s.secrets, "credentials", "", "a YAML `FILE` of the Secrets that the credentialsRefs of templates name")
}

// sourceFlags say more about the source of one module.
type sourceFlags struct {
	serverFlags
	version, repo          string
	username               string
	passwordStdin          bool
	sshKey, knownHosts     string
	keyring, cosignKeyFile string
}

func (s *sourceFlags) addTo(fs *pflag.FlagSet) {
	fs.StringVar(&s.version, "version", "", "the `VERSION` of a chart of a Helm repository, or a range; of a registry, the tag")
	fs.StringVar(&s.repo, "repo", "", "the `URL` of the Helm repository that has --chart NAME")
	fs.StringVar(&s.username, "username", "", "the `USER` whom the source's server asks for; with --password-stdin")
	fs.BoolVar(&s.passwordStdin, "password-stdin", false, "read the password or token from stdin")
	fs.StringVar(&s.sshKey, "ssh-key", "", "a private key `FILE` for git+ssh")
	fs.StringVar(&s.knownHosts, "known-hosts", "", "a `FILE` with the keys of ssh servers (default: ~/.ssh/known_hosts)")
	s.serverFlags.addTo(fs)
	fs.StringVar(&s.keyring, "keyring", "", "an armored OpenPGP `FILE`: the chart must be signed by one of its keys (.prov)")
	fs.StringVar(&s.cosignKeyFile, "cosign-key", "", "a PEM `FILE`: the OCI artifact must be signed by this public key (cosign)")
}

// names of the flags, for commands that have no use for them.
func (s *sourceFlags) names() (out []string) {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	(&sourceFlags{}).addTo(fs)
	fs.VisitAll(func(f *pflag.Flag) { out = append(out, f.Name) })
	return out
}

// check refuses what cannot be meant.
func (s *sourceFlags) check(cmd *cobra.Command, f *flags) error {
	switch {
	case (s.username != "") != s.passwordStdin:
		return usage(cmd, "--username and --password-stdin belong together: a password on the command line is seen by others")
	case s.passwordStdin && f.filename == "-":
		return usage(cmd, "stdin cannot be both the password and the manifests")
	case s.repo != "" && f.chart == "":
		return usage(cmd, "--repo is for charts: give --chart NAME")
	}
	return nil
}

// commandLine stands for the credentials that the flags give, where a source names its own by the name of a Secret.
const commandLine = "the command line"

// sourceOf completes the source that the flags name, and returns the credentials for it, nil if there are none.
func (a *app) sourceOf(cmd *cobra.Command, f *flags) (v1beta2.Source, secretData, error) {
	s := f.source()
	ref := refOf(&s)
	if ref == nil {
		return s, nil, nil
	}
	helm, err := a.versioned(cmd, f, ref)
	if err != nil {
		return s, nil, err
	}
	if err := f.sources.verified(ref); err != nil {
		return s, nil, err
	}
	creds, err := a.credentialsFor(cmd, f, ref, helm)
	if err != nil {
		return s, nil, err
	}
	if creds != nil {
		ref.CredentialsRef = &v1beta2.SecretReference{Name: commandLine}
	}
	return s, creds, a.withAuthorities(cmd, f.sources.caFile, ref)
}

// refOf is the place in a source, nil if there is none.
func refOf(s *v1beta2.Source) *v1beta2.SourceRef {
	for _, ref := range []*v1beta2.SourceRef{s.Chart, s.Kustomize, s.Manifests} {
		if ref != nil {
			return ref
		}
	}
	return nil
}

// addressOf is the server that a place is at; empty for the local disk.
func addressOf(ref *v1beta2.SourceRef) string {
	switch {
	case ref.Git != nil:
		return ref.Git.URL
	case ref.Helm != nil:
		return ref.Helm.Repository
	case ref.OCI != nil:
		return ref.OCI.URL
	}
	return ref.URL
}

// versioned turns what --chart, --repo and --version say into a place: a chart of a Helm repository, or a tag. Of a repository that
// Helm knows, it returns what Helm knows.
func (a *app) versioned(cmd *cobra.Command, f *flags, ref *v1beta2.SourceRef) (*helmRepository, error) {
	helm, err := a.helmChart(cmd, f, ref)
	if err != nil || f.sources.version == "" {
		return helm, err
	}
	switch {
	case ref.Helm != nil:
		ref.Helm.Version = f.sources.version
	case ref.OCI != nil && f.chart != "" && ref.OCI.Tag == "" && ref.OCI.Digest == "":
		ref.OCI.Tag = strings.ReplaceAll(f.sources.version, "+", "_") // as Helm does: tags have no +
	case ref.OCI != nil:
		return nil, usage(cmd, "give --version or the tag in the address, not both")
	default:
		return nil, usage(cmd, "--version is for charts of Helm repositories and registries: a version of anything else is part of its address")
	}
	return helm, nil
}

// verified adds the keys that must have signed the source.
func (s *sourceFlags) verified(ref *v1beta2.SourceRef) error {
	var v v1beta2.SourceVerification
	for _, key := range []struct {
		file string
		into *string
	}{{s.keyring, &v.Keyring}, {s.cosignKeyFile, &v.CosignKey}} {
		if key.file == "" {
			continue
		}
		data, err := readFile(key.file)
		if err != nil {
			return fmt.Errorf("reading keys: %w", err)
		}
		*key.into, ref.Verify = string(data), &v
	}
	return nil
}

// withAuthorities adds the authorities of --ca-file to a place on a server that has none of its own.
func (a *app) withAuthorities(cmd *cobra.Command, file string, ref *v1beta2.SourceRef) error {
	if file == "" || ref.CABundle != "" {
		return nil
	}
	if addressOf(ref) == "" {
		return usage(cmd, "--ca-file is for servers: the source is on the local disk")
	}
	data, err := readFile(file)
	if err != nil {
		return fmt.Errorf("reading authorities: %w", err)
	}
	ref.CABundle = string(data)
	return nil
}

// secretData is what a Secret has. It prints as nothing.
type secretData map[string][]byte

// String hides it.
func (secretData) String() string { return "(credentials)" }

// GoString hides it.
func (secretData) GoString() string { return "(credentials)" }

// credentialsFor are what the flags, Helm's configuration or docker's have for a place.
func (a *app) credentialsFor(cmd *cobra.Command, f *flags, ref *v1beta2.SourceRef, helm *helmRepository) (secretData, error) {
	address, s := addressOf(ref), &f.sources
	isSSH := strings.HasPrefix(address, "ssh://")
	switch {
	case (s.username != "" || s.sshKey != "") && address == "":
		return nil, usage(cmd, "credentials are for servers: the source is on the local disk")
	case s.sshKey != "" && !isSSH:
		return nil, usage(cmd, "--ssh-key is for git+ssh://…")
	case isSSH && s.sshKey != "":
		return a.sshCredentials(cmd, s)
	case s.username != "":
		password, err := a.password()
		return secretData{"username": []byte(s.username), "password": []byte(password)}, err
	case helm != nil:
		return helm.credentials()
	case ref.OCI != nil:
		return a.registryCredentials(cmd.Context(), &s.serverFlags, address)
	}
	return nil, nil //nolint:nilnil // there are none, and no error
}

func (a *app) sshCredentials(cmd *cobra.Command, s *sourceFlags) (secretData, error) {
	hosts := s.knownHosts
	if hosts == "" {
		home := a.p.Getenv("HOME")
		if home == "" {
			return nil, usage(cmd, "HOME is not set: name the keys of ssh servers with --known-hosts")
		}
		hosts = filepath.Join(home, ".ssh", "known_hosts")
	}
	key, err := readFile(s.sshKey)
	if err != nil {
		return nil, fmt.Errorf("reading the ssh key: %w", err)
	}
	known, err := readFile(hosts)
	if err != nil {
		return nil, fmt.Errorf("reading the keys of ssh servers: %w", err)
	}
	return secretData{"ssh-privatekey": key, "known_hosts": known}, nil
}

// maxPassword bounds what is read from stdin.
const maxPassword = 64 << 10

// password reads a line from stdin.
func (a *app) password() (string, error) {
	line, err := bufio.NewReader(io.LimitReader(a.p.Stdin, maxPassword)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("reading the password from stdin: %w", err)
	}
	if line = strings.TrimRight(line, "\r\n"); line == "" {
		return "", errors.New("reading the password from stdin: there is none")
	}
	return line, nil
}

// registryCredentials are what docker's configuration has for a registry, in its own form; nil if nothing.
func (a *app) registryCredentials(ctx context.Context, s *serverFlags, address string) (secretData, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, nil //nolint:nilerr // who fetches it says what is wrong with it
	}
	found, err := a.credentialOf(s)(ctx, u.Host)
	if err != nil || found == auth.EmptyCredential {
		return nil, err
	}
	config, err := json.Marshal(map[string]any{"auths": map[string]any{u.Host: map[string]string{
		"username": found.Username, "password": found.Password, "identitytoken": found.RefreshToken, "registrytoken": found.AccessToken,
	}}})
	if err != nil {
		return nil, fmt.Errorf("reading the credentials of registries: %w", err)
	}
	return secretData{".dockerconfigjson": config}, nil
}

// credentialOf reads docker's configuration when it is first needed, credential helpers included.
func (a *app) credentialOf(s *serverFlags) auth.CredentialFunc {
	return func(ctx context.Context, host string) (auth.Credential, error) {
		file := cmp.Or(s.registryConfig, a.dockerConfig())
		if file == "" {
			return auth.EmptyCredential, nil
		}
		if s.registryConfig != "" {
			if _, err := readFile(file); err != nil {
				return auth.EmptyCredential, fmt.Errorf("reading the credentials of registries: %w", err)
			}
		}
		store, err := credentials.NewStore(file, credentials.StoreOptions{})
		if err != nil {
			return auth.EmptyCredential, fmt.Errorf("reading the credentials of registries: %s is no docker configuration", file)
		}
		found, err := store.Get(ctx, credentials.ServerAddressFromHostname(host))
		if err != nil {
			return auth.EmptyCredential, fmt.Errorf("reading the credentials of registry %s: neither %s nor its credential helper can be read", host, file)
		}
		return found, nil
	}
}

// dockerConfig is where docker has its configuration; empty where there is no home.
func (a *app) dockerConfig() string {
	if dir := a.p.Getenv("DOCKER_CONFIG"); dir != "" {
		return filepath.Join(dir, "config.json")
	}
	if home := a.p.Getenv("HOME"); home != "" {
		return filepath.Join(home, ".docker", "config.json")
	}
	return ""
}
