package source

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"helm.sh/helm/v4/pkg/provenance"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// signer signs charts as helm package --sign does.
type signer struct {
	entity  *openpgp.Entity
	keyring string
}

func newSigner(t testing.TB) signer {
	t.Helper()
	e, err := openpgp.NewEntity("Robot", "", "robot@example.com", nil)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	w, err := armor.Encode(&text, openpgp.PublicKeyType, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Serialize(w); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return signer{e, text.String() + "\n"}
}

// sign makes the provenance file of an archive.
func (s signer) sign(t testing.TB, archive []byte, file, metadata string) []byte {
	t.Helper()
	signed, err := (&provenance.Signatory{Entity: s.entity}).ClearSign(archive, file, []byte(metadata))
	if err != nil {
		t.Fatal(err)
	}
	return []byte(signed)
}

// signedBy asks for a provenance.
func (r Ref) signedBy(keyring string) Ref {
	r.Verify = &v1beta2.SourceVerification{Keyring: keyring}
	return r
}

func TestHelmProvenance(t *testing.T) {
	t.Parallel()
	mine, theirs := newSigner(t), newSigner(t)
	meta := "name: demo\nversion: 1.0.0\n"
	repo := newHelmRepository(t, "1.0.0", "2.0.0")
	one, two := repo.files["/charts/demo-1.0.0.tgz"], repo.files["/charts/demo-2.0.0.tgz"]
	good := mine.sign(t, one, "demo-1.0.0.tgz", meta)
	tests := map[string]struct {
		file    []byte
		keyring string
		err     error
		says    string
	}{
		"Signed":       {file: good, keyring: mine.keyring},
		"OneOfTwoKeys": {file: good, keyring: theirs.keyring + mine.keyring},
		"NoFile":       {keyring: mine.keyring, err: ErrSignature, says: "chart is not signed: there is no provenance file https://127.0.0.1:"},
		"OtherKey":     {file: good, keyring: theirs.keyring, err: ErrSignature, says: "chart is not signed by a key of verify.keyring: openpgp: signature made by unknown entity"},
		"OtherArchive": {file: mine.sign(t, two, "demo-1.0.0.tgz", meta), keyring: mine.keyring, err: ErrSignature, says: "provenance file is of another archive than this one"},
		"OtherChart":   {file: mine.sign(t, one, "demo-1.0.0.tgz", "name: other\nversion: 1.0.0\n"), keyring: mine.keyring, err: ErrSignature, says: `signature is of chart "other" "1.0.0", not of "demo" "1.0.0"`},
		"Changed":      {file: bytes.Replace(good, []byte("name: demo"), []byte("name: evil"), 1), keyring: mine.keyring, err: ErrSignature, says: "not signed by a key of verify.keyring"},
		"NotSigned":    {file: []byte("hello"), keyring: mine.keyring, err: ErrSignature, says: "has no OpenPGP signature"},
		"Huge":         {file: bytes.Repeat([]byte("x"), maxProvenance-1+2), keyring: mine.keyring, err: ErrTooLarge, says: "more than the limit of"},
		"NotAKeyring":  {file: good, keyring: "mine", err: ErrInvalid, says: "verify.keyring has no public key"},
		"PrivateKey":   {file: good, keyring: strings.ReplaceAll(mine.keyring, "PUBLIC", "PRIVATE"), err: ErrInvalid, says: "no armored list of public keys"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := serveTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, ".prov") {
					if tc.file == nil {
						http.NotFound(w, r)
						return
					}
					_, _ = w.Write(tc.file)
					return
				}
				repo.ServeHTTP(w, r)
			}))
			dir := t.TempDir()
			m, _ := hurried(Options{CacheDir: dir})
			ref := helmRef(srv, "1.0.0").signedBy(tc.keyring)
			tree, err := m.Fetch(t.Context(), ref)
			if tc.err != nil {
				wantError(t, err, tc.err, tc.says)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			wantPaths(t, tree, "demo/Chart.yaml")
			if tree, err = m.Fetch(t.Context(), ref); err != nil || srv.asked("GET /charts/demo-1.0.0") != 2 {
				t.Errorf("from disk: %v, %v, %q", tree, err, srv.requests)
			}
			if _, err := m.Fetch(t.Context(), ref.signedBy(newSigner(t).keyring)); err == nil {
				t.Error("what is on disk is good for another key")
			}
		})
	}
}

// A chart by its address, and one in a registry, in which the provenance is a layer.
func TestProvenanceElsewhere(t *testing.T) {
	t.Parallel()
	mine, theirs := newSigner(t), newSigner(t)
	chart := chartLayer(t)
	file := mine.sign(t, chart.data, "demo-1.0.0.tgz", "name: demo\nversion: 1.0.0\n")
	reg := newRegistry()
	push(t, reg, "charts/demo", "signed", chart, layer{helmProvenance, file})
	push(t, reg, "charts/demo", "unsigned", chart)
	srv := serveTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/demo.tgz", "/unsigned.tgz":
			_, _ = w.Write(chart.data)
		case "/demo.tgz.prov":
			_, _ = w.Write(file)
		default:
			reg.ServeHTTP(w, r)
		}
	}))
	at := func(path string) Ref {
		r := urlRef(Chart, srv.URL+path)
		r.CABundle, r.Digest = srv.ca, BytesDigest(chart.data)
		return r
	}
	m, _ := hurried(Options{})
	for name, tc := range map[string]struct {
		ref  Ref
		says string
	}{
		"URL":          {at("/demo.tgz").signedBy(mine.keyring), ""},
		"URLUnsigned":  {at("/unsigned.tgz").signedBy(mine.keyring), "there is no provenance file"},
		"URLOther":     {at("/demo.tgz").signedBy(theirs.keyring), "unknown entity"},
		"OCI":          {ociRef(srv, Chart, "signed", "").signedBy(mine.keyring), ""},
		"OCIUnsigned":  {ociRef(srv, Chart, "unsigned", "").signedBy(mine.keyring), "artifact has no layer with a provenance file"},
		"OCIOther":     {ociRef(srv, Chart, "signed", "").signedBy(theirs.keyring), "unknown entity"},
		"NotAskedFor":  {at("/unsigned.tgz"), ""},
		"NoKey":        {at("/demo.tgz").signedBy(""), "verify has no key"},
		"NotOfACharts": {func() Ref { r := at("/demo.tgz").signedBy(mine.keyring); r.Kind = Manifests; return r }(), "verify.keyring is for charts"},
	} {
		_, err := m.Fetch(t.Context(), tc.ref)
		switch {
		case tc.says == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)):
			t.Errorf("%s: error is %v, want %q", name, err, tc.says)
		}
	}
}

// A tree that is kept is good for those who ask for no signature, or for one by the same keys.
func TestSignedTreesAreKeptApart(t *testing.T) {
	t.Parallel()
	mine := newSigner(t)
	chart := chartLayer(t).data
	srv := serveTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/demo.tgz" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(chart)
	}))
	ref := urlRef(Chart, srv.URL+"/demo.tgz")
	ref.CABundle, ref.Digest = srv.ca, BytesDigest(chart)
	m, _ := hurried(Options{CacheDir: t.TempDir()})
	fleet := Cached(m, 1<<20)
	if _, err := fleet.Fetch(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	_, err := fleet.Fetch(t.Context(), ref.signedBy(mine.keyring))
	wantError(t, err, ErrSignature, "there is no provenance file")
}

// A client certificate is shown to the reference's own server, and to nobody that it redirects to.
func TestClientCertificate(t *testing.T) {
	t.Parallel()
	chart := chartLayer(t).data
	cert, key := newCertificate(t)
	plain := serveTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.PeerCertificates) > 0 {
			t.Error("the certificate is shown to another server")
		}
		_, _ = w.Write(chart)
	}))
	reg := newRegistry()
	push(t, reg, "charts/demo", "1", chartLayer(t))
	repo := newRepository(t, "a.yaml", "a: 1\n").handler(t)
	srv := serveMutual(t, cert, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/away.tgz":
			http.Redirect(w, r, plain.URL+"/demo.tgz", http.StatusFound)
		case strings.HasPrefix(r.URL.Path, "/v2/"):
			reg.ServeHTTP(w, r)
		case strings.HasPrefix(r.URL.Path, "/repo.git"):
			repo.ServeHTTP(w, r)
		default:
			_, _ = w.Write(chart)
		}
	}))
	m, _ := hurried(Options{AllowPrivate: true, Credentials: secrets(map[string]*Credentials{
		"mine": {TLSCert: cert, TLSKey: key}, "both": {TLSCert: cert, TLSKey: key, Username: "me", Password: "s3cret"}, "half": {TLSCert: cert},
		"token": {Token: "x"},
	})})
	at := func(path string) Ref { r := urlRef(Chart, srv.URL+path); r.CABundle = srv.ca + plain.ca; return r }
	for name, tc := range map[string]struct {
		ref  Ref
		says string
	}{
		"Archive":  {at("/demo.tgz").with("mine"), ""},
		"Both":     {at("/demo.tgz").with("both"), ""},
		"Redirect": {at("/away.tgz").with("mine"), ""},
		"OCI":      {ociRef(srv, Chart, "1", "").with("mine"), ""},
		"Git":      {gitRef(Manifests, srv, "main", "").with("mine"), ""},
		"None":     {at("/demo.tgz").with("token"), "server refuses to speak TLS with us: does it want another client certificate"},
		"Half":     {at("/demo.tgz").with("half"), "tls.crt and tls.key are not a certificate (PEM) and its private key"},
	} {
		_, err := m.Fetch(t.Context(), tc.ref)
		switch {
		case tc.says == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)):
			t.Errorf("%s: error is %v, want %q", name, err, tc.says)
		}
		if err != nil && strings.Contains(err.Error(), "PRIVATE") {
			t.Errorf("%s: the error shows the key", name)
		}
	}
	_, err := m.Fetch(t.Context(), urlRef(Chart, "http://example.com/x").with("mine"))
	wantError(t, err, ErrUnsafe, "not sent over http")
}
