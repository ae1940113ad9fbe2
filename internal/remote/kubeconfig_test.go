package remote

import (
	"bytes"
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/kyma-project/mothership/internal/infra/local/localtest"
)

func noHunter2(t *testing.T, err error) {
	t.Helper()
	if text := fmt.Sprintf("%v %+v %#v", err, err, err); strings.Contains(text, "hunter2") || strings.Contains(text, b64("hunter2")) {
		t.Errorf("the error quotes a credential: %s", text)
	}
}

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// kubeconfig has the fields given in its cluster, and in its user.
func kubeconfig(cluster, user string) string {
	return `apiVersion: v1
kind: Config
current-context: dev
contexts:
- {name: dev, context: {cluster: eu-1, user: admin, namespace: demo}}
- {name: prod, context: {cluster: nowhere, user: admin}}
- {name: lost, context: {cluster: eu-1, user: nobody}}
- {name: fine, context: {cluster: good, user: harmless}}
clusters:
- {name: eu-1, cluster: {` + cluster + `}}
- {name: good, cluster: {server: "https://good.example.com"}}
users:
- {name: admin, user: {` + user + `}}
- {name: harmless, user: {token: t}}
`
}

const server = `server: "https://eu-1.example.com:6443/path"`

func TestKubeconfigRefusals(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, context, want string }{
		"Empty":        {" \n", "", "kubeconfig: it is empty"},
		"TooLarge":     {strings.Repeat("#", maxKubeconfig+1), "", "kubeconfig: it is larger than 4 MiB"},
		"NoYAML":       {"a: b\nc: d\ne: f: hunter2", "", "kubeconfig: it is not a valid kubeconfig (YAML or JSON of kind Config, apiVersion v1): see line 3"},
		"NoKubeconfig": {"token: hunter2", "", "kubeconfig: it has no contexts: is it a kubeconfig?"},
		"OtherKind":    {"apiVersion: v1\nkind: Secret\ndata: {token: hunter2}", "", "kubeconfig: it is not a valid kubeconfig"},
		"WrongType":    {"apiVersion: v1\nkind: Config\nusers: hunter2", "", "kubeconfig: it is not a valid kubeconfig"},
		"NotBase64":    {kubeconfig(server, `client-key-data: "hunter2!"`), "", "kubeconfig: it is not a valid kubeconfig"},

		"NoContexts":       {"apiVersion: v1\nkind: Config", "", "kubeconfig: it has no contexts"},
		"NoCurrentContext": {strings.Replace(kubeconfig(server, ""), "current-context", "x", 1), "", `kubeconfig: current-context: it is not set: name a context, one of ["dev"`},
		"ContextMissing":   {kubeconfig(server, ""), "staging", `kubeconfig: context "staging": there is no such context: name one of ["dev" "fine" "lost" "prod"]`},
		"ClusterMissing":   {kubeconfig(server, ""), "prod", `kubeconfig: context "prod": cluster: there is no cluster "nowhere"`},
		"UserMissing":      {kubeconfig(server, ""), "lost", `kubeconfig: context "lost": user: there is no user "nobody"`},
		"TwoContexts":      {strings.Replace(kubeconfig(server, ""), "name: prod", "name: dev", 1), "", `kubeconfig: context "dev": there are two of this name: remove or rename one`},
		"TwoClusters":      {strings.Replace(kubeconfig(server, ""), "name: good", "name: eu-1", 1), "", `kubeconfig: cluster "eu-1": there are two of this name`},
		"TwoUsers":         {strings.Replace(kubeconfig(server, "token: hunter2"), "name: harmless", "name: admin", 1), "", `kubeconfig: user "admin": there are two of this name`},
		"OtherVersion":     {strings.Replace(kubeconfig(server, ""), "apiVersion: v1", "apiVersion: v2", 1), "", "kubeconfig: it is not a valid kubeconfig"},
		"ServerMissing":    {kubeconfig("", ""), "", `kubeconfig: cluster "eu-1": server: it is missing`},
		"ServerNoURL":      {kubeconfig(`server: "eu-1:6443"`, ""), "", `cluster "eu-1": server: it is not a URL`},
		"ServerWithUser":   {kubeconfig(`server: "https://u:hunter2@eu-1"`, ""), "", `cluster "eu-1": server: it carries credentials`},
		"ServerWithQuery":  {kubeconfig(`server: "https://eu-1?token=hunter2"`, ""), "", `cluster "eu-1": server: it has a query`},
		"ServerPlainHTTP":  {kubeconfig(`server: "http://eu-1"`, ""), "", `cluster "eu-1": server: credentials are not sent over plain http: use https`},
		"ServerUnix":       {kubeconfig(`server: "unix://eu-1/sock"`, ""), "", `cluster "eu-1": server: its scheme is not https`},
		"Insecure":         {kubeconfig(server+`, insecure-skip-tls-verify: true`, ""), "", `cluster "eu-1": insecure-skip-tls-verify: servers are always verified`},
		"ProxyPlain":       {kubeconfig(server+`, proxy-url: "http://u:hunter2@proxy"`, ""), "", `cluster "eu-1": proxy-url: only https proxies are used`},
		"ProxySocks":       {kubeconfig(server+`, proxy-url: "socks5://proxy"`, ""), "", `cluster "eu-1": proxy-url: only https proxies are used`},
		"ProxyNoURL":       {kubeconfig(server+`, proxy-url: "%zz hunter2"`, ""), "", `cluster "eu-1": proxy-url: it is not a URL`},
		"CAData":           {kubeconfig(server+`, certificate-authority-data: `+b64("hunter2"), ""), "", `cluster "eu-1": certificate-authority-data: it has no PEM certificate`},
		"CAFile":           {kubeconfig(server+`, certificate-authority: /etc/hunter2`, ""), "", `cluster "eu-1": certificate-authority: files are not read: inline it as certificate-authority-data`},
		"CertFile":         {kubeconfig(server, `client-certificate: ../hunter2`), "", `user "admin": client-certificate: files are not read: inline it as client-certificate-data`},
		"KeyFile":          {kubeconfig(server, `client-key: hunter2`), "", `user "admin": client-key: files are not read: inline it as client-key-data`},
		"TokenFile":        {kubeconfig(server, `token: t, tokenFile: /var/run/hunter2`), "", `user "admin": tokenFile: files are not read: inline it as token`},
		"Exec":             {kubeconfig(server, `exec: {apiVersion: client.authentication.k8s.io/v1, command: hunter2, interactiveMode: Never}`), "", `user "admin": exec: programs are not started: use a token`},
		"AuthProvider":     {kubeconfig(server, `auth-provider: {name: oidc, config: {id-token: hunter2}}`), "", `user "admin": auth-provider: auth providers are not supported`},
		"CertWithoutKey":   {kubeconfig(server, `client-certificate-data: `+b64("x")), "", `user "admin": client-key-data: it is missing`},
		"KeyWithoutCert":   {kubeconfig(server, `client-key-data: `+b64("hunter2")), "", `user "admin": client-certificate-data: it is missing`},
		"CertNoPEM":        {kubeconfig(server, `client-certificate-data: `+b64("x")+`, client-key-data: `+b64("hunter2")), "", `user "admin": client-certificate-data: with client-key-data it is no PEM pair`},
		"TokenTwoLines":    {kubeconfig(server, `token: "hunter2\nX-Evil: 1"`), "", `user "admin": token: it has a blank`},
		"TokenAndPassword": {kubeconfig(server, `token: hunter2, username: u, password: hunter2`), "", `user "admin": token: it excludes username`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, err := LoadKubeconfig([]byte(tc.text), tc.context)
			if cfg != nil || !errors.Is(err, ErrKubeconfig) || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("error = %v, want %q", err, tc.want)
			}
			noHunter2(t, err)
		})
	}
}

func TestKubeconfigTaken(t *testing.T) {
	t.Parallel()
	text := kubeconfig(server+`, tls-server-name: kube, proxy-url: "https://proxy.example.com"`,
		`token: t, as: somebody, as-groups: [g], as-uid: u, as-user-extra: {k: [v]}`)
	cfg, err := LoadKubeconfig([]byte(text), "")
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := cfg.Proxy(&http.Request{})
	if err != nil || proxy.Host != "proxy.example.com" {
		t.Errorf("proxy = %v, %v", proxy, err)
	}
	if cfg.Host != "https://eu-1.example.com:6443/path" || cfg.ServerName != "kube" || cfg.BearerToken != "t" || cfg.Insecure {
		t.Errorf("configuration = %v", cfg)
	}
	if i := cfg.Impersonate; i.UserName != "somebody" || i.UID != "u" || len(i.Groups) != 1 || len(i.Extra) != 1 {
		t.Errorf("impersonation = %+v", i)
	}
	if _, err := LoadKubeconfig([]byte(kubeconfig(`server: "http://127.0.0.1:8001"`, "")), ""); err != nil {
		t.Errorf("plain http to this machine: %v", err)
	}
	// What other contexts have does not matter.
	bad := kubeconfig(server, `exec: {apiVersion: client.authentication.k8s.io/v1, command: x, interactiveMode: Never}`)
	if cfg, err := LoadKubeconfig([]byte(bad), "fine"); err != nil || cfg.Host != "https://good.example.com" {
		t.Errorf("configuration = %v, %v", cfg, err)
	}
}

func TestReadKubeconfig(t *testing.T) {
	t.Parallel()
	cfg, err := ReadKubeconfig(localtest.Kubeconfig(t, localtest.Server(t)), "")
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(t, cfg, Options{})
	if _, err := c.ServerVersion(t.Context()); err != nil {
		t.Error(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "config")
	if err := os.WriteFile(file, []byte("token: hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"": "no file is given", filepath.Join(dir, "missing"): "no such file", dir: "is a directory", file: file + ": kubeconfig: it has no contexts",
	} {
		_, err := ReadKubeconfig(path, "")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ReadKubeconfig(%q) = %v, want %q", path, err, want)
			continue
		}
		noHunter2(t, err)
	}
}

// TestKubeconfigAsClientcmd reads what kubectl writes, every field of it.
func TestKubeconfigAsClientcmd(t *testing.T) {
	t.Parallel()
	written, err := clientcmd.Write(api.Config{
		CurrentContext: "b",
		Clusters: map[string]*api.Cluster{"a": {Server: "https://a:1"}, "b": {
			Server: "https://b:2", TLSServerName: "kube", CertificateAuthorityData: authority(t), ProxyURL: "https://p:3",
		}},
		AuthInfos: map[string]*api.AuthInfo{"a": {Exec: &api.ExecConfig{Command: "x"}}, "b": {
			Username: "u", Password: "p", Impersonate: "i", ImpersonateUID: "7", ImpersonateGroups: []string{"g", "h"},
			ImpersonateUserExtra: map[string][]string{"k": {"v", "w"}},
		}, "c": {Token: "t"}},
		Contexts: map[string]*api.Context{"a": {Cluster: "a", AuthInfo: "a"}, "b": {Cluster: "b", AuthInfo: "b"}, "c": {Cluster: "b", AuthInfo: "c"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	inJSON, err := yaml.YAMLToJSON(written)
	if err != nil {
		t.Fatal(err)
	}
	mixed := []byte(entriesTwice)
	for _, data := range [][]byte{written, inJSON, mixed} {
		if _, err := clientcmd.Load(data); err != nil {
			t.Fatal(err)
		}
		for _, context := range []string{"", "c"} {
			cfg, err := LoadKubeconfig(data, context)
			if err != nil {
				t.Fatal(err)
			}
			asClientcmd(t, data, context, cfg)
		}
	}
}

// entriesTwice has entries that are merged, or given twice.
const entriesTwice = `
apiVersion: v1
kind: Config
current-context: b
x: &cluster {cluster: {server: "https://a:1", tls-server-name: a, proxy-url: "https://p:1"}}
y: &user {user: {username: u, password: p, as-user-extra: {k: [v]}}}
clusters: [{<<: *cluster, name: b, cluster: {server: "https://b:2"}}]
users: [{<<: *user, name: b, user: {token: t}}, {name: c, user: {username: u}, user: {token: t}}]
contexts: [{name: b, context: {cluster: x, user: y}, context: {cluster: b, user: b}}, {name: c, context: {cluster: b, user: c}}]
`

// asClientcmd checks that clientcmd takes the same from a kubeconfig, if it takes it at all: it wants text in quotation marks where it
// could be a number.
func asClientcmd(t *testing.T, data []byte, context string, cfg *rest.Config) {
	t.Helper()
	theirs, err := clientcmd.Load(data)
	if err != nil {
		return
	}
	c := theirs.Contexts[cmp.Or(context, theirs.CurrentContext)]
	if c == nil || theirs.Clusters[c.Cluster] == nil {
		t.Fatal("clientcmd has no such context")
	}
	cluster, user := theirs.Clusters[c.Cluster], theirs.AuthInfos[c.AuthInfo]
	if user == nil {
		user = &api.AuthInfo{}
	}
	want := rest.Config{
		Host: cluster.Server, BearerToken: user.Token, Username: user.Username, Password: user.Password,
		TLSClientConfig: rest.TLSClientConfig{
			ServerName: cluster.TLSServerName, CAData: cluster.CertificateAuthorityData, CertData: user.ClientCertificateData, KeyData: user.ClientKeyData,
		},
		Impersonate: rest.ImpersonationConfig{
			UserName: user.Impersonate, UID: user.ImpersonateUID, Groups: user.ImpersonateGroups, Extra: user.ImpersonateUserExtra,
		},
	}
	is := *cfg
	is.Proxy = nil
	if !equality.Semantic.DeepEqual(want, is) {
		t.Errorf("clientcmd takes another configuration:\n%#v\n%#v", want, is)
	}
	if (cluster.ProxyURL != "") != (cfg.Proxy != nil) {
		t.Errorf("the proxy is %q", cluster.ProxyURL)
	}
	if user.Exec != nil || user.AuthProvider != nil || user.TokenFile != "" || user.ClientCertificate != "" || user.ClientKey != "" ||
		cluster.InsecureSkipTLSVerify || cluster.CertificateAuthority != "" {
		t.Errorf("what must not be was taken: %#v, %#v", cluster, user)
	}
}

// authority is a certificate.
func authority(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// FuzzLoadKubeconfig checks that whatever is taken starts no program, reads no file and verifies its server, is what clientcmd takes, and
// that no error quotes a credential.
func FuzzLoadKubeconfig(f *testing.F) {
	f.Add([]byte(kubeconfig(server, "token: hunter2")), "")
	f.Add([]byte(kubeconfig(server+", certificate-authority: f", "client-key: f")), "dev")
	f.Add([]byte(kubeconfig(server, `exec: {command: x}`)), "dev")
	f.Add([]byte(kubeconfig(`server: "http://a"`, `auth-provider: {name: x}`)), "dev")
	f.Add([]byte(kubeconfig(server+`, proxy-url: "https://a:1"`, `tokenFile: x`)), "lost")
	f.Add([]byte(`{"apiVersion":"v1","kind":"Config","contexts":null}`), "x")
	f.Add([]byte("a: &a [*a]\n"), "")
	f.Add([]byte("\xff\x00"), "\xff")
	f.Add([]byte(entriesTwice), "c")
	f.Fuzz(func(t *testing.T, data []byte, context string) {
		cfg, err := LoadKubeconfig(data, context)
		if err != nil {
			if !errors.Is(err, ErrKubeconfig) {
				t.Errorf("%T: %v", err, err)
			}
			if !bytes.Contains([]byte(context), []byte("hunter2")) && bytes.Contains(data, []byte("token: hunter2")) && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error quotes a credential: %v", err)
			}
			return
		}
		if cfg.ExecProvider != nil || cfg.AuthProvider != nil || cfg.Insecure || cfg.Host == "" ||
			cfg.CAFile != "" || cfg.CertFile != "" || cfg.KeyFile != "" || cfg.BearerTokenFile != "" {
			t.Errorf("%+v was taken", cfg)
		}
		asClientcmd(t, data, context, cfg)
		c, err := New(cfg, Options{})
		if err != nil {
			t.Fatalf("what was taken cannot be used: %v", err)
		}
		c.Close()
	})
}
