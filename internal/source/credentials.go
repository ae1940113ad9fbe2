package source

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
)

// Credentials are what a server asks for: one of user and password, a token, an SSH key and a docker configuration; beside it
// or alone, a client certificate.
// They print as "(credentials)", whatever prints them.
type Credentials struct {
	// Username and Password for HTTP. Many Git hosts take a token as the password.
	Username, Password string
	// Token that is sent as a bearer token.
	Token string
	// SSHKey is a private key (PEM), which Password may decrypt, and KnownHosts are the lines of known_hosts that
	// name the server's key. SSH needs both.
	SSHKey, KnownHosts []byte
	// Docker is a docker configuration (.docker/config.json) with credentials by registry.
	Docker []byte
	// TLSCert and TLSKey (PEM) are the client certificate for https, and its private key.
	TLSCert, TLSKey []byte
}

// String hides everything.
func (c Credentials) String() string { return "(credentials)" }

// GoString hides everything.
func (c Credentials) GoString() string { return "(credentials)" }

// MarshalJSON hides everything.
func (c Credentials) MarshalJSON() ([]byte, error) { return []byte(`"(credentials)"`), nil }

// CredentialsFunc reads the credentials that a reference names. It is called for each fetch, so that a changed Secret
// is used at once; its errors must not hold credentials. It must be safe for concurrent use.
type CredentialsFunc func(ctx context.Context, name string) (*Credentials, error)

// CredentialsOf reads the data of a Secret: username and password, or token, or ssh-privatekey and known_hosts, or
// .dockerconfigjson; beside them or alone tls.crt and tls.key, as Kubernetes names them in its own types of Secrets. Errors match ErrInvalid and hold no data.
func CredentialsOf(secret map[string][]byte) (*Credentials, error) {
	c := &Credentials{
		Username: line(secret["username"]), Password: line(secret["password"]), Token: line(secret["token"]),
		SSHKey: secret["ssh-privatekey"], KnownHosts: secret["known_hosts"], Docker: secret[".dockerconfigjson"],
		TLSCert: secret["tls.crt"], TLSKey: secret["tls.key"],
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	return c, nil
}

// line drops the line feed that editors and shells leave at the end.
func line(data []byte) string { return strings.TrimRight(string(data), "\r\n") }

// validate checks that there is one kind of credentials, and that it is complete.
func (c *Credentials) validate() error {
	var kinds []string
	for kind, set := range map[string]bool{
		"username and password": c.Username != "", "token": c.Token != "", "ssh-privatekey": len(c.SSHKey) > 0, ".dockerconfigjson": len(c.Docker) > 0,
	} {
		if set {
			kinds = append(kinds, kind)
		}
	}
	switch {
	case len(kinds) == 0 && !c.hasCertificate():
		return refuse(ErrInvalid, "", "credentials have none of username and password, token, ssh-privatekey, .dockerconfigjson and tls.crt")
	case len(kinds) > 1:
		return refuse(ErrInvalid, "", "credentials are of several kinds: keep one of username and password, token, ssh-privatekey and .dockerconfigjson")
	case strings.ContainsFunc(c.Username+c.Password+c.Token, isControl):
		return refuse(ErrInvalid, "", "credentials have a control character in them")
	case len(c.SSHKey) > 0 && len(bytes.TrimSpace(c.KnownHosts)) == 0:
		return refuse(ErrInvalid, "", "credentials have ssh-privatekey but no known_hosts: get the lines from the server's operator, "+
			"or by ssh-keyscan over a network that you trust")
	}
	if len(c.Docker) > 0 {
		if _, err := parseDocker(c.Docker); err != nil {
			return err
		}
	}
	_, err := c.certificate()
	return err
}

// hasCertificate says whether there is a client certificate, or half of one.
func (c *Credentials) hasCertificate() bool { return c != nil && len(c.TLSCert)+len(c.TLSKey) > 0 }

// certificate is the client certificate, or nil. Errors hold nothing of it.
func (c *Credentials) certificate() (*tls.Certificate, error) {
	if !c.hasCertificate() {
		return nil, nil //nolint:nilnil // there is none, and that is fine
	}
	cert, err := tls.X509KeyPair(c.TLSCert, c.TLSKey)
	if err != nil {
		return nil, refuse(ErrInvalid, "", "tls.crt and tls.key are not a certificate (PEM) and its private key")
	}
	return &cert, nil
}

// kind names what the credentials are.
func (c *Credentials) kind() string {
	switch {
	case c == nil:
		return "none"
	case len(c.SSHKey) > 0:
		return "an SSH key"
	case len(c.Docker) > 0:
		return "a docker configuration"
	case c.Token != "":
		return "a token"
	case c.Username == "" && c.hasCertificate():
		return "a client certificate"
	}
	return "username and password"
}

// usable refuses credentials of a kind that an address cannot use, before anything is sent.
func (c *Credentials) usable(ref Ref) error {
	u, err := url.Parse(ref.address())
	if err != nil {
		return refuse(ErrInvalid, "", "this is not an address")
	}
	switch {
	case u.Scheme == "ssh" && (c == nil || len(c.SSHKey) == 0):
		return refuse(ErrDenied, "", "ssh needs ssh-privatekey and known_hosts, the credentials are %s", c.kind())
	case c == nil || u.Scheme == "ssh":
		return nil
	case len(c.SSHKey) > 0:
		return refuse(ErrInvalid, "", "an SSH key is of no use for an address of scheme %s", quote(u.Scheme))
	case len(c.Docker) > 0 && ref.OCI == nil:
		return refuse(ErrInvalid, "", "a docker configuration is of use for registries (oci) only")
	case u.Scheme == "http":
		return refuse(ErrUnsafe, "", "credentials are not sent over http, where everybody on the way reads them: use https")
	}
	return nil
}

// sign adds the credentials to a request.
func (c *Credentials) sign(req *http.Request) {
	switch {
	case c == nil:
	case c.Token != "":
		req.Header.Set("Authorization", "Bearer "+c.Token)
	case c.Username != "" || c.Password != "":
		req.SetBasicAuth(c.Username, c.Password)
	}
}

// ofAddress are the credentials in an address, as the library and the command line accept them, or nil.
func ofAddress(u *url.URL) *Credentials {
	if u.User == nil {
		return nil
	}
	password, _ := u.User.Password()
	return &Credentials{Username: u.User.Username(), Password: password}
}

// withCredentials reads the credentials that a reference names.
func (m *Mux) withCredentials(ctx context.Context, ref Ref) (Ref, error) {
	if name := ref.credentialsName(); name != "" {
		if m.credentials == nil {
			return ref, refuse(ErrUnsupported, "", "credentials %s are a Secret of a control plane, there is none here", quote(name))
		}
		creds, err := m.credentials(ctx, name)
		if err != nil {
			return ref, unreadCredentials(name, err)
		}
		if creds == nil {
			return ref, refuse(ErrUnavailable, "", "credentials %s do not exist", quote(name))
		}
		if err := creds.validate(); err != nil {
			return ref, unreadCredentials(name, err)
		}
		ref.creds = creds
	}
	if ref.IsLocal() {
		return ref, nil
	}
	return ref, ref.creds.usable(ref)
}

// unreadCredentials says which credentials could not be read. Somebody may mend them where they are, so it is worth
// another try, except if they were read and are wrong.
func unreadCredentials(name string, err error) error {
	e := &Error{Problem: "credentials " + quote(name) + " cannot be read", Reason: ErrUnavailable, Err: err}
	if errors.Is(err, ErrInvalid) {
		e.Reason = ErrInvalid
	}
	return e
}

// dockerEntry is what a docker configuration knows of one registry.
type dockerEntry struct {
	Auth          string `json:"auth"`
	Username      string `json:"username"`
	Password      string `json:"password"`
	IdentityToken string `json:"identitytoken"`
	RegistryToken string `json:"registrytoken"`
}

// parseDocker reads a docker configuration. Errors hold nothing of it.
func parseDocker(data []byte) (map[string]dockerEntry, error) {
	var config struct {
		Auths map[string]dockerEntry `json:"auths"`
	}
	if err := json.Unmarshal(data, &config); err != nil {
		return nil, refuse(ErrInvalid, "", ".dockerconfigjson is no JSON object with \"auths\"")
	}
	entries := map[string]dockerEntry{}
	for server, e := range config.Auths {
		if e.Auth != "" {
			plain, err := base64.StdEncoding.DecodeString(e.Auth)
			user, password, ok := strings.Cut(string(plain), ":")
			if err != nil || !ok {
				return nil, refuse(ErrInvalid, "", "auth of %s in .dockerconfigjson is not base64 of user:password", quote(withoutCredentials(server)))
			}
			e.Username, e.Password = user, strings.TrimRight(password, "\x00")
		}
		entries[dockerHost(server)] = e
	}
	if len(entries) == 0 {
		return nil, refuse(ErrInvalid, "", ".dockerconfigjson has no \"auths\"")
	}
	return entries, nil
}

// dockerHost is the host of a key of a docker configuration, which may be an address.
func dockerHost(server string) string {
	_, rest, ok := strings.Cut(server, "://")
	if !ok {
		rest = server
	}
	host, _, _ := strings.Cut(rest, "/")
	switch host = strings.ToLower(host); host {
	case "index.docker.io", "docker.io":
		return "registry-1.docker.io"
	}
	return host
}
