package source

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// cosigner signs artifacts as cosign does.
type cosigner struct {
	key    crypto.Signer
	hash   crypto.Hash
	public string
}

func newCosigner(t testing.TB, key crypto.Signer, hash crypto.Hash) cosigner {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return cosigner{key, hash, string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))}
}

// cosigners are keys of all kinds.
func cosigners(t testing.TB) map[string]cosigner {
	t.Helper()
	p256, err256 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	p384, err384 := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	long, errRSA := rsa.GenerateKey(rand.Reader, 2048)
	_, ed, errEd := ed25519.GenerateKey(rand.Reader)
	for _, err := range []error{err256, err384, errRSA, errEd} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return map[string]cosigner{
		"P256": newCosigner(t, p256, crypto.SHA256), "P384": newCosigner(t, p384, crypto.SHA384),
		"RSA": newCosigner(t, long, crypto.SHA256), "Ed25519": newCosigner(t, ed, 0),
	}
}

// sign signs a message.
func (c cosigner) sign(t testing.TB, message []byte) []byte {
	t.Helper()
	digest := message
	if c.hash != 0 {
		h := c.hash.New()
		h.Write(message)
		digest = h.Sum(nil)
	}
	signature, err := c.key.Sign(rand.Reader, digest, c.hash)
	if err != nil {
		t.Fatal(err)
	}
	return signature
}

// simple is a layer with a signature by simple signing.
func (c cosigner) simple(t testing.TB, digest string) (layer, map[string]string) {
	t.Helper()
	payload := fmt.Appendf(nil, `{"critical":{"identity":{"docker-reference":"registry.example.com/charts/demo"},`+
		`"image":{"docker-manifest-digest":%q},"type":"cosign container image signature"},"optional":null}`, digest)
	return layer{simpleSigning, payload}, map[string]string{simpleSignature: base64.StdEncoding.EncodeToString(c.sign(t, payload))}
}

// bundle is a layer with a signature in a bundle.
func (c cosigner) bundle(t testing.TB, digest, predicate string) layer {
	t.Helper()
	statement := fmt.Appendf(nil, `{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":%q}}],"predicateType":%q,"predicate":{}}`,
		strings.TrimPrefix(digest, "sha256:"), predicate)
	signature := c.sign(t, fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(statementType), statementType, len(statement), statement))
	return layer{sigstoreBundle + ".v0.3+json", fmt.Appendf(nil,
		`{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","verificationMaterial":{"publicKey":{"hint":"x"}},`+
			`"dsseEnvelope":{"payload":%q,"payloadType":%q,"signatures":[{"sig":%q}]}}`,
		base64.StdEncoding.EncodeToString(statement), statementType, base64.StdEncoding.EncodeToString(signature))}
}

// attach puts a manifest of signatures into a registry: under a tag or, without one, as a referrer of what is signed.
func attach(t testing.TB, h http.Handler, tag, digest string, size int64, l layer, annotations map[string]string) {
	t.Helper()
	config := layer{"application/vnd.oci.empty.v1+json", []byte("{}")}
	m := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest, Config: descriptor(config)}
	m.SchemaVersion = 2
	d := descriptor(l)
	d.Annotations = annotations
	m.Layers = []ocispec.Descriptor{d}
	if tag == "" {
		m.ArtifactType = l.mediaType
		if l.mediaType == simpleSigning {
			m.ArtifactType, m.Config.MediaType = cosignArtifact, cosignArtifact
		} else {
			m.Config.MediaType = l.mediaType
		}
		subject := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Size: size}
		if err := json.Unmarshal([]byte(`"`+digest+`"`), &subject.Digest); err != nil {
			t.Fatal(err)
		}
		m.Subject = &subject
	}
	for _, b := range []layer{l, config} {
		send(t, h, http.MethodPost, "/v2/charts/demo/blobs/uploads/?digest="+BytesDigest(b.data), "application/octet-stream", b.data)
	}
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if tag == "" {
		tag = BytesDigest(data)
	}
	pushManifest(t, h, "charts/demo/manifests/"+tag, m.MediaType, data)
}

// newReferrers is a registry that knows who refers to whom (OCI 1.1).
func newReferrers() http.Handler {
	return registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(true))
}

func sigTag(digest string) string { return strings.Replace(digest, ":", "-", 1) + ".sig" }

func (r Ref) cosignedBy(key string) Ref {
	r.Verify = &v1beta2.SourceVerification{CosignKey: key}
	return r
}

func TestCosign(t *testing.T) {
	t.Parallel()
	all := cosigners(t)
	mine, theirs := all["P256"], all["P384"]
	other := BytesDigest([]byte("other"))
	type attached func(t *testing.T, reg http.Handler, digest string)
	byTag := func(c cosigner, of string) attached {
		return func(t *testing.T, reg http.Handler, digest string) {
			t.Helper()
			if of == "" {
				of = digest
			}
			l, a := c.simple(t, of)
			attach(t, reg, sigTag(digest), "", 0, l, a)
		}
	}
	byBundle := func(c cosigner, of, predicate string) attached {
		return func(t *testing.T, reg http.Handler, digest string) {
			t.Helper()
			if of == "" {
				of = digest
			}
			attach(t, reg, "", digest, 1, c.bundle(t, of, predicate), nil)
		}
	}
	raw := func(l layer, annotation string) attached {
		return func(t *testing.T, reg http.Handler, digest string) {
			t.Helper()
			attach(t, reg, sigTag(digest), "", 0, l, map[string]string{simpleSignature: annotation})
		}
	}
	tests := map[string]struct {
		attach attached
		key    string
		err    error
		says   string
	}{
		"Unsigned":       {key: mine.public, err: ErrSignature, says: "artifact is not signed: registry has no cosign signature of sha256:"},
		"OtherKey":       {attach: byTag(theirs, ""), key: mine.public, err: ErrSignature, says: "not signed by verify.cosignKey: none of its 1 signatures is by that key and of sha256:"},
		"OtherArtifact":  {attach: byTag(mine, other), key: mine.public, err: ErrSignature, says: "none of its 1 signatures"},
		"Bundle":         {attach: byBundle(mine, "", signaturePredicate), key: mine.public},
		"BundleOther":    {attach: byBundle(mine, other, signaturePredicate), key: mine.public, err: ErrSignature, says: "none of its 1 signatures"},
		"BundleOtherKey": {attach: byBundle(theirs, "", signaturePredicate), key: mine.public, err: ErrSignature, says: "none of its 1 signatures"},
		"Attestation":    {attach: byBundle(mine, "", "https://slsa.dev/provenance/v1"), key: mine.public, err: ErrSignature, says: "none of its 1 signatures"},
		"Referrer": {attach: func(t *testing.T, reg http.Handler, digest string) {
			t.Helper()
			l, a := mine.simple(t, digest)
			attach(t, reg, "", digest, 1, l, a)
		}, key: mine.public},
		"NotASignature": {attach: raw(layer{simpleSigning, []byte("{}")}, "%%%"), key: mine.public, err: ErrSignature, says: "none of its 1 signatures"},
		"Huge":          {attach: raw(layer{simpleSigning, bytes.Repeat([]byte("x"), maxSignature+1)}, ""), key: mine.public, err: ErrTooLarge, says: "signature has 1048577 bytes"},
		"NotAKey":       {attach: byTag(mine, ""), key: "mine", err: ErrInvalid, says: "verify.cosignKey is no PEM public key"},
	}
	for name, c := range all {
		tests["ByTag"+name] = tests["Unsigned"]
		tc := tests["ByTag"+name]
		tc.attach, tc.key, tc.err, tc.says = byTag(c, ""), c.public, nil, ""
		tests["ByTag"+name] = tc
	}
	for name, tc := range tests {
		for kind, reg := range map[string]http.Handler{"Referrers": newReferrers(), "NoReferrers": newRegistry()} {
			if kind == "NoReferrers" && (strings.HasPrefix(name, "Bundle") || name == "Referrer" || name == "Attestation") {
				continue
			}
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				digest := push(t, reg, "charts/demo", "1", chartLayer(t))
				if tc.attach != nil {
					tc.attach(t, reg, digest)
				}
				m, _ := hurried(Options{})
				tree, err := m.Fetch(t.Context(), ociRef(serveTLS(t, reg), Chart, "1", "").cosignedBy(tc.key))
				if tc.err != nil {
					wantError(t, err, tc.err, tc.says)
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				wantPaths(t, tree, "demo/Chart.yaml")
			})
		}
	}
}

// A tag that moves to what nobody has signed is an error, not a new version.
func TestCosignTagMoves(t *testing.T) {
	t.Parallel()
	reg, mine := newReferrers(), cosigners(t)["P256"]
	l, a := mine.simple(t, push(t, reg, "charts/demo", "1", chartLayer(t)))
	attach(t, reg, sigTag(push(t, reg, "charts/demo", "1", chartLayer(t))), "", 0, l, a)
	srv := serveTLS(t, reg)
	m, _ := hurried(Options{CacheDir: t.TempDir()})
	fleet := Polled(m, 1<<20, 1)
	ref := ociRef(srv, Chart, "1", "").cosignedBy(mine.public)
	if _, err := fleet.Fetch(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	push(t, reg, "charts/demo", "1", layer{helmLayer, packFiles(t, "demo/Chart.yaml", "name: evil\n")})
	_, err := fleet.Fetch(t.Context(), ref)
	wantError(t, err, ErrSignature, "artifact is not signed")
}

func FuzzSignature(f *testing.F) {
	mine := cosigners(f)["P256"]
	digest := BytesDigest([]byte("x"))
	key, err := readPublicKey(mine.public)
	if err != nil {
		f.Fatal(err)
	}
	l, _ := mine.simple(f, digest)
	f.Add(l.data)
	f.Add(mine.bundle(f, BytesDigest([]byte("y")), signaturePredicate).data)
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &cosigned{key: key, digest: digest}
		if c.bundle(data) || c.simple(data, base64.StdEncoding.EncodeToString(data)) {
			t.Error("what nobody signed is signed")
		}
	})
}

// An index is followed where it is clear what is meant.
func TestOCIIndex(t *testing.T) {
	t.Parallel()
	reg := newRegistry()
	chart := push(t, reg, "charts/demo", "chart", chartLayer(t))
	size := manifestSize(t, reg, chart)
	other := push(t, reg, "charts/demo", "other", layer{helmLayer, packFiles(t, "demo/Chart.yaml", "name: other\n")})
	one := fmt.Sprintf(`{"mediaType":%q,"digest":%q,"size":%d`, ocispec.MediaTypeImageManifest, chart, size)
	two := fmt.Sprintf(`{"mediaType":%q,"digest":%q,"size":%d`, ocispec.MediaTypeImageManifest, other, manifestSize(t, reg, other))
	amd, arm := `,"platform":{"os":"linux","architecture":"amd64"}}`, `,"platform":{"os":"linux","architecture":"arm64"}}`
	stated := `,"platform":{"os":"unknown","architecture":"unknown"},"annotations":{"vnd.docker.reference.type":"attestation-manifest"}}`
	mine := cosigners(t)["P256"]
	srv := serveTLS(t, reg)
	m, _ := hurried(Options{})
	for name, tc := range map[string]struct {
		manifests string
		err       error
		says      string
	}{
		"Only":         {manifests: one + "}"},
		"OnlyPlatform": {manifests: one + amd},
		"NoPlatform":   {manifests: two + amd + "," + one + "}"},
		"Attested":     {manifests: one + amd + "," + two + stated},
		"Platforms": {manifests: one + amd + "," + two + arm, err: ErrUnsupported,
			says: "this is an index of 2 manifests, of which not exactly one is of no platform: name one by its digest, such as " + chart + ` ("linux/amd64"), ` + other},
		"TwoWithout": {manifests: one + "}," + two + "}", err: ErrUnsupported, says: "index of 2 manifests"},
		"Empty":      {manifests: "", err: ErrUnsupported, says: "index of 0 manifests"},
		"WrongSize":  {manifests: strings.Replace(one, fmt.Sprint(size), "7", 1) + "}", err: ErrDigest, says: "registry sends another manifest than its index promised"},
		"Huge":       {manifests: strings.Replace(one, fmt.Sprint(size), "99999999", 1) + "}", err: ErrTooLarge, says: "manifest is larger than"},
		"InAnother":  {manifests: fmt.Sprintf(`{"mediaType":%q,"digest":%q,"size":%d}`, ocispec.MediaTypeImageIndex, chart, size), err: ErrUnsupported, says: "an index in an index"},
	} {
		list := fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"manifests":[%s]}`, ocispec.MediaTypeImageIndex, tc.manifests)
		digest := pushManifest(t, reg, "charts/demo/manifests/"+strings.ToLower(name), ocispec.MediaTypeImageIndex, []byte(list))
		for _, ref := range []Ref{ociRef(srv, Chart, strings.ToLower(name), ""), ociRef(srv, Chart, "", digest)} {
			tree, err := m.Fetch(t.Context(), ref)
			if tc.err != nil {
				wantError(t, err, tc.err, tc.says)
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if !strings.HasSuffix(tree.Revision, digest) || !strings.Contains(string(tree.Files[0].Data), "demo") {
				t.Errorf("%s: %+v", name, tree)
			}
			l, a := mine.simple(t, digest)
			attach(t, reg, sigTag(digest), "", 0, l, a)
			if _, err := m.Fetch(t.Context(), ref.cosignedBy(mine.public)); err != nil {
				t.Errorf("%s: a signed index: %v", name, err)
			}
		}
	}
}
