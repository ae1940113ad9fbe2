package local

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// validity of every certificate: a state folder outlives none.
const validity = 10 * 365 * 24 * time.Hour

// pki has the keys of one API server. They stay in the state folder, so that kubeconfigs and service account tokens
// survive a restart; only the serving certificate is made anew. Everything is ECDSA P-256.
type pki struct {
	dir   string
	ca    *x509.Certificate
	caKey crypto.Signer
	caPEM []byte
	token string // of the administrator
}

// The files of the folder.
const (
	fileCA         = "ca.crt"
	fileCAKey      = "ca.key"
	fileServing    = "apiserver.crt"
	fileServingKey = "apiserver.key"
	fileAccountKey = "serviceaccount.key"
	fileTokens     = "tokens.csv"
	fileToken      = "token"
)

func (p *pki) path(name string) string { return filepath.Join(p.dir, name) }

// openPKI makes what the folder does not have yet.
func openPKI(dir string) (*pki, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making keys: %w", err)
	}
	p := &pki{dir: dir}
	for _, step := range []func() error{p.openCA, p.openAccountKey, p.openToken, p.writeServing} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("making keys: %w", err)
		}
	}
	return p, nil
}

// openCA reads or makes the certificate authority for servers and for users.
func (p *pki) openCA() error {
	key, _, err := p.openKey(fileCAKey)
	if err != nil {
		return err
	}
	p.caKey = key
	p.caPEM, err = os.ReadFile(p.path(fileCA))
	if errors.Is(err, fs.ErrNotExist) {
		template := &x509.Certificate{
			Subject:  pkix.Name{CommonName: "mothership-local"},
			KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, IsCA: true, BasicConstraintsValid: true,
		}
		if p.caPEM, err = sign(template, template, key.Public(), key); err == nil {
			err = os.WriteFile(p.path(fileCA), p.caPEM, 0o600)
		}
	}
	if err != nil {
		return err
	}
	block, _ := pem.Decode(p.caPEM)
	if block == nil {
		return fmt.Errorf("reading %s: no PEM block", fileCA)
	}
	p.ca, err = x509.ParseCertificate(block.Bytes)
	return err
}

// openAccountKey reads or makes the key that signs service account tokens.
func (p *pki) openAccountKey() error {
	_, _, err := p.openKey(fileAccountKey)
	return err
}

// openToken reads or makes the administrator's token, and writes the table in which kube-apiserver looks it up.
func (p *pki) openToken() error {
	data, err := os.ReadFile(p.path(fileToken))
	if errors.Is(err, fs.ErrNotExist) {
		data = []byte(rand.Text())
		err = os.WriteFile(p.path(fileToken), data, 0o600)
	}
	if err != nil {
		return err
	}
	p.token = string(data)
	return os.WriteFile(p.path(fileTokens), fmt.Appendf(nil, "%s,mothership-admin,mothership-admin,system:masters\n", data), 0o600)
}

// writeServing makes the serving certificate.
func (p *pki) writeServing() error {
	key, keyPEM, err := newKey()
	if err != nil {
		return err
	}
	cert, err := sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}, p.ca, key.Public(), p.caKey)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(p.path(fileServing), cert, 0o600), os.WriteFile(p.path(fileServingKey), keyPEM, 0o600))
}

// userCertificate makes a client certificate for a user in groups, and its key.
func (p *pki) userCertificate(name string, groups []string) (certPEM, keyPEM []byte, err error) {
	key, keyPEM, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	certPEM, err = sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: name, Organization: groups},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, p.ca, key.Public(), p.caKey)
	return certPEM, keyPEM, err
}

// openKey reads or makes a private key.
func (p *pki) openKey(name string) (crypto.Signer, []byte, error) {
	data, err := os.ReadFile(p.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		key, data, err := newKey()
		if err != nil {
			return nil, nil, err
		}
		return key, data, os.WriteFile(p.path(name), data, 0o600)
	}
	if err != nil {
		return nil, nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, nil, fmt.Errorf("reading %s: no PEM block", name)
	}
	key, err := x509.ParseECPrivateKey(block.Bytes)
	return key, data, err
}

// newKey makes a private key and its PEM form.
func newKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	return key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), err
}

// sign completes the template with a serial number and its validity, and returns the certificate as PEM.
func sign(template, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	template.NotBefore = time.Now().Add(-time.Hour) // clocks differ
	template.NotAfter = template.NotBefore.Add(validity)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
