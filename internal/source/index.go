package source

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"

	"github.com/Masterminds/semver/v3"
	"sigs.k8s.io/yaml"
)

// index is what we need of the index.yaml of a Helm repository: the versions of each chart.
type index struct {
	Entries map[string][]chartVersion `json:"entries"`
}

// chartVersion is one version of a chart.
type chartVersion struct {
	Version string   `json:"version"`
	URLs    []string `json:"urls"`
	Digest  string   `json:"digest"`
	// Removed is of a very old format, in which a chart was taken back by it.
	Removed bool `json:"removed"`
}

// parseIndex reads an index. Duplicate keys are let through, as Helm does: real repositories have them.
func parseIndex(data []byte) (*index, error) {
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("<")) {
		return nil, refuse(ErrUnsupported, "", "index.yaml is a web page: is this the address of a Helm repository?")
	}
	var x index
	if err := yaml.Unmarshal(data, &x); err != nil {
		return nil, &Error{Entry: "index.yaml", Problem: "is malformed", Reason: ErrInvalid, Err: shortened(err)}
	}
	if x.Entries == nil {
		return nil, refuse(ErrInvalid, "index.yaml", "has no entries: is this the address of a Helm repository?")
	}
	return &x, nil
}

// shortenedError is an error whose message may quote what somebody else wrote, cut to what a person reads.
type shortenedError struct{ text string }

func (e *shortenedError) Error() string { return e.text }

func shortened(err error) error {
	const most = 200
	text := err.Error()
	if len(text) > most {
		text = text[:most] + "…"
	}
	return &shortenedError{strings.ToValidUTF8(strings.Map(printable, text), "")}
}

// printable replaces what moves terminals or ends lines.
func printable(r rune) rune {
	if isControl(r) {
		return ' '
	}
	return r
}

// pick chooses the highest version of a chart that is in a range.
func (x *index) pick(chart, version string) (*chartVersion, error) {
	versions, ok := x.Entries[chart]
	if !ok {
		return nil, refuse(ErrNotFound, "", "repository has no chart %s", quote(chart))
	}
	wanted, err := wantedVersions(version)
	if err != nil {
		return nil, err
	}
	var best *chartVersion
	var highest *semver.Version
	for i := range versions {
		v, err := semver.NewVersion(versions[i].Version)
		if err != nil || versions[i].Removed || !wanted(v, versions[i].Version) {
			continue
		}
		if highest == nil || v.GreaterThan(highest) {
			best, highest = &versions[i], v
		}
	}
	if best == nil {
		return nil, refuse(ErrNotFound, "", "repository has no version of chart %s that is %s", quote(chart), wish(version))
	}
	return best, nil
}

func wish(version string) string {
	if version == "" {
		return "no pre-release: name one"
	}
	return quote(version)
}

// wantedVersions says of a version whether it is wanted: exactly the one that is named, else those of the range.
func wantedVersions(version string) (func(*semver.Version, string) bool, error) {
	if exact, err := semver.StrictNewVersion(strings.TrimPrefix(version, "v")); err == nil {
		return func(v *semver.Version, raw string) bool {
			return raw == version || v.Equal(exact) && v.Metadata() == exact.Metadata()
		}, nil
	}
	if version == "" {
		version = "*"
	}
	limits, err := semver.NewConstraint(version)
	if err != nil {
		return nil, refuse(ErrInvalid, "", "version %s is neither a version nor a range of versions", quote(version))
	}
	return func(v *semver.Version, _ string) bool { return limits.Check(v) }, nil
}

// address of a chart's archive, which may be relative to the repository's.
func (v *chartVersion) address(repository *url.URL) (*url.URL, error) {
	if len(v.URLs) == 0 {
		return nil, refuse(ErrInvalid, "", "index.yaml has no url of version %s", quote(v.Version))
	}
	base := *repository
	base.Path = strings.TrimSuffix(base.Path, "/") + "/"
	base.RawPath, base.User = "", nil
	u, err := base.Parse(v.URLs[0])
	switch {
	case err != nil || u.Hostname() == "":
		return nil, refuse(ErrInvalid, "", "index.yaml has a malformed url of version %s", quote(v.Version))
	case u.Scheme == "oci":
		return nil, refuse(ErrUnsupported, "", "index.yaml says that version %s is in a registry: set it as oci, %s", quote(v.Version), Redact(u.String()))
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, refuse(ErrUnsupported, "", "index.yaml has a url of scheme %s: refused", quote(u.Scheme))
	case repository.Scheme == "https" && u.Scheme == "http":
		return nil, refuse(ErrUnsafe, "", "index.yaml of an https repository has a url by http (%s): refused", Redact(u.String()))
	}
	u.User = nil
	if u.RawQuery == "" && sameOrigin(repository, u) {
		u.RawQuery = repository.RawQuery // as Helm does: some repositories are told apart by it
	}
	return u, nil
}

// digest of the archive as the index promises it ("sha256:<hex>"), or "" where it does not.
func (v *chartVersion) digest() (string, error) {
	digits := strings.ToLower(strings.TrimPrefix(v.Digest, "sha256:"))
	if digits == "" {
		return "", nil
	}
	if raw, err := hex.DecodeString(digits); err != nil || len(raw) != 32 {
		return "", refuse(ErrInvalid, "", "index.yaml has a malformed digest of version %s", quote(v.Version))
	}
	return "sha256:" + digits, nil
}

// revision names a version and its content.
func (v *chartVersion) revision(digest string) string { return fmt.Sprintf("%s@%s", v.Version, digest) }
