package source

import (
	"archive/zip"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

var update = flag.Bool("update", false, "write the golden file of messages")

// scene is one cell of the table: a server, what is asked of it, and by whom.
type scene struct {
	k     kindOfSource
	srv   *secure
	ref   Ref
	creds *Credentials
}

// failing are the ways in which a source can fail: wrap changes the server, change what is asked of it.
var failing = map[string]struct {
	wrap   func(http.Handler) http.Handler
	change func(*scene)
}{
	"Nothing":          {},
	"WrongCredentials": {change: func(s *scene) { s.creds = wrong(s.creds) }},
	"MissingSecret":    {change: func(s *scene) { s.creds = nil; s.ref = s.ref.with("missing") }},
	"UnknownAuthority": {change: func(s *scene) { s.ref.CABundle = "" }},
	"BadAuthority":     {change: func(s *scene) { s.ref.CABundle = "none" }},
	"NotThere":         {wrap: always(http.StatusNotFound)},
	"Forbidden":        {wrap: always(http.StatusForbidden)},
	"TooOften":         {wrap: always(http.StatusTooManyRequests)},
	"Down":             {wrap: always(http.StatusBadGateway)},
	"Closed":           {change: func(s *scene) { s.srv.Close() }},
	"Hangs": {wrap: func(http.Handler) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	}},
	"HangsInTheMiddle": {wrap: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000")
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
	}},
	"WebPage":  {wrap: func(http.Handler) http.Handler { return answering("text/html", "<html>") }},
	"Nonsense": {wrap: func(http.Handler) http.Handler { return answering("application/octet-stream", "\x00\x01\x02") }},
	"TooMuch": {wrap: func(http.Handler) http.Handler {
		return answering("application/octet-stream", strings.Repeat("x", 2<<20))
	}},
	"OtherDigest":   {change: func(s *scene) { s.ref.Digest = BytesDigest(nil) }},
	"ToMetadata":    {wrap: func(http.Handler) http.Handler { return redirecting("https://169.254.169.254/latest") }},
	"ToLoopback":    {wrap: func(http.Handler) http.Handler { return redirecting("https://127.0.0.2:9/") }},
	"ToFile":        {wrap: func(http.Handler) http.Handler { return redirecting("file:///etc/passwd") }},
	"ToHTTP":        {wrap: func(http.Handler) http.Handler { return redirecting("http://example.com/") }},
	"RoundInCircle": {wrap: func(http.Handler) http.Handler { return redirecting("/again") }},
}

func always(code int) func(http.Handler) http.Handler {
	return func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
	}
}

// wrong are credentials of the same kind that nobody takes; of none there are none.
func wrong(c *Credentials) *Credentials {
	switch {
	case c == nil:
		return nil
	case c.Token != "":
		return &Credentials{Token: "s3cret-wrong"}
	case len(c.Docker) > 0:
		return &Credentials{Docker: bytes.ReplaceAll(c.Docker, []byte("bWU6czNjcmV0"), []byte("bWU6czNjcmV1"))}
	case len(c.TLSCert) > 0:
		return nil
	}
	return &Credentials{Username: c.Username, Password: "s3cret-wrong"}
}

// moreKinds are those of sourceKinds, and other contents of the same places.
func moreKinds(t *testing.T) map[string]kindOfSource {
	t.Helper()
	kinds := sourceKinds(t)
	reg := newRegistry()
	push(t, reg, "charts/demo", "1.0.0", layer{"application/vnd.cncf.flux.content.v1.tar+gzip", packFiles(t, "d/a.yaml", "a: 1\n")})
	kinds["OCIManifests"] = kindOfSource{handler: reg, guard: tokens, ref: func(s *secure) Ref { return ociRef(s, Manifests, "1.0.0", "") }}
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, err := w.Create("d/a.yaml")
	if err == nil {
		_, err = f.Write([]byte("a: 1\n"))
	}
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	kinds["Zip"] = kindOfSource{
		handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(b.Bytes()) }), guard: guarded,
		ref: func(s *secure) Ref { r := urlRef(Manifests, s.URL+"/demo.zip"); r.CABundle = s.ca; return r },
	}
	return kinds
}

// credentialKinds make credentials for a server.
func credentialKinds(t *testing.T) map[string]func(host string) *Credentials {
	t.Helper()
	cert, key := newCertificate(t)
	_, private := newKey(t)
	known := marshalKey(t, private, "")
	return map[string]func(host string) *Credentials{
		"none":        func(host string) *Credentials { return nil },
		"password":    func(host string) *Credentials { return &Credentials{Username: "me", Password: "s3cret"} },
		"token":       func(host string) *Credentials { return &Credentials{Token: "s3cret-token"} },
		"docker":      func(host string) *Credentials { return &Credentials{Docker: dockerConfig(host)} },
		"certificate": func(host string) *Credentials { return &Credentials{TLSCert: cert, TLSKey: key} },
		"ssh key": func(host string) *Credentials {
			return &Credentials{SSHKey: known, KnownHosts: []byte("example.com ssh-ed25519 AAAA")}
		},
	}
}

// board collects what is said in each cell.
type board struct {
	mu    sync.Mutex
	lines map[string][]string // kind, failure and message → credentials
}

var (
	hosts   = regexp.MustCompile(`\[?127\.0\.0\.1\]?:[0-9]+`)
	folders = regexp.MustCompile(`'/[^']*/nope\.git'`)
	digests = regexp.MustCompile(`sha256:[0-9a-f]{64}`)
)

// note keeps a message without what differs each time.
func (b *board) note(kind, creds, failure string, err error) {
	text := "fetched"
	if err != nil {
		text = digests.ReplaceAllString(hosts.ReplaceAllString(folders.ReplaceAllString(err.Error(), "'/nope.git'"), "HOST"), "sha256:…")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	line := kind + "\t" + failure + "\t" + text
	b.lines[line] = append(b.lines[line], creds)
}

// text is the table, the cells with the same message in one.
func (b *board) text() string {
	var out strings.Builder
	last := ""
	for _, line := range slices.Sorted(maps.Keys(b.lines)) {
		parts := strings.SplitN(line, "\t", 3)
		if head := parts[0] + ", " + parts[1]; head != last {
			fmt.Fprintf(&out, "%s\n", head)
			last = head
		}
		slices.Sort(b.lines[line])
		fmt.Fprintf(&out, "    %s: %s\n", strings.Join(b.lines[line], ", "), parts[2])
	}
	return out.String()
}

// Each kind of source with each kind of credentials and each failure: the table of what is said is testdata/messages.txt.
func TestMessages(t *testing.T) {
	t.Parallel()
	b := &board{lines: map[string][]string{}}
	t.Run("Cells", func(t *testing.T) {
		for kind, k := range moreKinds(t) {
			for name, credentials := range credentialKinds(t) {
				for failure := range failing {
					if failure != "Nothing" && unsuited(kind, name) {
						continue // nothing is sent then
					}
					t.Run(kind+"/"+name+"/"+failure, func(t *testing.T) {
						t.Parallel()
						b.note(kind, name, failure, play(t, k, credentials, failure))
					})
				}
			}
		}
		overSSH(t, b)
	})
	golden := filepath.Join("testdata", "messages.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(b.text()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(b.text(), "\n")); diff != "" {
		t.Errorf("messages (-want +got), written by go test -run TestMessages -update:\n%s", diff)
	}
	if strings.Contains(b.text(), "s3cret") {
		t.Error("a message shows a credential")
	}
}

// unsuited says whether a kind of source cannot use a kind of credentials.
func unsuited(kind, credentials string) bool {
	return credentials == "ssh key" || credentials == "docker" && !strings.HasPrefix(kind, "OCI")
}

// play plays one scene.
func play(t *testing.T, k kindOfSource, credentials func(host string) *Credentials, failure string) error {
	t.Helper()
	f := failing[failure]
	s := &scene{k: k}
	h := k.handler
	creds := credentials("")
	if creds != nil && len(creds.TLSCert) == 0 {
		h = k.guard(h)
	}
	if f.wrap != nil {
		h = f.wrap(h)
	}
	if creds != nil && len(creds.TLSCert) > 0 {
		s.srv = serveMutual(t, creds.TLSCert, h)
	} else {
		s.srv = serveTLS(t, h)
	}
	s.ref, s.creds = k.ref(s.srv), credentials(s.srv.Listener.Addr().String())
	if f.change != nil {
		f.change(s)
	}
	if s.creds != nil {
		s.ref = s.ref.with("me")
	}
	return s.fetch(t, failure)
}

// fetch has little patience with servers that hang, and much with the machine else.
func (s *scene) fetch(t *testing.T, failure string) error {
	t.Helper()
	stall := time.Duration(0)
	if strings.HasPrefix(failure, "Hangs") {
		stall = 300 * time.Millisecond
	}
	m, _ := hurried(Options{Stall: stall, Attempts: 2, Credentials: secrets(map[string]*Credentials{"me": s.creds})})
	_, err := m.Fetch(t.Context(), s.ref)
	return err
}

// overSSH are the cells of Git over ssh, which fails in other ways.
func overSSH(t *testing.T, b *board) {
	t.Helper()
	repo := newRepository(t, "d/a.yaml", "a: 1\n")
	srv := serveSSH(t, repo)
	_, private := newKey(t)
	stranger, _ := newKey(t)
	good := &Credentials{SSHKey: srv.client, KnownHosts: srv.knownHosts}
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	cert, key := newCertificate(t)
	for name, tc := range map[string]struct {
		creds  *Credentials
		kind   string
		change func(*scene)
	}{
		"Nothing":          {creds: good},
		"WrongCredentials": {creds: &Credentials{SSHKey: marshalKey(t, private, ""), KnownHosts: srv.knownHosts}},
		"Stranger":         {creds: &Credentials{SSHKey: srv.client, KnownHosts: knownLine(srv.addr, stranger)}},
		"UnknownHost":      {creds: &Credentials{SSHKey: srv.client, KnownHosts: knownLine("example.com", stranger)}},
		"Locked":           {creds: &Credentials{SSHKey: srv.locked, KnownHosts: srv.knownHosts}},
		"MissingSecret":    {change: func(s *scene) { s.ref = s.ref.with("missing") }},
		"NotThere":         {creds: good, change: func(s *scene) { s.ref.Git.URL = "ssh://git@" + srv.addr + "/nope.git" }},
		"NoBranch":         {creds: good, change: func(s *scene) { s.ref.Git.Ref = "nope" }},
		"NoFolder":         {creds: good, change: func(s *scene) { s.ref.Git.Path = "nope" }},
		"OtherDigest":      {creds: good, change: func(s *scene) { s.ref.Digest = BytesDigest(nil) }},
		"Hangs":            {creds: &Credentials{SSHKey: srv.client, KnownHosts: knownLine(silent.Addr().String(), stranger)}, change: func(s *scene) { s.ref.Git.URL = "ssh://git@" + silent.Addr().String() + "/repo.git" }},
		"NoCredentials":    {kind: "none"},
		"OfAnotherKind1":   {kind: "password", creds: &Credentials{Username: "me", Password: "s3cret"}},
		"OfAnotherKind2":   {kind: "token", creds: &Credentials{Token: "s3cret"}},
		"OfAnotherKind3":   {kind: "docker", creds: &Credentials{Docker: dockerConfig("example.com")}},
		"OfAnotherKind4":   {kind: "certificate", creds: &Credentials{TLSCert: cert, TLSKey: key}},
	} {
		t.Run("GitSSH/"+name, func(t *testing.T) {
			t.Parallel()
			s := &scene{ref: srv.ref("/repo.git", ""), creds: tc.creds}
			s.ref.CredentialsRef = nil
			if tc.creds != nil {
				s.ref = s.ref.with("me")
			}
			if tc.change != nil {
				tc.change(s)
			}
			kind := tc.kind
			if kind == "" {
				kind = "ssh key"
			}
			b.note("GitSSH", kind, strings.TrimRight(name, "1234"), s.fetch(t, name))
		})
	}
}

// knownLine is a line of known_hosts.
func knownLine(addr string, key ssh.PublicKey) []byte {
	return []byte(knownhosts.Line([]string{addr}, key))
}
