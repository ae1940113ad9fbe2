package render

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/source"
)

var (
	commitForm = regexp.MustCompile(`^[0-9a-f]{40}$`)
	digestForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	// fileForm are addresses of archives and of single files; all others are of Git repositories.
	fileForm = regexp.MustCompile(`\.(tgz|tar|tar\.gz|zip|ya?ml|json)$`)
)

// base is a remote reference of a kustomization, as one of our own sources.
type base struct {
	source.Ref
	host string
}

const baseHint = "pin it (https://HOST/REPOSITORY//FOLDER?ref=COMMIT, or https://HOST/ARCHIVE//FOLDER?digest=sha256:…), or copy it into the source"

// parseBase reads a remote reference as kustomize writes it, and with a digest as we do:
//
//	https://HOST/REPOSITORY//FOLDER?ref=COMMIT     Git; also github.com/ORG/REPOSITORY/FOLDER?ref=COMMIT, git::https://…
//	https://HOST/FILE.tgz//FOLDER?digest=sha256:…  an archive, or one YAML or JSON file
//	oci://HOST/REPOSITORY//FOLDER?digest=sha256:…  an artifact: the digest is that of its manifest
//
// What could be something else tomorrow is refused, and so is what would need credentials: bases have none.
func parseBase(ref string) (*base, error) {
	text := strings.TrimPrefix(strings.TrimSpace(ref), "git::")
	if strings.HasPrefix(strings.ToLower(text), "github.com/") {
		text = "https://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
		return nil, errors.New("it is no address without user and fragment: " + baseHint)
	}
	commit, digest, err := pins(u.Query())
	if err != nil {
		return nil, err
	}
	place, folder, _ := strings.Cut(u.Path, "//")
	if place == "" || folder != "" && folder != path.Clean(folder) || strings.HasPrefix(folder, "..") {
		return nil, errors.New("its folder is not one: " + baseHint)
	}
	b := &base{host: u.Host, Ref: source.Ref{Kind: source.Kustomize, SourceRef: v1beta2.SourceRef{Digest: digest}}}
	switch scheme := strings.ToLower(u.Scheme); {
	case scheme == "oci" && digest != "" && commit == "":
		b.Digest = ""
		b.OCI = &v1beta2.OCISource{URL: "oci://" + u.Host + place, Digest: digest, Path: folder}
	case scheme == "https" && fileForm.MatchString(place) && digest != "" && commit == "":
		b.URL, b.Path = "https://"+u.Host+place, folder
		if b.isFile() {
			b.Kind = source.Manifests
		}
	case scheme == "https" && !fileForm.MatchString(place) && (commitForm.MatchString(commit) || commit != "" && digest != ""):
		repository, within := inRepository(u.Host, place, folder)
		b.Git = &v1beta2.GitSource{URL: "https://" + u.Host + repository, Ref: commit, Path: within}
	default:
		return nil, errors.New("it is not pinned, or its scheme is not https or oci: " + baseHint)
	}
	return b, nil
}

// isFile says whether the base is a single file of objects, which has no kustomization.
func (b *base) isFile() bool {
	ext := path.Ext(b.URL)
	return ext == ".yaml" || ext == ".yml" || ext == ".json"
}

// pins are what of a query says which content is meant. What kustomize's other parameters say is of no use here, or refused.
func pins(q url.Values) (commit, digest string, err error) {
	for key, values := range q {
		switch key {
		case "ref", "version":
			commit = values[0]
		case "digest":
			digest = values[0]
		case "timeout", "depth":
		default:
			return "", "", fmt.Errorf("the parameter %.40q is not accepted: %s", key, baseHint)
		}
		if len(values) != 1 {
			return "", "", fmt.Errorf("the parameter %.40q is there twice", key)
		}
	}
	if digest != "" && !digestForm.MatchString(digest) {
		return "", "", errors.New("digest is sha256: and 64 hex digits")
	}
	return commit, digest, nil
}

// inRepository tells a repository from a folder in it where there is no // between them: after .git, and on GitHub after two parts.
func inRepository(host, place, folder string) (repository, within string) {
	if folder != "" {
		return strings.TrimSuffix(place, "/"), folder
	}
	if before, after, ok := strings.Cut(place, ".git/"); ok {
		return before + ".git", after
	}
	if parts := strings.SplitN(strings.TrimPrefix(place, "/"), "/", 3); host == "github.com" && len(parts) == 3 {
		return "/" + parts[0] + "/" + parts[1], parts[2]
	}
	return strings.TrimSuffix(place, "/"), ""
}
