package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// gitSSH is git-upload-pack on a server, over ssh.
type gitSSH struct {
	client  *ssh.Client
	session *ssh.Session
	in      io.WriteCloser
	out     io.Reader
	stderr  *limited
	asked   bool
	limit   int64
	stop    func() bool
}

var _ gitRemote = (*gitSSH)(nil)

// handshake bounds the time until a server has proven who it is.
const handshake = 15 * time.Second

// dialSSH connects, proves who we are, and starts git-upload-pack. The end of ctx closes the connection, whatever waits
// for it.
func (g *gitFetcher) dialSSH(ctx context.Context, ref Ref, u *url.URL, alive func()) (*gitSSH, error) {
	if ref.creds == nil {
		return nil, refuse(ErrDenied, "", "ssh needs credentials: a key and known_hosts")
	}
	to := g.web.mirrors.of(u)
	addr := to.Host
	if _, _, err := net.SplitHostPort(addr); err != nil {
		addr = net.JoinHostPort(strings.Trim(addr, "[]"), "22")
	}
	config, err := sshConfig(ref.creds, u, addr)
	if err != nil {
		return nil, err
	}
	conn, err := g.web.guard(u.Hostname()).dial(ctx, "tcp", addr)
	if err != nil {
		return nil, transportError(ctx, err, "cannot be reached")
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	s := &gitSSH{limit: g.web.limits.Download, stop: stop, stderr: &limited{most: 4 << 10}}
	if err := s.start(ctx, conn, addr, config, to.Path); err != nil {
		stop()
		conn.Close()
		return nil, err
	}
	s.out = &touching{s.out, alive}
	return s, nil
}

// start does the handshake and runs the command.
func (s *gitSSH) start(ctx context.Context, conn net.Conn, addr string, config *ssh.ClientConfig, path string) error {
	_ = conn.SetDeadline(time.Now().Add(handshake))
	proven := false
	check := config.HostKeyCallback
	config.HostKeyCallback = func(host string, remote net.Addr, key ssh.PublicKey) error {
		err := check(host, remote, key)
		proven = err == nil
		return err
	}
	c, channels, requests, err := ssh.NewClientConn(conn, addr, config)
	if err != nil {
		return sshError(ctx, err, proven)
	}
	_ = conn.SetDeadline(time.Time{}) // from here on, ctx ends it
	s.client = ssh.NewClient(c, channels, requests)
	if s.session, err = s.client.NewSession(); err != nil {
		return sshError(ctx, err, false)
	}
	s.session.Stderr = s.stderr
	if s.in, err = s.session.StdinPipe(); err != nil {
		return sshError(ctx, err, false)
	}
	if s.out, err = s.session.StdoutPipe(); err != nil {
		return sshError(ctx, err, false)
	}
	if err := s.session.Start("git-upload-pack " + shellQuote(path)); err != nil {
		return sshError(ctx, err, false)
	}
	return nil
}

// shellQuote quotes a path for the shell that a server may run the command with.
func shellQuote(path string) string { return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'" }

// close says goodbye, where nothing was asked for, and hangs up.
func (s *gitSSH) close() {
	if !s.asked {
		_, _ = s.in.Write(pktline.FlushPkt)
	}
	_ = s.session.Close()
	_ = s.client.Close()
	s.stop()
}

// refs reads what the command says first.
func (s *gitSSH) refs(ctx context.Context) (*packp.AdvRefs, error) {
	adv, err := decodeRefs(ctx, io.LimitReader(s.out, s.limit))
	if errors.Is(err, packp.ErrEmptyInput) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, ErrUnsupported) {
		if said := s.said(); said != "" {
			return nil, refuse(ErrNotFound, "", "repository cannot be read: server says %s", quote(said))
		}
	}
	return adv, err
}

// said is what the command wrote to its standard error until it ended, which it has: its output has ended.
func (s *gitSSH) said() string {
	_ = s.session.Wait()
	return strings.TrimSpace(s.stderr.String())
}

// pack sends the request.
func (s *gitSSH) pack(ctx context.Context, request []byte) (io.ReadCloser, error) {
	s.asked = true
	if _, err := s.in.Write(request); err != nil {
		return nil, transportError(ctx, err, "ended in the middle")
	}
	return io.NopCloser(s.out), nil
}

// sshConfig holds the key of ours and the one that the server must have.
func sshConfig(c *Credentials, u *url.URL, addr string) (*ssh.ClientConfig, error) {
	signer, err := parseKey(c)
	if err != nil {
		return nil, err
	}
	check, algorithms, err := hostKeys(c.KnownHosts, addr)
	if err != nil {
		return nil, err
	}
	user := "git"
	if u.User != nil && u.User.Username() != "" {
		user = u.User.Username()
	}
	return &ssh.ClientConfig{
		User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: check, HostKeyAlgorithms: algorithms,
		Timeout: handshake, ClientVersion: "SSH-2.0-mothership",
	}, nil
}

// parseKey reads the private key. Errors hold nothing of it.
func parseKey(c *Credentials) (ssh.Signer, error) {
	signer, err := ssh.ParsePrivateKey(c.SSHKey)
	if locked := (*ssh.PassphraseMissingError)(nil); errors.As(err, &locked) {
		if c.Password == "" {
			return nil, refuse(ErrInvalid, "", "ssh-privatekey is encrypted: add its passphrase as password")
		}
		signer, err = ssh.ParsePrivateKeyWithPassphrase(c.SSHKey, []byte(c.Password))
	}
	if err != nil {
		return nil, refuse(ErrInvalid, "", "ssh-privatekey is no private key that can be read, or its passphrase is another")
	}
	return signer, nil
}

// hostKeys says which keys a server may show, and asks it for those, for it may have others that are not in the list.
// The library reads known_hosts from files only; there is nothing secret in them.
func hostKeys(known []byte, addr string) (ssh.HostKeyCallback, []string, error) {
	f, err := os.CreateTemp("", "known_hosts")
	if err != nil {
		return nil, nil, fmt.Errorf("writing known_hosts: %w", err)
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.Write(append(known, '\n'))
	if cerr := f.Close(); err != nil || cerr != nil {
		return nil, nil, fmt.Errorf("writing known_hosts: %w", errors.Join(err, cerr))
	}
	check, err := knownhosts.New(f.Name())
	if err != nil {
		return nil, nil, refuse(ErrInvalid, "", "known_hosts is malformed")
	}
	algorithms, err := algorithmsOf(check, addr)
	return check, algorithms, err
}

// noKey is a key that no server has, to be told which are expected.
type noKey struct{}

func (noKey) Type() string                        { return "none" }
func (noKey) Marshal() []byte                     { return []byte("none") }
func (noKey) Verify([]byte, *ssh.Signature) error { return errors.New("not a key") }

// algorithmsOf are the algorithms of the keys that are known of a server.
func algorithmsOf(check ssh.HostKeyCallback, addr string) ([]string, error) {
	var expected *knownhosts.KeyError
	if err := check(addr, &net.TCPAddr{IP: net.IPv4zero}, noKey{}); !errors.As(err, &expected) || len(expected.Want) == 0 {
		return nil, refuse(ErrDenied, "", "known_hosts has no key of %s", knownhosts.Normalize(addr))
	}
	var all []string
	for _, k := range expected.Want {
		if t := k.Key.Type(); t == ssh.KeyAlgoRSA {
			all = append(all, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
		} else {
			all = append(all, t)
		}
	}
	return all, nil
}

// sshError explains why a connection was not made. After the server has proven who it is, only our key is left to be
// refused.
func sshError(ctx context.Context, err error, proven bool) error {
	var (
		wrong   *knownhosts.KeyError
		revoked *knownhosts.RevokedError
		apart   *ssh.AlgorithmNegotiationError
		network net.Error
	)
	switch {
	case errors.As(err, &wrong):
		return refuse(ErrDenied, "", "server's key is not the one in known_hosts: somebody may be in between, or it has a new one")
	case errors.As(err, &revoked):
		return refuse(ErrDenied, "", "server's key is marked as revoked in known_hosts")
	case errors.As(err, &apart):
		return refuse(ErrDenied, "", "server has none of the keys in known_hosts, or only old algorithms")
	case proven && context.Cause(ctx) == nil && !errors.As(err, &network):
		return refuse(ErrDenied, "", "server does not accept the SSH key")
	}
	return transportError(ctx, err, "ends the ssh handshake")
}

// limited keeps the beginning of what is written.
type limited struct {
	most int
	data []byte
}

// Write never fails, so that the writer goes on.
func (l *limited) Write(p []byte) (int, error) {
	l.data = append(l.data, p[:min(len(p), l.most-len(l.data))]...)
	return len(p), nil
}

func (l *limited) String() string { return string(l.data) }
