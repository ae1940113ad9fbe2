package remote

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v2"
	"k8s.io/client-go/rest"
)

// maxKubeconfig bounds a kubeconfig. Those of people with hundreds of clusters have a few 100 KiB.
const maxKubeconfig = 4 << 20

// ErrKubeconfig matches every error about a kubeconfig's contents.
var ErrKubeconfig = errors.New("kubeconfig refused")

// KubeconfigError says what is wrong with a kubeconfig. It never quotes credentials.
type KubeconfigError struct {
	// Where is the entry and its field, `user "admin": exec`; empty for the file as a whole.
	Where string
	// Problem says what is wrong and what to do.
	Problem string
}

// Error is the message.
func (e *KubeconfigError) Error() string {
	if e.Where == "" {
		return "kubeconfig: " + e.Problem
	}
	return "kubeconfig: " + e.Where + ": " + e.Problem
}

// Is matches ErrKubeconfig.
func (e *KubeconfigError) Is(target error) bool { return target == ErrKubeconfig }

// ReadKubeconfig reads a kubeconfig from a file, as LoadKubeconfig does from bytes. context empty: the current one.
func ReadKubeconfig(path, context string) (*rest.Config, error) {
	if path == "" {
		return nil, errors.New("reading a kubeconfig: no file is given")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading a kubeconfig: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxKubeconfig+1))
	if err != nil {
		return nil, fmt.Errorf("reading a kubeconfig: %w", err)
	}
	cfg, err := LoadKubeconfig(data, context)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return cfg, nil
}

// LoadKubeconfig makes a configuration of a context of a kubeconfig; empty: the current context. The bytes are not
// trusted: the entries of that context may not start programs (exec plugins, auth providers), read files, or give up
// on transport security. Nothing is read and no request is made. Errors are *KubeconfigError.
func LoadKubeconfig(data []byte, context string) (*rest.Config, error) {
	switch {
	case len(data) > maxKubeconfig:
		return nil, &KubeconfigError{Problem: fmt.Sprintf("it is larger than %d MiB", maxKubeconfig>>20)}
	case len(strings.TrimSpace(string(data))) == 0:
		return nil, &KubeconfigError{Problem: "it is empty"}
	}
	var f kubeconfigFile
	if err := yaml.Unmarshal(data, &f); err != nil {
		return nil, &KubeconfigError{Problem: invalid + lineOf(err)}
	}
	if (f.Kind != "" && f.Kind != "Config") || (f.APIVersion != "" && f.APIVersion != "v1") {
		return nil, &KubeconfigError{Problem: invalid}
	}
	e, err := f.pick(context)
	if err != nil {
		return nil, err
	}
	return e.restConfig()
}

const invalid = "it is not a valid kubeconfig (YAML or JSON of kind Config, apiVersion v1)"

// kubeconfigFile is what is read of a kubeconfig (k8s.io/client-go/tools/clientcmd/api/v1.Config), for that of each runtime is read
// each time that it is connected to: clientcmd makes JSON of the YAML, decodes that twice, and converts it.
type kubeconfigFile struct {
	APIVersion     string         `yaml:"apiVersion"`
	Kind           string         `yaml:"kind"`
	CurrentContext string         `yaml:"current-context"`
	Contexts       []namedContext `yaml:"contexts"`
	Clusters       []namedCluster `yaml:"clusters"`
	Users          []namedUser    `yaml:"users"`
}

type namedContext struct {
	Name    string              `yaml:"name"`
	Context whole[contextEntry] `yaml:"context"`
}

type contextEntry struct {
	Cluster string `yaml:"cluster"`
	User    string `yaml:"user"`
}

type namedCluster struct {
	Name    string              `yaml:"name"`
	Cluster whole[clusterEntry] `yaml:"cluster"`
}

type clusterEntry struct {
	Server                   string  `yaml:"server"`
	TLSServerName            string  `yaml:"tls-server-name"`
	InsecureSkipTLSVerify    bool    `yaml:"insecure-skip-tls-verify"`
	CertificateAuthority     string  `yaml:"certificate-authority"`
	CertificateAuthorityData encoded `yaml:"certificate-authority-data"`
	ProxyURL                 string  `yaml:"proxy-url"`
}

type namedUser struct {
	Name string           `yaml:"name"`
	User whole[userEntry] `yaml:"user"`
}

type userEntry struct {
	ClientCertificate     string              `yaml:"client-certificate"`
	ClientCertificateData encoded             `yaml:"client-certificate-data"`
	ClientKey             string              `yaml:"client-key"`
	ClientKeyData         encoded             `yaml:"client-key-data"`
	Token                 string              `yaml:"token"`
	TokenFile             string              `yaml:"tokenFile"`
	Username              string              `yaml:"username"`
	Password              string              `yaml:"password"`
	Impersonate           string              `yaml:"as"`
	ImpersonateUID        string              `yaml:"as-uid"`
	ImpersonateGroups     []string            `yaml:"as-groups"`
	ImpersonateUserExtra  map[string][]string `yaml:"as-user-extra"`
	Exec                  any                 `yaml:"exec"`
	AuthProvider          any                 `yaml:"auth-provider"`
}

// whole is an entry of which, where it is given twice, or merged, the later counts, and not a mixture.
type whole[T any] struct{ entry T }

// UnmarshalYAML replaces what was there.
func (w *whole[T]) UnmarshalYAML(read func(any) error) error {
	var entry T
	err := read(&entry)
	w.entry = entry
	return err
}

// encoded is bytes that are written as text (RFC 4648, 4).
type encoded []byte

// UnmarshalYAML reads the text.
func (b *encoded) UnmarshalYAML(read func(any) error) (err error) {
	var text string
	if err := read(&text); err != nil {
		return err
	}
	*b, err = base64.StdEncoding.DecodeString(text)
	return err
}

var yamlLine = regexp.MustCompile(`\bline \d+\b`)

// lineOf is the place of a parser's error. The rest of its words may quote what the file has, credentials included.
func lineOf(err error) string {
	if line := yamlLine.FindString(err.Error()); line != "" {
		return ": see " + line
	}
	return ""
}

// entries are what one context of a kubeconfig consists of.
type entries struct {
	clusterName, userName string
	cluster               *clusterEntry
	user                  *userEntry
}

// pick finds the entries of a context.
func (f *kubeconfigFile) pick(name string) (*entries, error) {
	where := fmt.Sprintf("context %.100q", name)
	if name == "" {
		name, where = f.CurrentContext, fmt.Sprintf("current-context %.100q", f.CurrentContext)
	}
	switch {
	case len(f.Contexts) == 0:
		return nil, &KubeconfigError{Problem: "it has no contexts: is it a kubeconfig?"}
	case name == "":
		return nil, &KubeconfigError{Where: "current-context", Problem: "it is not set: name a context, " + f.oneOf()}
	}
	c, err := only(f.Contexts, "context", name, func(c *namedContext) string { return c.Name })
	if err != nil {
		return nil, err
	}
	if c == nil {
		return nil, &KubeconfigError{Where: where, Problem: "there is no such context: name " + f.oneOf()}
	}
	e := &entries{clusterName: c.Context.entry.Cluster, userName: c.Context.entry.User, user: &userEntry{}}
	cluster, err := only(f.Clusters, "cluster", e.clusterName, func(c *namedCluster) string { return c.Name })
	if err != nil {
		return nil, err
	}
	if cluster == nil {
		return nil, &KubeconfigError{Where: where + ": cluster", Problem: fmt.Sprintf("there is no cluster %.100q", e.clusterName)}
	}
	e.cluster = &cluster.Cluster.entry
	user, err := only(f.Users, "user", e.userName, func(u *namedUser) string { return u.Name })
	if err != nil {
		return nil, err
	}
	switch {
	case user != nil:
		e.user = &user.User.entry
	case e.userName != "":
		return nil, &KubeconfigError{Where: where + ": user", Problem: fmt.Sprintf("there is no user %.100q", e.userName)}
	}
	return e, nil
}

// only is the entry of a name, nil if there is none. Which of two is meant, nobody knows.
func only[T any](entries []T, what, name string, nameOf func(*T) string) (found *T, err error) {
	for i := range entries {
		switch e := &entries[i]; {
		case nameOf(e) != name:
		case found != nil:
			return nil, &KubeconfigError{Where: fmt.Sprintf("%s %.100q", what, name), Problem: "there are two of this name: remove or rename one"}
		default:
			found = e
		}
	}
	return found, nil
}

// oneOf lists the contexts, at most 20 of them.
func (f *kubeconfigFile) oneOf() string {
	names := make([]string, len(f.Contexts))
	for i := range f.Contexts {
		names[i] = f.Contexts[i].Name
	}
	slices.Sort(names)
	more := ""
	if len(names) > 20 {
		more = fmt.Sprintf(" … (%d in all)", len(names))
		names = names[:20]
	}
	return fmt.Sprintf("one of %.100q%s", names, more)
}

func (e *entries) ofCluster(field, problem string) error {
	return &KubeconfigError{Where: fmt.Sprintf("cluster %.100q: %s", e.clusterName, field), Problem: problem}
}

func (e *entries) ofUser(field, problem string) error {
	return &KubeconfigError{Where: fmt.Sprintf("user %.100q: %s", e.userName, field), Problem: problem}
}

// restConfig checks the entries and takes them over, field by field, so that nothing comes along unseen.
func (e *entries) restConfig() (*rest.Config, error) {
	for _, check := range []func() error{e.checkFiles, e.checkPlugins, e.checkServer, e.checkTLS, e.checkCredentials} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	cfg := &rest.Config{
		Host: e.cluster.Server,
		TLSClientConfig: rest.TLSClientConfig{
			ServerName: e.cluster.TLSServerName, CAData: e.cluster.CertificateAuthorityData,
			CertData: e.user.ClientCertificateData, KeyData: e.user.ClientKeyData,
		},
		BearerToken: e.user.Token, Username: e.user.Username, Password: e.user.Password,
		Impersonate: rest.ImpersonationConfig{
			UserName: e.user.Impersonate, UID: e.user.ImpersonateUID,
			Groups: e.user.ImpersonateGroups, Extra: e.user.ImpersonateUserExtra,
		},
	}
	proxy, err := e.proxy()
	if err != nil {
		return nil, err
	}
	if proxy != nil {
		cfg.Proxy = http.ProxyURL(proxy)
	}
	return cfg, nil
}

const inline = "files are not read: inline it as %s (kubectl config view --raw --flatten does)"

func (e *entries) checkFiles() error {
	switch {
	case e.cluster.CertificateAuthority != "":
		return e.ofCluster("certificate-authority", fmt.Sprintf(inline, "certificate-authority-data"))
	case e.user.ClientCertificate != "":
		return e.ofUser("client-certificate", fmt.Sprintf(inline, "client-certificate-data"))
	case e.user.ClientKey != "":
		return e.ofUser("client-key", fmt.Sprintf(inline, "client-key-data"))
	case e.user.TokenFile != "":
		return e.ofUser("tokenFile", "files are not read: inline it as token")
	}
	return nil
}

func (e *entries) checkPlugins() error {
	const instead = "use a token or a client certificate instead, for example of a ServiceAccount"
	switch {
	case e.user.Exec != nil:
		return e.ofUser("exec", "programs are not started: "+instead)
	case e.user.AuthProvider != nil:
		return e.ofUser("auth-provider", "auth providers are not supported: "+instead)
	}
	return nil
}

func (e *entries) checkServer() error {
	server := e.cluster.Server
	if server == "" {
		return e.ofCluster("server", "it is missing: give the API server's address, https://host:port")
	}
	u, err := url.Parse(server)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "":
		return e.ofCluster("server", "it is not a URL of the form https://host:port")
	case u.User != nil:
		return e.ofCluster("server", "it carries credentials: give them in the user entry")
	case u.RawQuery != "" || u.Fragment != "":
		return e.ofCluster("server", "it has a query or fragment: give https://host:port, with a path at most")
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		return e.ofCluster("server", "credentials are not sent over plain http: use https")
	case u.Scheme != "https" && u.Scheme != "http":
		return e.ofCluster("server", "its scheme is not https")
	}
	return nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (e *entries) checkTLS() error {
	if e.cluster.InsecureSkipTLSVerify {
		return e.ofCluster("insecure-skip-tls-verify", "servers are always verified: remove it, and inline the CA as certificate-authority-data")
	}
	if ca := e.cluster.CertificateAuthorityData; len(ca) > 0 && !x509.NewCertPool().AppendCertsFromPEM(ca) {
		return e.ofCluster("certificate-authority-data", "it has no PEM certificate")
	}
	return nil
}

func (e *entries) checkCredentials() error {
	cert, key := e.user.ClientCertificateData, e.user.ClientKeyData
	switch {
	case len(cert) > 0 && len(key) == 0:
		return e.ofUser("client-key-data", "it is missing beside client-certificate-data")
	case len(key) > 0 && len(cert) == 0:
		return e.ofUser("client-certificate-data", "it is missing beside client-key-data")
	case e.user.Token != "" && e.user.Username != "":
		return e.ofUser("token", "it excludes username: give one of them")
	case strings.ContainsFunc(e.user.Token, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return e.ofUser("token", "it has a blank, a line break or a character beyond ASCII")
	}
	if len(cert) == 0 {
		return nil
	}
	if _, err := tls.X509KeyPair(cert, key); err != nil {
		return e.ofUser("client-certificate-data", "with client-key-data it is no PEM pair of a certificate and its key")
	}
	return nil
}

// proxy is the cluster's own proxy, nil for the environment's.
func (e *entries) proxy() (*url.URL, error) {
	if e.cluster.ProxyURL == "" {
		return nil, nil
	}
	u, err := url.Parse(e.cluster.ProxyURL)
	switch {
	case err != nil || u.Host == "":
		return nil, e.ofCluster("proxy-url", "it is not a URL of the form https://host:port")
	case u.Scheme != "https":
		return nil, e.ofCluster("proxy-url", "only https proxies are used: use https, or HTTPS_PROXY of the environment")
	}
	return u, nil
}
