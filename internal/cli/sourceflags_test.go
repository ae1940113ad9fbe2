package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// TestCredentialsOfTheCommandLine says which credentials a source gets, from files of a home.
func TestCredentialsOfTheCommandLine(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	for name, text := range map[string]string{
		".ssh/known_hosts":               "example.com ssh-ed25519 AAAA\n",
		"hosts":                          "other.example.com ssh-ed25519 AAAA\n",
		"key":                            "-----BEGIN OPENSSH PRIVATE KEY-----\n",
		"ring.asc":                       "-----BEGIN PGP PUBLIC KEY BLOCK-----\n",
		"cosign.pub":                     "-----BEGIN PUBLIC KEY-----\n",
		"crt":                            "cert",
		"crt.key":                        "its key",
		".config/helm/repositories.yaml": "repositories:\n- {name: mine, url: 'https://charts.example.com', username: me, password: s3cret, certFile: HOME/crt, keyFile: HOME/crt.key}\n",
		".docker/config.json":            `{"auths": {"registry.example.com": {"username": "me", "password": "s3cret"}, "token.example.com": {"identitytoken": "t0ken"}}}`,
	} {
		file := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "HOME", home)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct {
		args, stdin string
		want        map[string]string
		verify      *v1beta2.SourceVerification
	}{
		"None":         {args: "--chart https://example.com/a.tgz"},
		"Basic":        {args: "--chart https://example.com/a.tgz --username me --password-stdin", stdin: "s3cret\r\n", want: map[string]string{"username": "me", "password": "s3cret"}},
		"SSH":          {args: "--chart git+ssh://git@example.com/a.git --ssh-key HOME/key", want: map[string]string{"ssh-privatekey": "-----BEGIN OPENSSH PRIVATE KEY-----\n", "known_hosts": "example.com ssh-ed25519 AAAA\n"}},
		"KnownHosts":   {args: "--kustomize git+ssh://git@example.com/a.git --ssh-key HOME/key --known-hosts HOME/hosts", want: map[string]string{"ssh-privatekey": "-----BEGIN OPENSSH PRIVATE KEY-----\n", "known_hosts": "other.example.com ssh-ed25519 AAAA\n"}},
		"Helm":         {args: "--chart mine/web --version ~1.2", want: map[string]string{"username": "me", "password": "s3cret", "tls.crt": "cert", "tls.key": "its key"}},
		"Registry":     {args: "--chart oci://registry.example.com/web:1", want: map[string]string{".dockerconfigjson": `{"auths":{"registry.example.com":{"identitytoken":"","password":"s3cret","registrytoken":"","username":"me"}}}`}},
		"Identity":     {args: "-f oci://token.example.com/web:1", want: map[string]string{".dockerconfigjson": `{"auths":{"token.example.com":{"identitytoken":"t0ken","password":"","registrytoken":"","username":""}}}`}},
		"NotForOthers": {args: "--chart oci://another.example.com/web:1"},
		"NotForHTTPS":  {args: "--chart https://registry.example.com/web.tgz"},
		"Keys": {args: "--chart oci://another.example.com/web:1 --keyring HOME/ring.asc --cosign-key HOME/cosign.pub",
			verify: &v1beta2.SourceVerification{Keyring: "-----BEGIN PGP PUBLIC KEY BLOCK-----\n", CosignKey: "-----BEGIN PUBLIC KEY-----\n"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &app{p: Process{Stdin: strings.NewReader(tc.stdin), Getenv: func(key string) string { return map[string]string{"HOME": home}[key] }}}
			f := &flags{}
			cmd := a.install()
			cmd.ResetFlags()
			f.addTo(cmd, asTable)
			cmd.SetContext(context.Background())
			if err := cmd.ParseFlags(strings.Fields(strings.ReplaceAll(tc.args, "HOME", home) + " --name web -n demo")); err != nil {
				t.Fatal(err)
			}
			if err := f.check(cmd, true); err != nil {
				t.Fatal(err)
			}
			s, creds, err := a.sourceOf(cmd, f)
			if err != nil {
				t.Fatal(err)
			}
			var got map[string]string
			for key, data := range creds {
				if got == nil {
					got = map[string]string{}
				}
				got[key] = string(data)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			ref := refOf(&s)
			if named := ref.CredentialsRef != nil; named != (tc.want != nil) {
				t.Errorf("the source names credentials: %t", named)
			}
			if diff := cmp.Diff(tc.verify, ref.Verify); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}
			if text := fmt.Sprintf("%v %+v %#v", creds, creds, creds); strings.Contains(text, "s3cret") {
				t.Errorf("they print as %s", text)
			}
		})
	}
}
