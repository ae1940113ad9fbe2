package source

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// sshServer is a Git server over ssh that takes one key of user git.
type sshServer struct {
	addr       string
	client     []byte // the private key that it takes, in PEM
	locked     []byte // the same with the passphrase "open"
	knownHosts []byte
}

// serveSSH runs an ssh server with two host keys, as real ones have, of which known_hosts has the second.
func serveSSH(t *testing.T, repo *repository) *sshServer {
	t.Helper()
	public, private := newKey(t)
	config := &ssh.ServerConfig{
		PublicKeyCallback: func(c ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if c.User() != "git" || !bytes.Equal(key.Marshal(), public.Marshal()) {
				return nil, fmt.Errorf("not known")
			}
			return nil, nil
		},
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	hostPublic, host := newKey(t)
	for _, key := range []any{rsaKey, host} {
		signer, err := ssh.NewSignerFromKey(key)
		if err != nil {
			t.Fatal(err)
		}
		config.AddHostKey(signer)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); l.Close(); conns.Wait() })
	conns.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() { serveConn(ctx, conn, config, repo.root) })
		}
	})
	return &sshServer{
		addr: l.Addr().String(), client: marshalKey(t, private, ""), locked: marshalKey(t, private, "open"),
		knownHosts: []byte("# comment\n" + knownhosts.Line([]string{l.Addr().String()}, hostPublic) + "\n"),
	}
}

func newKey(t *testing.T) (ssh.PublicKey, ed25519.PrivateKey) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return key, private
}

func marshalKey(t *testing.T, key ed25519.PrivateKey, passphrase string) []byte {
	t.Helper()
	block, err := ssh.MarshalPrivateKey(key, "")
	if passphrase != "" {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(block)
}

// serveConn serves one connection until it or ctx ends.
func serveConn(ctx context.Context, conn net.Conn, config *ssh.ServerConfig, root string) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	c, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	defer c.Close()
	go ssh.DiscardRequests(requests)
	for ch := range channels {
		channel, requests, err := ch.Accept()
		if err != nil {
			return
		}
		for r := range requests {
			if r.Type == "exec" {
				_ = r.Reply(true, nil)
				execGit(ctx, channel, string(r.Payload[4:]), root)
				break
			}
			_ = r.Reply(false, nil)
		}
	}
}

// execGit runs what was asked for, through a shell as sshd does, if it is git-upload-pack.
func execGit(ctx context.Context, channel ssh.Channel, command, root string) {
	defer channel.Close()
	status := 0
	if !strings.HasPrefix(command, "git-upload-pack '/") {
		_, _ = io.WriteString(channel.Stderr(), "only git-upload-pack\n")
		status = 1
	} else {
		cmd := exec.CommandContext(ctx, "sh", "-c", strings.Replace(command, "'/", "'"+root+"/", 1))
		in, err := cmd.StdinPipe()
		if err != nil {
			return
		}
		cmd.Stdout, cmd.Stderr, cmd.WaitDelay = channel, channel.Stderr(), time.Second
		go func() { _, _ = io.Copy(in, channel); in.Close() }()
		if cmd.Run() != nil {
			status = 128
		}
	}
	_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{uint32(status)}))
}

func (s *sshServer) ref(path, name string) Ref {
	return Ref{Kind: Manifests, SourceRef: v1beta2.SourceRef{Git: &v1beta2.GitSource{URL: "ssh://git@" + s.addr + path, Path: "d"}}}.with(name)
}

func TestGitSSH(t *testing.T) {
	t.Parallel()
	repo := newRepository(t, "d/a.yaml", "a: 1\n")
	git(t, repo.root, "clone", "-q", "--bare", "repo.git", "it's.git")
	srv := serveSSH(t, repo)
	_, strange := newKey(t)
	strangeHost, _ := newKey(t)
	known := srv.knownHosts
	other := []byte(knownhosts.Line([]string{srv.addr}, strangeHost))
	hashed := []byte(knownhosts.Line([]string{knownhosts.HashHostname(knownhosts.Normalize(srv.addr))}, hostKeyOf(t, known)))
	m, _ := hurried(Options{Credentials: secrets(map[string]*Credentials{
		"good":        {SSHKey: srv.client, KnownHosts: known},
		"hashed":      {SSHKey: srv.client, KnownHosts: hashed},
		"locked":      {SSHKey: srv.locked, Password: "open", KnownHosts: known},
		"stillShut":   {SSHKey: srv.locked, KnownHosts: known},
		"wrongPhrase": {SSHKey: srv.locked, Password: "s3cret", KnownHosts: known},
		"strangeKey":  {SSHKey: marshalKey(t, strange, ""), KnownHosts: known},
		"noHosts":     {SSHKey: srv.client},
		"otherHosts":  {SSHKey: srv.client, KnownHosts: []byte(knownhosts.Line([]string{"example.com"}, strangeHost))},
		"wrongHost":   {SSHKey: srv.client, KnownHosts: other},
		"revoked":     {SSHKey: srv.client, KnownHosts: append([]byte("@revoked "), append(bytes.TrimPrefix(known, []byte("# comment\n")), known...)...)},
		"badHosts":    {SSHKey: srv.client, KnownHosts: []byte("example.com ssh-ed25519 s3cret")},
		"badKey":      {SSHKey: []byte("s3cret"), KnownHosts: known},
	})})
	tests := map[string]struct {
		path, name string
		err        error
		says       string
	}{
		"Key":               {name: "good"},
		"HashedHost":        {name: "hashed"},
		"LockedKey":         {name: "locked"},
		"QuotedPath":        {name: "good", path: "/it's.git"},
		"PassphraseMissing": {name: "stillShut", err: ErrInvalid, says: "add its passphrase as password"},
		"WrongPassphrase":   {name: "wrongPhrase", err: ErrInvalid, says: "its passphrase is another"},
		"StrangeKey":        {name: "strangeKey", err: ErrDenied, says: "server does not accept the SSH key"},
		"NoKnownHosts":      {name: "noHosts", err: ErrInvalid, says: "ssh-privatekey but no known_hosts"},
		"HostNotKnown":      {name: "otherHosts", err: ErrDenied, says: "known_hosts has no key of [127.0.0.1]:"},
		"OtherHostKey":      {name: "wrongHost", err: ErrDenied, says: "server's key is not the one in known_hosts"},
		"RevokedHostKey":    {name: "revoked", err: ErrDenied, says: "server's key is marked as revoked"},
		"BadKnownHosts":     {name: "badHosts", err: ErrInvalid, says: "known_hosts is malformed"},
		"BadKey":            {name: "badKey", err: ErrInvalid, says: "no private key that can be read"},
		"NoRepository":      {name: "good", path: "/nope.git", err: ErrNotFound, says: "server says \"fatal: '"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.path == "" {
				tc.path = "/repo.git"
			}
			ref := srv.ref(tc.path, tc.name)
			tree, err := m.Fetch(t.Context(), ref)
			if tc.err != nil {
				wantError(t, err, tc.err, "fetching ssh://"+srv.addr+tc.path, tc.says)
				if strings.Contains(err.Error(), "s3cret") {
					t.Errorf("message shows a credential: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			wantPaths(t, tree, "a.yaml")
			if same, err := m.Current(t.Context(), ref, tree); err != nil || !same {
				t.Errorf("current is %t, %v", same, err)
			}
		})
	}
}

// hostKeyOf is the key in lines of known_hosts.
func hostKeyOf(t *testing.T, lines []byte) ssh.PublicKey {
	t.Helper()
	_, _, key, _, _, err := ssh.ParseKnownHosts(lines)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestGitSSHHangs(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	public, private := newKey(t)
	creds := &Credentials{SSHKey: marshalKey(t, private, ""), KnownHosts: []byte(knownhosts.Line([]string{l.Addr().String()}, public))}
	m, _ := hurried(Options{Stall: 100 * time.Millisecond, Attempts: 1, Credentials: secrets(map[string]*Credentials{"key": creds})})
	_, err = m.Fetch(t.Context(), (&sshServer{addr: l.Addr().String()}).ref("/x.git", "key"))
	wantError(t, err, ErrUnavailable, "server stalls")

	l.Close()
	_, err = m.Fetch(t.Context(), (&sshServer{addr: l.Addr().String()}).ref("/x.git", "key"))
	wantError(t, err, ErrUnavailable, "cannot be reached")
}
