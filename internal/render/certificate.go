package render

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"strings"
	"text/template"
	"time"
)

// certificate is what sprig's certificate functions return.
type certificate struct {
	Cert string
	Key  string
}

// certificateFunctions are sprig's, with keys and serial numbers derived. An RSA key is written as sprig writes it, so
// a chart finds the types it expects.
func (s *session) certificateFunctions() template.FuncMap {
	return template.FuncMap{
		"genPrivateKey": s.genPrivateKey,
		"genCA": func(cn string, days int) (certificate, error) {
			return s.issue("genCA", certRequest{cn: cn, days: days, ca: true})
		},
		"genCAWithKey": func(cn string, days int, key string) (certificate, error) {
			return s.issue("genCAWithKey", certRequest{cn: cn, days: days, ca: true, key: key})
		},
		"genSelfSignedCert": func(cn string, ips, dns []any, days int) (certificate, error) {
			return s.issue("genSelfSignedCert", certRequest{cn: cn, ips: ips, dns: dns, days: days})
		},
		"genSelfSignedCertWithKey": func(cn string, ips, dns []any, days int, key string) (certificate, error) {
			return s.issue("genSelfSignedCertWithKey", certRequest{cn: cn, ips: ips, dns: dns, days: days, key: key})
		},
		"genSignedCert": func(cn string, ips, dns []any, days int, ca certificate) (certificate, error) {
			return s.issue("genSignedCert", certRequest{cn: cn, ips: ips, dns: dns, days: days, signer: &ca})
		},
		"genSignedCertWithKey": func(cn string, ips, dns []any, days int, ca certificate, key string) (certificate, error) {
			return s.issue("genSignedCertWithKey", certRequest{cn: cn, ips: ips, dns: dns, days: days, signer: &ca, key: key})
		},
	}
}

func (s *session) genPrivateKey(kind string) (string, error) {
	r := s.draw("genPrivateKey")
	var key crypto.Signer
	var err error
	switch kind {
	case "", "rsa":
		key, err = rsaKey(r, 4096)
	case "ecdsa":
		key, err = ecdsaKey(r)
	case "ed25519":
		key = ed25519.NewKeyFromSeed(r.bytes(ed25519.SeedSize))
	default:
		return "", fmt.Errorf("private keys of type %q are not made: use rsa, ecdsa or ed25519", kind)
	}
	if err != nil {
		return "", err
	}
	return keyPEM(key)
}

// ecdsaKey derives a P-256 key: the first candidate that is a valid scalar, which nearly all are.
func ecdsaKey(r stream) (*ecdsa.PrivateKey, error) {
	for range 100 {
		if key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), r.bytes(32)); err == nil {
			return key, nil
		}
	}
	return nil, errors.New("no ECDSA key found")
}

// rsaKey derives an RSA key: Go's own generator takes no source of randomness.
func rsaKey(r stream, bits int) (*rsa.PrivateKey, error) {
	e := big.NewInt(65537)
	for range 100 {
		p, q := prime(r, bits/2), prime(r, bits/2)
		if p == nil || q == nil || p.Cmp(q) == 0 {
			continue
		}
		one := big.NewInt(1)
		phi := new(big.Int).Mul(new(big.Int).Sub(p, one), new(big.Int).Sub(q, one))
		d := new(big.Int).ModInverse(e, phi)
		if d == nil {
			continue
		}
		key := &rsa.PrivateKey{
			PublicKey: rsa.PublicKey{N: new(big.Int).Mul(p, q), E: int(e.Int64())},
			D:         d,
			Primes:    []*big.Int{p, q},
		}
		key.Precompute()
		if err := key.Validate(); err == nil {
			return key, nil
		}
	}
	return nil, errors.New("no RSA key found")
}

// prime finds a prime of exactly that many bits with the two highest set, so that the product has twice as many.
func prime(r stream, bits int) *big.Int {
	for range 100 * bits {
		b := r.bytes(bits / 8)
		b[0] |= 0xc0
		b[len(b)-1] |= 1
		if p := new(big.Int).SetBytes(b); p.ProbablyPrime(20) {
			return p
		}
	}
	return nil
}

// certRequest are the arguments of the certificate functions.
type certRequest struct {
	cn       string
	ips, dns []any
	days     int
	ca       bool
	key      string       // PEM; empty: a new RSA key
	signer   *certificate // nil: self-signed
}

func (s *session) issue(function string, c certRequest) (certificate, error) {
	r := s.draw(function)
	base, err := s.template509(r, c)
	if err != nil {
		return certificate{}, err
	}
	var key crypto.Signer
	if c.key != "" {
		key, err = parseKey(c.key)
	} else {
		key, err = rsaKey(r, 2048)
	}
	if err != nil {
		return certificate{}, err
	}
	parent, signer := base, key
	if c.signer != nil {
		if parent, signer, err = parseSigner(*c.signer); err != nil {
			return certificate{}, err
		}
	}
	// With RSA (PKCS #1 v1.5), Ed25519, and ECDSA without a random source (RFC 6979), signing is deterministic.
	der, err := x509.CreateCertificate(nil, base, parent, key.Public(), signer)
	if err != nil {
		return certificate{}, fmt.Errorf("creating a certificate: %w", err)
	}
	out, err := keyPEM(key)
	return certificate{Cert: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), Key: out}, err
}

func (s *session) template509(r stream, c certRequest) (*x509.Certificate, error) {
	ips, err := netIPs(c.ips)
	if err != nil {
		return nil, err
	}
	dns, err := stringsOf(c.dns)
	if err != nil {
		return nil, err
	}
	notBefore, notAfter := validity(s.now(), c.days)
	t := &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(r.bytes(16)),
		Subject:      pkix.Name{CommonName: c.cn},
		IPAddresses:  ips, DNSNames: dns,
		NotBefore: notBefore, NotAfter: notAfter,
		KeyUsage:              x509.KeyUsageKeyEncipherment | x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
	if c.ca {
		t.KeyUsage |= x509.KeyUsageCertSign
		t.IsCA = true
	}
	return t, nil
}

// validity is the time during which a certificate is valid. It is the only place where the clock enters a rendering:
// time is cut into halves of the validity and the certificate begins with the current half, so that it is valid for at
// least half of the days asked for, and renderings within one half are equal. The key never changes, so a certificate
// of one half verifies what was signed in another.
func validity(now time.Time, days int) (notBefore, notAfter time.Time) {
	length := time.Duration(days) * 24 * time.Hour
	half := length / 2
	if half < time.Hour {
		half = time.Hour
	}
	notBefore = time.Unix(now.Unix()-now.Unix()%int64(half/time.Second), 0).UTC()
	return notBefore, notBefore.Add(length)
}

func netIPs(values []any) ([]net.IP, error) {
	texts, err := stringsOf(values)
	if err != nil {
		return nil, err
	}
	ips := make([]net.IP, len(texts))
	for i, t := range texts {
		if ips[i] = net.ParseIP(t); ips[i] == nil {
			return nil, fmt.Errorf("%q is not an IP address", t)
		}
	}
	return ips, nil
}

func stringsOf(values []any) ([]string, error) {
	out := make([]string, len(values))
	for i, v := range values {
		s, ok := v.(string)
		if !ok {
			return nil, fmt.Errorf("a name of a certificate is not a string but %s", typeName(v))
		}
		out[i] = s
	}
	return out, nil
}

func parseSigner(c certificate) (*x509.Certificate, crypto.Signer, error) {
	block, _ := pem.Decode([]byte(c.Cert))
	if block == nil {
		return nil, nil, errors.New("the signing certificate is not PEM")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, nil, errors.New("the signing certificate cannot be read")
	}
	key, err := parseKey(c.Key)
	return cert, key, err
}

// parseKey reads a private key in PEM. Its errors say nothing of the content.
func parseKey(text string) (crypto.Signer, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("the private key is not PEM")
	}
	var key any
	var err error
	switch block.Type {
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	default:
		err = errors.ErrUnsupported
	}
	signer, ok := key.(crypto.Signer)
	if err != nil || !ok {
		return nil, errors.New("the private key cannot be read: RSA, EC and PKCS #8 are")
	}
	return signer, nil
}

// keyPEM writes a private key as sprig does: RSA and EC in their own forms, anything else as PKCS #8.
func keyPEM(key crypto.Signer) (string, error) {
	block := &pem.Block{Type: "PRIVATE KEY"}
	var err error
	switch k := key.(type) {
	case *rsa.PrivateKey:
		block.Type, block.Bytes = "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(k)
	case *ecdsa.PrivateKey:
		block.Type = "EC PRIVATE KEY"
		block.Bytes, err = x509.MarshalECPrivateKey(k)
	default:
		block.Bytes, err = x509.MarshalPKCS8PrivateKey(key)
	}
	return string(pem.EncodeToMemory(block)), err
}

// buildCustomCert checks a certificate and its key, both base64 of PEM, and returns them.
func buildCustomCert(cert, key string) (certificate, error) {
	certPEM, err := base64.StdEncoding.DecodeString(cert)
	if err != nil {
		return certificate{}, errors.New("the certificate is not base64")
	}
	privPEM, err := base64.StdEncoding.DecodeString(key)
	if err != nil {
		return certificate{}, errors.New("the private key is not base64")
	}
	block, _ := pem.Decode(certPEM)
	if block == nil {
		return certificate{}, errors.New("the certificate is not PEM")
	}
	if _, err := x509.ParseCertificate(block.Bytes); err != nil {
		return certificate{}, errors.New("the certificate cannot be read: " + strings.TrimPrefix(err.Error(), "x509: "))
	}
	if _, err := parseKey(string(privPEM)); err != nil {
		return certificate{}, err
	}
	return certificate{Cert: string(certPEM), Key: string(privPEM)}, nil
}
