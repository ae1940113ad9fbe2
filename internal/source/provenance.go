package source

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/url"
	"strings"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	"helm.sh/helm/v4/pkg/provenance"
)

// maxProvenance bounds a provenance file in bytes: it has the chart's Chart.yaml and a signature.
const maxProvenance = 1 << 20

// signedChart is what a provenance file vouches for.
type signedChart struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// checkProvenance says whether a provenance file was signed by a key of an armored keyring and is of exactly this archive. Helm's
// own code judges the signature. Whoever the file calls by which name does not matter: the digest of the archive is what is signed.
func checkProvenance(keyring string, archive, file []byte) (signedChart, error) {
	keys, err := readKeyring(keyring)
	if err != nil {
		return signedChart{}, err
	}
	block, _ := clearsign.Decode(file)
	if block == nil {
		return signedChart{}, refuse(ErrSignature, "", "chart's provenance file has no OpenPGP signature")
	}
	var meta signedChart
	var sums provenance.SumCollection
	if err := provenance.ParseMessageBlock(block.Plaintext, &meta, &sums); err != nil {
		return signedChart{}, refuse(ErrSignature, "", "chart's provenance file is malformed")
	}
	name, digest := "", BytesDigest(archive)
	for file, sum := range sums.Files {
		if sum == digest {
			name = file
		}
	}
	if name == "" {
		return signedChart{}, refuse(ErrSignature, "", "chart's provenance file is of another archive than this one, which has %s", digest)
	}
	if _, err := (&provenance.Signatory{KeyRing: keys}).Verify(archive, file, name); err != nil {
		return signedChart{}, &Error{Reason: ErrSignature, Problem: "chart is not signed by a key of verify.keyring", Err: shortened(err)}
	}
	return meta, nil
}

// readKeyring reads public keys in ASCII armor, which may be several blocks.
func readKeyring(text string) (openpgp.EntityList, error) {
	var keys openpgp.EntityList
	r := bufio.NewReader(strings.NewReader(text)) // of which armor takes no more than it needs
	for {
		block, err := armor.Decode(r)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || block.Type != openpgp.PublicKeyType {
			return nil, refuse(ErrInvalid, "", "verify.keyring is no armored list of public keys: gpg --export --armor")
		}
		found, err := openpgp.ReadKeyRing(block.Body)
		if err != nil {
			return nil, refuse(ErrInvalid, "", "verify.keyring is no armored list of public keys: gpg --export --armor")
		}
		keys = append(keys, found...)
	}
	if len(keys) == 0 {
		return nil, refuse(ErrInvalid, "", "verify.keyring has no public key")
	}
	return keys, nil
}

// vouch checks the provenance file that belongs beside an archive. One that was found good is kept on disk, for the same keys.
func (d *downloader) vouch(ctx context.Context, w *wire, ref Ref, archive *url.URL, data []byte) (signedChart, error) {
	key := "provenance of " + BytesDigest(data) + " by " + BytesDigest([]byte(ref.keyring()))
	if file, _, ok := d.disk.Find(key); ok {
		if signed, err := checkProvenance(ref.keyring(), data, file); err == nil {
			return signed, nil
		}
	}
	file, err := d.provenanceOf(ctx, w, archive)
	if err != nil {
		return signedChart{}, err
	}
	signed, err := checkProvenance(ref.keyring(), data, file)
	if err == nil && d.disk != nil {
		d.disk.Name(key, d.disk.Put(file), "")
	}
	return signed, err
}

// provenanceOf downloads the provenance file that belongs beside an archive.
func (d *downloader) provenanceOf(ctx context.Context, w *wire, archive *url.URL) ([]byte, error) {
	u := *archive
	u.Path, u.RawPath = u.Path+".prov", ""
	got, err := w.bytes(ctx, ask{url: &u})
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, refuse(ErrSignature, "", "chart is not signed: there is no provenance file %s", Redact(u.String()))
	case err != nil:
		return nil, err
	case len(got.data) > maxProvenance:
		return nil, refuse(ErrTooLarge, "", "chart's provenance file is larger than the limit of %d bytes", maxProvenance)
	}
	return got.data, nil
}

// isSigned compares what was signed with what was asked for: a chart that the same key has signed for something else is none.
func (s signedChart) isSigned(chart, version string) error {
	if s.Name != chart || strings.TrimPrefix(s.Version, "v") != strings.TrimPrefix(version, "v") {
		return refuse(ErrSignature, "", "signature is of chart %s %s, not of %s %s", quote(s.Name), quote(s.Version), quote(chart), quote(version))
	}
	return nil
}
