package sim

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// domain is what the server names of clusters end in.
const domain = ".sim.local"

// keys are what the simulator is known by.
type keys struct {
	ca     []byte // PEM
	cert   tls.Certificate
	other  tls.Certificate // of another authority
	secret []byte          // tokens follow from it
}

// newKeys makes keys, or reads those that a folder has. Without a folder, nothing is kept.
func newKeys(dir string) (*keys, error) {
	bundle, err := readBundle(dir)
	if errors.Is(err, os.ErrNotExist) {
		if bundle, err = newBundle(); err == nil && dir != "" {
			err = bundle.write(dir)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("preparing the simulator's keys: %w", err)
	}
	stranger, err := newBundle()
	if err != nil {
		return nil, err
	}
	out := &keys{ca: bundle.ca, secret: bundle.secret}
	if out.cert, err = tls.X509KeyPair(bundle.cert, bundle.key); err != nil {
		return nil, fmt.Errorf("preparing the simulator's certificate: %w", err)
	}
	if out.other, err = tls.X509KeyPair(stranger.cert, stranger.key); err != nil {
		return nil, fmt.Errorf("preparing the simulator's certificate: %w", err)
	}
	return out, nil
}

// token is the token of a cluster.
func (k *keys) token(name string) string {
	h := hmac.New(sha256.New, k.secret)
	_, _ = h.Write([]byte(name))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// bundle is what is kept of keys: PEM, and the secret of the tokens.
type bundle struct{ ca, cert, key, secret []byte }

func (b *bundle) files() map[string]*[]byte {
	return map[string]*[]byte{"ca.crt": &b.ca, "tls.crt": &b.cert, "tls.key": &b.key, "secret": &b.secret}
}

func readBundle(dir string) (*bundle, error) {
	if dir == "" {
		return nil, os.ErrNotExist
	}
	b := &bundle{}
	for name, to := range b.files() {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		*to = data
	}
	return b, nil
}

func (b *bundle) write(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name, data := range b.files() {
		if err := os.WriteFile(filepath.Join(dir, name), *data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// validity of certificates: a simulator's fleet outlives a night, not a decade.
const validity = 365 * 24 * time.Hour

func newBundle() (*bundle, error) {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	ca := template("mothership-sim CA")
	ca.IsCA, ca.BasicConstraintsValid, ca.KeyUsage = true, true, x509.KeyUsageCertSign|x509.KeyUsageDigitalSignature
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	if err != nil {
		return nil, err
	}
	leaf := template("mothership-sim")
	leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	leaf.DNSNames, leaf.IPAddresses = []string{"*" + domain, "localhost"}, []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	der, err := x509.CreateCertificate(rand.Reader, leaf, ca, &key.PublicKey, caKey)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	block := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	return &bundle{
		ca: block("CERTIFICATE", caDER), cert: block("CERTIFICATE", der), key: block("PRIVATE KEY", keyDER), secret: []byte(rand.Text()),
	}, nil
}

func template(name string) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		serial = big.NewInt(time.Now().UnixNano()) // it cannot: rand.Reader never fails
	}
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(validity), KeyUsage: x509.KeyUsageDigitalSignature,
	}
}
