package source

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// kindOfSource is one kind of server, with a chart or manifests on it.
type kindOfSource struct {
	// handler without a guard, and guard that asks for credentials.
	handler http.Handler
	guard   func(http.Handler) http.Handler
	ref     func(*secure) Ref
	// missing is said of what is not there.
	missing string
}

// sourceKinds are those over https.
func sourceKinds(t *testing.T) map[string]kindOfSource {
	t.Helper()
	repo := newRepository(t, "d/a.yaml", "a: 1\n")
	reg := newRegistry()
	push(t, reg, "charts/demo", "1.0.0", chartLayer(t))
	archive := packFiles(t, "demo/Chart.yaml", "name: demo\n")
	return map[string]kindOfSource{
		"Archive": {
			handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(archive) }), guard: guarded,
			ref:     func(s *secure) Ref { r := urlRef(Chart, s.URL+"/demo.tgz"); r.CABundle = s.ca; return r },
			missing: "server answers 404 Not Found",
		},
		"Git": {
			handler: repo.handler(t), guard: guarded, ref: func(s *secure) Ref { return gitRef(Manifests, s, "main", "d") },
			missing: "server answers 404 Not Found",
		},
		"Helm": {
			handler: newHelmRepository(t, "1.0.0"), guard: guarded, ref: func(s *secure) Ref { return helmRef(s, "1.0.0") },
			missing: `entry "index.yaml" of the repository: server answers 404 Not Found`,
		},
		"OCI": {
			handler: reg, guard: tokens, ref: func(s *secure) Ref { return ociRef(s, Chart, "1.0.0", "") },
			missing: "registry has no such artifact",
		},
	}
}

// dockerConfig is a docker configuration with one registry.
func dockerConfig(host string) []byte {
	auth := base64.StdEncoding.EncodeToString([]byte("me:s3cret"))
	return fmt.Appendf(nil, `{"auths":{%q:{"auth":%q}}}`, "https://"+host+"/v2/", auth)
}

// Each kind of source with each kind of credentials.
func TestCredentials(t *testing.T) {
	t.Parallel()
	type want struct {
		err  error
		says string
	}
	ok, refused := want{}, want{ErrDenied, "server answers 401 Unauthorized"}
	noKey := want{ErrInvalid, `an SSH key is of no use for an address of scheme`}
	noDocker := want{ErrInvalid, "a docker configuration is of use for registries (oci) only"}
	common := map[string]want{
		"": refused, "password": ok, "token": ok, "wrongPassword": refused, "wrongToken": refused, "key": noKey, "docker": noDocker,
		"missing": {ErrUnavailable, `credentials "missing" do not exist`},
		"down":    {ErrUnavailable, `credentials "down" cannot be read: the API is down`},
		"empty":   {ErrInvalid, `credentials "empty" cannot be read: credentials have none of username and password, token`},
		"several": {ErrInvalid, `credentials "several" cannot be read: credentials are of several kinds`},
	}
	special := map[string]map[string]want{"OCI": {"docker": ok, "dockerElsewhere": {ErrDenied, ".dockerconfigjson has no credentials for 127.0.0.1:"}}}
	_, private := newKey(t)
	for kind, k := range sourceKinds(t) {
		srv := serveTLS(t, k.guard(k.handler))
		all := map[string]*Credentials{
			"password": {Username: "me", Password: "s3cret"}, "token": {Token: "s3cret-token"},
			"wrongPassword": {Username: "me", Password: "s3cret2"}, "wrongToken": {Token: "s3cret2"},
			"key":    {SSHKey: marshalKey(t, private, ""), KnownHosts: []byte("example.com ssh-ed25519 AAAA")},
			"docker": {Docker: dockerConfig(srv.Listener.Addr().String())}, "dockerElsewhere": {Docker: dockerConfig("example.com")},
			"empty": {}, "several": {Username: "me", Token: "s3cret"},
		}
		m, _ := hurried(Options{Credentials: func(_ context.Context, name string) (*Credentials, error) {
			if name == "down" {
				return nil, errors.New("the API is down")
			}
			return all[name], nil
		}})
		expected := map[string]want{}
		for _, of := range []map[string]want{common, special[kind]} {
			for name, w := range of {
				expected[name] = w
			}
		}
		for name, w := range expected {
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				ref := k.ref(srv)
				if name != "" {
					ref = ref.with(name)
				}
				_, err := m.Fetch(t.Context(), ref)
				if w.err == nil {
					if err != nil {
						t.Fatal(err)
					}
					return
				}
				wantError(t, err, w.err, "ing "+ref.String(), w.says)
				if strings.Contains(err.Error(), "s3cret") {
					t.Errorf("message shows a credential: %v", err)
				}
			})
		}
	}
}

// Each kind of source with each failure, the credentials being right.
func TestFailures(t *testing.T) {
	t.Parallel()
	type failure struct {
		wrap   func(kindOfSource) http.Handler
		change func(*Ref, *secure)
		err    error
		says   func(kindOfSource) string
	}
	says := func(s string) func(kindOfSource) string { return func(kindOfSource) string { return s } }
	answer := func(code int) func(kindOfSource) http.Handler {
		return func(kindOfSource) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
		}
	}
	failures := map[string]failure{
		"NotThere":  {wrap: answer(http.StatusNotFound), err: ErrNotFound, says: func(k kindOfSource) string { return k.missing }},
		"Forbidden": {wrap: answer(http.StatusForbidden), err: ErrDenied, says: says("server answers 403 Forbidden")},
		"Broken":    {wrap: answer(http.StatusInternalServerError), err: ErrUnavailable, says: says("server answers 500 Internal Server Error")},
		"TooMany":   {wrap: answer(http.StatusTooManyRequests), err: ErrUnavailable, says: says("server answers 429 Too Many Requests")},
		"Hangs": {wrap: func(kindOfSource) http.Handler {
			return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		}, err: ErrUnavailable, says: says("server stalls")},
		"Closed":      {change: func(_ *Ref, s *secure) { s.Close() }, err: ErrUnavailable, says: says("cannot be reached")},
		"Stranger":    {change: func(r *Ref, _ *secure) { r.CABundle = "" }, err: ErrDenied, says: says("server's certificate is not trusted")},
		"BadBundle":   {change: func(r *Ref, _ *secure) { r.CABundle = "none" }, err: ErrInvalid, says: says("caBundle holds no PEM certificate")},
		"OtherDigest": {change: func(r *Ref, _ *secure) { r.Digest = BytesDigest(nil) }, err: ErrDigest, says: says("expected " + BytesDigest(nil))},
		"NoHost":      {change: func(r *Ref, _ *secure) { rehost(r, "no-such-host.invalid") }, err: ErrNotFound, says: says("host does not exist")},
	}
	for kind, k := range sourceKinds(t) {
		for name, f := range failures {
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				h := k.guard(k.handler)
				if f.wrap != nil {
					h = f.wrap(k)
				}
				srv := serveTLS(t, h)
				ref := k.ref(srv).with("me")
				if f.change != nil {
					f.change(&ref, srv)
				}
				m, _ := hurried(Options{Stall: 500 * time.Millisecond, Attempts: 2, Credentials: secrets(map[string]*Credentials{"me": {Username: "me", Password: "s3cret"}})})
				_, err := m.Fetch(t.Context(), ref)
				wantError(t, err, f.err, f.says(k))
				if strings.Contains(err.Error(), "s3cret") {
					t.Errorf("message shows a credential: %v", err)
				}
			})
		}
	}
}

// rehost puts another host into a reference.
func rehost(r *Ref, host string) {
	switch {
	case r.Git != nil:
		r.Git.URL = "https://" + host + "/repo.git"
	case r.Helm != nil:
		r.Helm.Repository = "https://" + host + "/charts"
	case r.OCI != nil:
		r.OCI.URL = "oci://" + host + "/charts/demo"
	default:
		r.URL = "https://" + host + "/demo.tgz"
	}
}

func TestCredentialsNeedAPlaceThatIsSafe(t *testing.T) {
	t.Parallel()
	m := New(Options{Credentials: secrets(map[string]*Credentials{"me": {Username: "me", Password: "s3cret"}})})
	_, err := m.Fetch(t.Context(), urlRef(Chart, "http://192.0.2.1/x.tgz").with("me"))
	wantError(t, err, ErrUnsafe, "credentials are not sent over http")
	ssh := Ref{Kind: Chart, SourceRef: v1beta2.SourceRef{Git: &v1beta2.GitSource{URL: "ssh://git@192.0.2.1/x"}}}
	_, err = m.Fetch(t.Context(), ssh)
	wantError(t, err, ErrDenied, "ssh needs ssh-privatekey and known_hosts, the credentials are none")
	_, err = m.Fetch(t.Context(), ssh.with("me"))
	wantError(t, err, ErrDenied, "the credentials are username and password")
	_, err = m.Fetch(t.Context(), pathRef(Chart, "x").with("me"))
	wantError(t, err, ErrInvalid, "a local path needs none")
	_, err = New(Options{}).Fetch(t.Context(), urlRef(Chart, "https://192.0.2.1/x.tgz").with("me"))
	wantError(t, err, ErrUnsupported, `credentials "me" are a Secret of a control plane, there is none here`)
}

func TestCredentialsOf(t *testing.T) {
	t.Parallel()
	data := func(pairs ...string) map[string][]byte {
		m := map[string][]byte{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = []byte(pairs[i+1])
		}
		return m
	}
	c, err := CredentialsOf(data("username", "me\n", "password", "s3cret\r\n", "other", "x"))
	if err != nil || c.Username != "me" || c.Password != "s3cret" {
		t.Errorf("credentials are of %q, %v", c.Username, err)
	}
	tests := map[string]struct {
		data map[string][]byte
		says string
	}{
		"Nothing":     {data("s3cret", "s3cret"), "credentials have none of"},
		"Two":         {data("token", "s3cret", "username", "me"), "several kinds"},
		"LineFeed":    {data("token", "s3cret\nX-Header: 1"), "control character"},
		"NoHosts":     {data("ssh-privatekey", "s3cret"), "no known_hosts"},
		"DockerText":  {data(".dockerconfigjson", "s3cret"), "no JSON object"},
		"DockerEmpty": {data(".dockerconfigjson", "{}"), `has no "auths"`},
		"DockerAuth":  {data(".dockerconfigjson", `{"auths":{"example.com":{"auth":"s3cret"}}}`), `auth of "example.com" in .dockerconfigjson is not base64`},
	}
	for name, tc := range tests {
		_, err := CredentialsOf(tc.data)
		wantError(t, err, ErrInvalid, tc.says)
		if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: message shows a credential: %v", name, err)
		}
	}
}

func TestCredentialsPrintNothing(t *testing.T) {
	t.Parallel()
	c := Credentials{Username: "s3cret", Password: "s3cret", Token: "s3cret", SSHKey: []byte("s3cret"), Docker: []byte("s3cret")}
	asJSON, err := json.Marshal(map[string]any{"c": c, "p": &c})
	if err != nil {
		t.Fatal(err)
	}
	ref := Ref{creds: &c}
	for _, text := range []string{fmt.Sprint(c), fmt.Sprint(&c), fmt.Sprintf("%v %+v %#v %s %q", c, c, c, c, c), string(asJSON), fmt.Sprintf("%+v", ref)} {
		if strings.Contains(text, "s3cret") || strings.Contains(text, "115 51") {
			t.Errorf("credentials print as %s", text)
		}
	}
}

func TestDockerHosts(t *testing.T) {
	t.Parallel()
	for server, want := range map[string]string{
		"https://index.docker.io/v1/": "registry-1.docker.io", "docker.io": "registry-1.docker.io", "Example.com:5000": "example.com:5000",
		"https://example.com": "example.com",
	} {
		if got := dockerHost(server); got != want {
			t.Errorf("%s is %s, want %s", server, got, want)
		}
	}
	entries, err := parseDocker([]byte(`{"auths":{"a.example.com":{"username":"u","password":"p"},"b.example.com":{"identitytoken":"t"}}}`))
	if err != nil || entries["a.example.com"].Password != "p" || entries["b.example.com"].IdentityToken != "t" {
		t.Errorf("entries are %d, %v", len(entries), err)
	}
}
