package source

import (
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strings"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// Kind is the kind of content that a source must have.
type Kind string

// The kinds.
const (
	// Chart is a Helm chart: a folder or an archive with Chart.yaml.
	Chart Kind = "chart"
	// Kustomize is a kustomization: a folder or an archive with kustomization.yaml.
	Kustomize Kind = "kustomize"
	// Manifests are YAML or JSON files: one, or all of a folder or archive.
	Manifests Kind = "manifests"
)

// Stdin is the path that stands for standard input.
const Stdin = "-"

// Ref is the place of a source and what is expected there.
type Ref struct {
	v1beta2.SourceRef
	// Kind of the content.
	Kind Kind
	// Stdin is read to its end for the path "-", which only Manifests may have. A read that blocks cannot be ended
	// from here: the caller owns the reader.
	Stdin io.Reader

	// creds are what CredentialsRef names, once Mux has read it.
	creds *Credentials
}

// RefOf is the reference in a source of a module template, of which exactly one field must be set.
func RefOf(s v1beta2.Source) (Ref, error) {
	var refs []Ref
	for _, r := range []struct {
		kind Kind
		ref  *v1beta2.SourceRef
	}{{Chart, s.Chart}, {Kustomize, s.Kustomize}, {Manifests, s.Manifests}} {
		if r.ref != nil {
			refs = append(refs, Ref{SourceRef: *r.ref, Kind: r.kind})
		}
	}
	if len(refs) != 1 {
		return Ref{}, refuse(ErrInvalid, "", "source has %d of chart, kustomize and manifests set: set exactly one", len(refs))
	}
	return refs[0], nil
}

// IsLocal says whether the reference is of the caller's own disk or standard input, and of no server.
func (r Ref) IsLocal() bool { return r.address() == "" }

// address of the server, or "".
func (r Ref) address() string {
	switch {
	case r.URL != "":
		return r.URL
	case r.Git != nil:
		return r.Git.URL
	case r.Helm != nil:
		return r.Helm.Repository
	case r.OCI != nil:
		return r.OCI.URL
	}
	return ""
}

// Host is the host (host or host:port) of the server, or "".
func (r Ref) Host() string {
	u, err := url.Parse(r.address())
	if err != nil {
		return ""
	}
	return u.Host
}

// String is the address or path for messages, without user, query and fragment.
func (r Ref) String() string {
	switch {
	case r.URL != "":
		return Redact(r.URL)
	case r.Git != nil:
		return Redact(r.Git.URL) + after("@", shorten(r.Git.Ref)) + after("#", r.Git.Path)
	case r.Helm != nil:
		return strings.TrimSuffix(Redact(r.Helm.Repository), "/") + after("/", r.Helm.Chart) + after(" ", r.Helm.Version)
	case r.OCI != nil:
		return Redact(r.OCI.URL) + after(":", r.OCI.Tag) + after("@", r.OCI.Digest)
	case r.Path == Stdin:
		return "standard input"
	}
	return r.Path
}

// after puts a mark before what is there.
func after(mark, what string) string {
	if what == "" {
		return ""
	}
	return mark + what
}

// shorten shortens a commit for people.
func shorten(ref string) string {
	if isCommit(ref) {
		return ref[:12]
	}
	return ref
}

// folder is the folder inside of an archive that the reference names, or "".
func (r Ref) folder() string {
	switch {
	case r.Git != nil:
		return r.Git.Path
	case r.OCI != nil:
		return r.OCI.Path
	case r.URL != "":
		return r.Path
	}
	return ""
}

// moves says whether the reference may lead to other content tomorrow.
func (r Ref) moves() bool {
	switch {
	case r.Digest != "":
		return false
	case r.Git != nil:
		return !isCommit(r.Git.Ref)
	case r.OCI != nil:
		return r.OCI.Digest == ""
	}
	return true
}

// identity is everything that decides what a fetch brings and whether it is allowed.
func (r Ref) identity() string {
	parts := []string{string(r.Kind), r.URL, r.Path, r.Digest, r.CABundle}
	if r.Git != nil {
		parts = append(parts, "git", r.Git.URL, r.Git.Ref, r.Git.Path)
	}
	if r.Helm != nil {
		parts = append(parts, "helm", r.Helm.Repository, r.Helm.Chart, r.Helm.Version)
	}
	if r.OCI != nil {
		parts = append(parts, "oci", r.OCI.URL, r.OCI.Tag, r.OCI.Digest, r.OCI.Path)
	}
	return fmt.Sprintf("%q", append(parts, r.credentialsName(), r.signers()))
}

// signers are the keys by which the source must be signed, or "".
func (r Ref) signers() string {
	if r.Verify == nil {
		return ""
	}
	return fmt.Sprintf("%q", []string{r.Verify.Keyring, r.Verify.CosignKey})
}

// keyring by which a chart must be signed, or "".
func (r Ref) keyring() string {
	if r.Verify == nil {
		return ""
	}
	return r.Verify.Keyring
}

// cosignKey by which an artifact must be signed, or "".
func (r Ref) cosignKey() string {
	if r.Verify == nil {
		return ""
	}
	return r.Verify.CosignKey
}

// Moves says whether the reference may lead to other content tomorrow, on a server: a branch, a tag, a range of versions.
func (r Ref) Moves() bool { return !r.IsLocal() && r.moves() }

// Key is the same for two references that always lead to the same content for the same reader, and for no others.
func (r Ref) Key() string { return BytesDigest([]byte(r.identity())) }

// credentialsName is the name of the Secret, or "".
func (r Ref) credentialsName() string {
	if r.CredentialsRef == nil {
		return ""
	}
	return r.CredentialsRef.Name
}

// validate checks what can be known without fetching.
func (r Ref) validate() error {
	switch r.Kind {
	case Chart, Kustomize, Manifests:
	default:
		return refuse(ErrInvalid, "", "kind %s is not one of chart, kustomize and manifests", quote(string(r.Kind)))
	}
	if err := r.validatePlace(); err != nil {
		return err
	}
	if err := r.validateVerify(); err != nil {
		return err
	}
	if r.Digest != "" {
		return checkDigest(r.Digest)
	}
	return nil
}

// validatePlace checks that there is exactly one place.
func (r Ref) validatePlace() error {
	places := 0
	for _, set := range []bool{r.URL != "" || r.Path != "", r.Git != nil, r.Helm != nil, r.OCI != nil} {
		if set {
			places++
		}
	}
	switch {
	case places == 0:
		return refuse(ErrInvalid, "", "source of kind %s has no place: set one of path, url, git, helm and oci", r.Kind)
	case places > 1:
		return refuse(ErrInvalid, "", "source has %d places: set exactly one of path, url, git, helm and oci", places)
	case r.Git != nil:
		return validateGit(r.Git)
	case r.Helm != nil:
		return r.validateHelm()
	case r.OCI != nil:
		return validateOCI(r.OCI)
	case r.URL == "":
		return r.validatePath()
	}
	return nil
}

// validatePath checks a local path.
func (r Ref) validatePath() error {
	switch {
	case strings.Contains(r.Path, "://"):
		return &Error{Source: Redact(r.Path), Reason: ErrInvalid, Problem: "an address is not a path: give it as url"}
	case r.Path == Stdin && r.Kind != Manifests:
		return refuse(ErrUnsupported, "", "only manifests are read from standard input")
	case r.Path == Stdin && r.Stdin == nil:
		return refuse(ErrInvalid, "", "there is no standard input here")
	case r.CredentialsRef != nil || r.CABundle != "":
		return refuse(ErrInvalid, "", "credentials and certificates are for servers: a local path needs none")
	}
	return nil
}

// validateVerify checks that what must be signed can be.
func (r Ref) validateVerify() error {
	switch {
	case r.Verify == nil:
		return nil
	case r.keyring() == "" && r.cosignKey() == "":
		return refuse(ErrInvalid, "", "verify has no key: set keyring, cosignKey or both")
	case r.cosignKey() != "" && r.OCI == nil:
		return refuse(ErrInvalid, "", "verify.cosignKey is for OCI artifacts (oci)")
	case r.keyring() != "" && (r.Kind != Chart || r.IsLocal() || r.Git != nil):
		return refuse(ErrInvalid, "", "verify.keyring is for charts that are archives (helm, oci, url)")
	}
	return nil
}

var (
	commitPattern = regexp.MustCompile(`^[0-9a-f]{40}$`)
	// refPattern is what Git allows as a reference (git-check-ref-format), a little stricter.
	refPattern = regexp.MustCompile(`^[^-\x00-\x20\x7f~^:?*\[\\][^\x00-\x20\x7f~^:?*\[\\]*$`)
	tagPattern = regexp.MustCompile(`^[A-Za-z0-9_][-.A-Za-z0-9_]{0,127}$`)
)

func isCommit(ref string) bool { return commitPattern.MatchString(ref) }

func validateGit(g *v1beta2.GitSource) error {
	u, err := url.Parse(g.URL)
	switch {
	case strings.Contains(g.URL, "@") && !strings.Contains(g.URL, "://"):
		return refuse(ErrInvalid, "", "a Git repository is given as ssh://user@host/path, not as user@host:path")
	case err != nil || u.Hostname() == "" || strings.Trim(u.Path, "/") == "":
		return refuse(ErrInvalid, "", "this is not the address of a Git repository")
	case u.Scheme != "https" && u.Scheme != "ssh":
		return refuse(ErrUnsupported, "", "a Git repository is fetched by https or ssh, not by %s", quote(u.Scheme))
	case u.RawQuery != "" || u.Fragment != "":
		return refuse(ErrInvalid, "", "the address of a Git repository has no query and no fragment: set ref and path")
	case g.Ref != "" && (!refPattern.MatchString(g.Ref) || strings.Contains(g.Ref, "..")):
		return refuse(ErrInvalid, "", "ref %s is no branch, tag or commit", quote(g.Ref))
	}
	return nil
}

func (r Ref) validateHelm() error {
	u, err := url.Parse(r.Helm.Repository)
	switch {
	case r.Kind != Chart:
		return refuse(ErrInvalid, "", "a Helm repository holds charts, not %s", r.Kind)
	case err != nil || u.Hostname() == "":
		return refuse(ErrInvalid, "", "this is not the address of a Helm repository")
	case u.Scheme != "https" && u.Scheme != "http":
		return refuse(ErrUnsupported, "", "a Helm repository is fetched by https or http, not by %s: a chart in a registry is set as oci",
			quote(u.Scheme))
	case r.Helm.Chart == "":
		return refuse(ErrInvalid, "", "the name of the chart is missing")
	}
	return nil
}

func validateOCI(o *v1beta2.OCISource) error {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil || u.Host == "" || strings.Trim(u.Path, "/") == "" || u.RawQuery != "" || u.User != nil:
		return refuse(ErrInvalid, "", "this is not the address of an OCI repository: oci://HOST/REPOSITORY")
	case u.Scheme != "oci":
		return refuse(ErrUnsupported, "", "the address of an OCI repository begins with oci://, not %s", quote(u.Scheme))
	case (o.Tag == "") == (o.Digest == ""):
		return refuse(ErrInvalid, "", "set exactly one of tag and digest")
	case o.Digest != "":
		return checkDigest(o.Digest)
	case !tagPattern.MatchString(o.Tag):
		return refuse(ErrInvalid, "", "tag %s is malformed", quote(o.Tag))
	}
	return nil
}

// RefTo is the reference that a person writes in one word:
//
//	DIRECTORY or FILE or -
//	https://HOST/archive.tgz
//	oci://HOST/REPOSITORY:TAG or @sha256:DIGEST
//	git+https://HOST/REPOSITORY@REF#FOLDER or git+ssh://…
//
// It checks nothing: what is wrong with a reference is said when it is fetched.
func RefTo(place string) v1beta2.SourceRef {
	scheme, rest, ok := strings.Cut(place, "://")
	switch {
	case !ok:
		return v1beta2.SourceRef{Path: place}
	case strings.EqualFold(scheme, "oci"):
		return v1beta2.SourceRef{OCI: ociTo(rest)}
	case strings.HasPrefix(strings.ToLower(scheme), "git+"):
		return v1beta2.SourceRef{Git: gitTo(strings.ToLower(scheme[len("git+"):]), rest)}
	case scheme == "" || strings.Trim(strings.ToLower(scheme), "abcdefghijklmnopqrstuvwxyz0123456789+.-") != "":
		return v1beta2.SourceRef{Path: place}
	}
	return v1beta2.SourceRef{URL: place}
}

// ociTo splits HOST/REPOSITORY:TAG@DIGEST; a digest says more than a tag.
func ociTo(rest string) *v1beta2.OCISource {
	o := &v1beta2.OCISource{}
	rest, o.Digest, _ = strings.Cut(rest, "@")
	if i := strings.LastIndexByte(rest, ':'); i > strings.IndexByte(rest, '/') {
		rest, o.Tag = rest[:i], rest[i+1:]
	}
	if o.Digest != "" {
		o.Tag = ""
	}
	o.URL = "oci://" + rest
	return o
}

// gitTo splits USER@HOST/REPOSITORY@REF#FOLDER; the @ of a user comes before the first slash.
func gitTo(scheme, rest string) *v1beta2.GitSource {
	g := &v1beta2.GitSource{}
	rest, g.Path, _ = strings.Cut(rest, "#")
	host, repository, _ := strings.Cut(rest, "/")
	repository, g.Ref, _ = strings.Cut(repository, "@")
	g.URL = scheme + "://" + host + "/" + repository
	return g
}
