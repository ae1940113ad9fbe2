package post

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// mirrors are rules, the longest first.
type mirrors []v1beta2.ImageMirror

func newMirrors(rules []v1beta2.ImageMirror) mirrors {
	out := make(mirrors, len(rules))
	for i, r := range rules {
		out[i] = v1beta2.ImageMirror{From: strings.TrimSuffix(r.From, "/"), To: strings.TrimSuffix(r.To, "/")}
	}
	slices.SortStableFunc(out, func(a, b v1beta2.ImageMirror) int { return cmp.Compare(len(b.From), len(a.From)) })
	return out
}

// of is an image at its mirror, and false where no rule matches or it is there already.
func (m mirrors) of(image string) (string, bool) {
	name, rest := splitImage(image)
	if name == "" {
		return "", false
	}
	full := fullName(name)
	for _, rule := range m {
		tail, ok := below(full, rule.From)
		if !ok {
			continue
		}
		return rule.To + tail + rest, !m.holds(full, len(rule.From))
	}
	return "", false
}

// holds says whether a name is below a mirror already that says more of it than the rule that matches.
func (m mirrors) holds(full string, matched int) bool {
	return slices.ContainsFunc(m, func(rule v1beta2.ImageMirror) bool {
		_, ok := below(full, rule.To)
		return ok && len(rule.To) > matched
	})
}

// below says what of a name comes after its beginning in whole parts: "" or "/…".
func below(name, beginning string) (string, bool) {
	tail, ok := strings.CutPrefix(name, beginning)
	return tail, ok && (tail == "" || tail[0] == '/')
}

// splitImage cuts a reference into the repository's name, and the tag and digest with their marks. The name is empty if it is no
// reference.
func splitImage(image string) (name, rest string) {
	if image == "" || strings.ContainsAny(image, " \t\r\n\"'{}$()\\") || strings.Contains(image, "://") {
		return "", ""
	}
	name = image
	if i := strings.IndexByte(name, '@'); i >= 0 {
		name = name[:i]
	}
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		name = name[:i]
	}
	return name, image[len(name):]
}

// defaultRegistry is where images without a registry are, as every container runtime has it.
const defaultRegistry = "docker.io"

// fullName is a repository's name with its registry.
func fullName(name string) string {
	first, rest, ok := strings.Cut(name, "/")
	switch {
	case !ok:
		return defaultRegistry + "/library/" + name
	case !isRegistry(first):
		return defaultRegistry + "/" + name
	case first != defaultRegistry && first != "index.docker.io":
		return name
	case !strings.Contains(rest, "/"):
		return defaultRegistry + "/library/" + rest
	}
	return defaultRegistry + "/" + rest
}

// isRegistry says whether the first part of a name is a host, by the rule of the container runtimes.
func isRegistry(part string) bool { return strings.ContainsAny(part, ".:") || part == "localhost" }
