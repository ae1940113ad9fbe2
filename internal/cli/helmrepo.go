package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// helmRepository is what `helm repo add` has written of one repository.
type helmRepository struct {
	Name     string `json:"name"`
	URL      string `json:"url"`
	Username string `json:"username"`
	Password string `json:"password"`
	CAFile   string `json:"caFile"`
	CertFile string `json:"certFile"`
	KeyFile  string `json:"keyFile"`
	Insecure bool   `json:"insecure_skip_tls_verify"`
}

// aliased is REPO/NAME: a chart of a repository that Helm knows under a name.
var aliased = regexp.MustCompile(`^([A-Za-z0-9][-._A-Za-z0-9]*)/([A-Za-z0-9][-._A-Za-z0-9]*)$`)

// helmChart makes a place in a Helm repository of --repo URL --chart NAME, or of --chart REPO/NAME where there is no such folder and
// Helm knows REPO. For others it returns nil and leaves the place as it is.
func (a *app) helmChart(cmd *cobra.Command, f *flags, ref *v1beta2.SourceRef) (*helmRepository, error) {
	if f.sources.repo != "" {
		if u, err := url.Parse(f.sources.repo); err != nil || u.Scheme != "https" && u.Scheme != "http" {
			return nil, usage(cmd, "--repo %q: a Helm repository begins with https://; a chart in a registry is --chart oci://…", redacted(f.sources.repo))
		}
		*ref = v1beta2.SourceRef{Helm: &v1beta2.HelmSource{Repository: f.sources.repo, Chart: f.chart}, Digest: ref.Digest}
		return nil, nil //nolint:nilnil // Helm knows nothing of it, and that is fine
	}
	parts := aliased.FindStringSubmatch(f.chart)
	if _, err := os.Stat(f.chart); err == nil || parts == nil {
		return nil, nil //nolint:nilnil // it is a folder, or an address
	}
	found, err := a.helmRepository(parts[1], f.chart)
	if err != nil {
		return nil, err
	}
	*ref = v1beta2.SourceRef{Helm: &v1beta2.HelmSource{Repository: found.URL, Chart: parts[2]}, Digest: ref.Digest}
	if found.CAFile != "" {
		data, err := readFile(found.CAFile)
		if err != nil {
			return nil, fmt.Errorf("reading the authorities of Helm repository %s: %w", found.Name, err)
		}
		ref.CABundle = string(data)
	}
	return found, nil
}

// redacted is an address without its user.
func redacted(address string) string {
	if u, err := url.Parse(address); err == nil {
		u.User = nil
		return u.String()
	}
	return "(an address)"
}

// helmRepository is the repository that Helm knows under a name.
func (a *app) helmRepository(name, chart string) (*helmRepository, error) {
	file := a.helmConfig()
	hint := fmt.Sprintf("if %s is a folder, check its path; else make the repository known by: helm repo add %s URL, or name it with --repo URL", chart, name)
	data, err := readFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &hintedError{err: fmt.Errorf("there is neither a folder %s nor a file of Helm repositories (%s)", chart, file), hint: hint}
	}
	if err != nil {
		return nil, fmt.Errorf("reading Helm's repositories: %w", err)
	}
	var known struct {
		Repositories []helmRepository `json:"repositories"`
	}
	if yaml.Unmarshal(data, &known) != nil { // its error could quote a password
		return nil, fmt.Errorf("reading Helm's repositories: %s is not what helm repo add writes", file)
	}
	for i := range known.Repositories {
		if r := &known.Repositories[i]; r.Name == name {
			return r, r.check(file)
		}
	}
	return nil, &hintedError{err: fmt.Errorf("there is neither a folder %s nor a Helm repository %s in %s", chart, name, file), hint: hint}
}

// check refuses what is not done here.
func (r *helmRepository) check(file string) error {
	switch {
	case r.Insecure:
		return fmt.Errorf("Helm repository %s in %s has insecure_skip_tls_verify: refused, give its authority by --ca-file", r.Name, file) //nolint:staticcheck // a name
	case strings.HasPrefix(r.URL, "oci://"):
		return fmt.Errorf("Helm repository %s in %s is a registry: give --chart %s/NAME", r.Name, file, r.URL) //nolint:staticcheck // a name
	}
	return nil
}

// credentials are the repository's, nil if there are none.
func (r *helmRepository) credentials() (secretData, error) {
	out := secretData{}
	if r.Username != "" {
		out["username"], out["password"] = []byte(r.Username), []byte(r.Password)
	}
	for key, file := range map[string]string{"tls.crt": r.CertFile, "tls.key": r.KeyFile} {
		if file == "" {
			continue
		}
		data, err := readFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading the client certificate of Helm repository %s: %w", r.Name, err)
		}
		out[key] = data
	}
	if len(out) == 0 {
		return nil, nil //nolint:nilnil // there are none, and no error
	}
	return out, nil
}

// helmConfig is Helm's file of repositories, by Helm's own rules.
func (a *app) helmConfig() string {
	if file := a.p.Getenv("HELM_REPOSITORY_CONFIG"); file != "" {
		return file
	}
	dir := a.p.Getenv("HELM_CONFIG_HOME")
	home := a.p.Getenv("HOME")
	switch config := a.p.Getenv("XDG_CONFIG_HOME"); {
	case dir != "":
	case config != "":
		dir = filepath.Join(config, "helm")
	case runtime.GOOS == "darwin":
		dir = filepath.Join(home, "Library", "Preferences", "helm")
	default:
		dir = filepath.Join(home, ".config", "helm")
	}
	return filepath.Join(dir, "repositories.yaml")
}
