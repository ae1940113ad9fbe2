package source

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	_ "crypto/sha512" // of longer keys
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
)

// What cosign calls its signatures: simple signing, in the manifest that a tag names or that refers to the signed one, and bundles
// (since cosign 3), in manifests that refer to it.
const (
	simpleSigning      = "application/vnd.dev.cosign.simplesigning.v1+json"
	simpleSignature    = "dev.cosignproject.cosign/signature"
	simpleType         = "cosign container image signature"
	sigstoreBundle     = "application/vnd.dev.sigstore.bundle"
	cosignArtifact     = "application/vnd.dev.cosign.artifact.sig.v1+json"
	statementType      = "application/vnd.in-toto+json"
	signaturePredicate = "https://sigstore.dev/cosign/sign/v1"
)

// maxSignatures bounds how many signatures of one artifact are looked at, and maxSignature each in bytes: a registry may have
// others' too.
const (
	maxSignatures = 32
	maxSignature  = 1 << 20
)

// cosigned looks for a signature of a manifest.
type cosigned struct {
	repo *remote.Repository
	key  crypto.PublicKey
	// digest of what must be signed.
	digest string
	// looked counts the signatures that were looked at.
	looked int
}

// checkCosign says whether a manifest was signed by the key of a reference that asks for it.
func checkCosign(ctx context.Context, repo *remote.Repository, ref Ref, manifest ocispec.Descriptor) error {
	if ref.cosignKey() == "" {
		return nil
	}
	key, err := readPublicKey(ref.cosignKey())
	if err != nil {
		return err
	}
	c := &cosigned{repo: repo, key: key, digest: manifest.Digest.String()}
	for _, look := range []func(context.Context, ocispec.Descriptor) (bool, error){c.byTag, c.byReferrers} {
		found, err := look(ctx, manifest)
		if found || err != nil {
			return err
		}
	}
	if c.looked == 0 {
		return refuse(ErrSignature, "", "artifact is not signed: registry has no cosign signature of %s", c.digest)
	}
	return refuse(ErrSignature, "", "artifact is not signed by verify.cosignKey: none of its %d signatures is by that key and of %s", c.looked, c.digest)
}

// readPublicKey reads a key as cosign writes it.
func readPublicKey(text string) (crypto.PublicKey, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, refuse(ErrInvalid, "", "verify.cosignKey is no PEM public key")
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, refuse(ErrInvalid, "", "verify.cosignKey is no PEM public key of a kind that is known")
	}
	switch key.(type) {
	case *ecdsa.PublicKey, *rsa.PublicKey, ed25519.PublicKey:
		return key, nil
	}
	return nil, refuse(ErrUnsupported, "", "verify.cosignKey is of a kind that signs nothing: use ECDSA, RSA or Ed25519")
}

// byTag looks at the signatures in the manifest that is named after the digest.
func (c *cosigned) byTag(ctx context.Context, manifest ocispec.Descriptor) (bool, error) {
	tag := strings.Replace(manifest.Digest.String(), ":", "-", 1) + ".sig"
	_, data, err := readReference(ctx, c.repo, tag)
	if errors.Is(err, errdef.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return c.inManifest(ctx, data)
}

// byReferrers looks at the manifests of signatures that say that they refer to the one that must be signed.
func (c *cosigned) byReferrers(ctx context.Context, manifest ocispec.Descriptor) (bool, error) {
	var signatures []ocispec.Descriptor
	err := c.repo.Referrers(ctx, manifest, "", func(page []ocispec.Descriptor) error {
		for _, d := range page {
			if strings.HasPrefix(d.ArtifactType, sigstoreBundle) || d.ArtifactType == cosignArtifact {
				signatures = append(signatures, d)
			}
		}
		if len(signatures) > maxSignatures {
			return tooManySignatures()
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	for _, d := range signatures {
		data, err := c.read(ctx, d)
		if err != nil {
			return false, err
		}
		if found, err := c.inManifest(ctx, data); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// read reads what a descriptor promises.
func (c *cosigned) read(ctx context.Context, d ocispec.Descriptor) ([]byte, error) {
	switch {
	case checkDigest(d.Digest.String()) != nil || d.Size < 0:
		return nil, refuse(ErrInvalid, "", "manifest of signatures is malformed")
	case d.Size > maxSignature:
		return nil, refuse(ErrTooLarge, "", "signature has %d bytes, the limit is %d", d.Size, maxSignature)
	}
	return content.FetchAll(ctx, c.repo, d)
}

// inManifest looks at the signatures that a manifest lists.
func (c *cosigned) inManifest(ctx context.Context, data []byte) (bool, error) {
	var m ocispec.Manifest
	if json.Unmarshal(data, &m) != nil {
		return false, refuse(ErrInvalid, "", "manifest of signatures is malformed")
	}
	for _, l := range m.Layers {
		var judge func([]byte) bool
		switch {
		case l.MediaType == simpleSigning:
			judge = func(payload []byte) bool { return c.simple(payload, l.Annotations[simpleSignature]) }
		case strings.HasPrefix(l.MediaType, sigstoreBundle):
			judge = c.bundle
		default:
			continue
		}
		if c.looked++; c.looked > maxSignatures {
			return false, tooManySignatures()
		}
		blob, err := c.read(ctx, l)
		if err != nil {
			return false, err
		}
		if judge(blob) {
			return true, nil
		}
	}
	return false, nil
}

func tooManySignatures() error {
	return refuse(ErrTooLarge, "", "artifact has more than %d signatures", maxSignatures)
}

// simple judges a signature by simple signing.
func (c *cosigned) simple(payload []byte, signature string) bool {
	var p struct {
		Critical struct {
			Type  string `json:"type"`
			Image struct {
				Digest string `json:"docker-manifest-digest"`
			} `json:"image"`
		} `json:"critical"`
	}
	raw, err := base64.StdEncoding.DecodeString(signature)
	return err == nil && verifySignature(c.key, payload, raw) && json.Unmarshal(payload, &p) == nil &&
		p.Critical.Type == simpleType && p.Critical.Image.Digest == c.digest
}

// bundle judges a bundle: an envelope (DSSE) around a statement (in-toto) that the artifact is signed. A statement about anything
// else of the artifact, such as what was found in it, is none.
func (c *cosigned) bundle(data []byte) bool {
	var b struct {
		Envelope struct {
			Type       string `json:"payloadType"`
			Payload    []byte `json:"payload"`
			Signatures []struct {
				Sig []byte `json:"sig"`
			} `json:"signatures"`
		} `json:"dsseEnvelope"`
	}
	if json.Unmarshal(data, &b) != nil || b.Envelope.Type != statementType || len(b.Envelope.Signatures) != 1 {
		return false
	}
	e := b.Envelope
	sent := fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(e.Type), e.Type, len(e.Payload), e.Payload)
	return verifySignature(c.key, sent, e.Signatures[0].Sig) && c.stated(e.Payload)
}

// stated says whether a statement is that the artifact is signed.
func (c *cosigned) stated(payload []byte) bool {
	var s struct {
		Predicate string `json:"predicateType"`
		Subject   []struct {
			Digest map[string]string `json:"digest"`
		} `json:"subject"`
	}
	if json.Unmarshal(payload, &s) != nil || s.Predicate != signaturePredicate {
		return false
	}
	for _, subject := range s.Subject {
		if "sha256:"+subject.Digest["sha256"] == c.digest {
			return true
		}
	}
	return false
}

// verifySignature says whether a signature of a message is by a key. With longer keys, longer hashes are in use too.
func verifySignature(key crypto.PublicKey, message, signature []byte) bool {
	switch key := key.(type) {
	case ed25519.PublicKey:
		return ed25519.Verify(key, message, signature)
	case *rsa.PublicKey:
		sum := sha256.Sum256(message)
		return rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], signature) == nil
	case *ecdsa.PublicKey:
		for _, h := range []crypto.Hash{crypto.SHA256, crypto.SHA384, crypto.SHA512} {
			sum := h.New()
			_, _ = sum.Write(message) // hashes do not fail
			if ecdsa.VerifyASN1(key, sum.Sum(nil), signature) {
				return true
			}
		}
	}
	return false
}
