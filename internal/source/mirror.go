package source

import (
	"cmp"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
)

// mirror says that a place stands in for another.
type mirror struct{ from, to spot }

// spot is a host and, below it, a folder; "/" is all of it.
type spot struct{ host, folder string }

// mirrors say which places stand in for others, the longest folder first.
type mirrors []mirror

// newMirrors knows Docker's registry by both of its names.
func newMirrors(places map[string]string) mirrors {
	var m mirrors
	for from, to := range places {
		f, t := spotOf(strings.ToLower(from)), spotOf(to)
		m = append(m, mirror{f, t})
		if f.host == "docker.io" {
			m = append(m, mirror{spot{"registry-1.docker.io", f.folder}, t})
		}
	}
	slices.SortFunc(m, func(a, b mirror) int {
		return cmp.Or(cmp.Compare(len(b.from.folder), len(a.from.folder)), strings.Compare(a.from.host, b.from.host))
	})
	return m
}

// spotOf splits HOST[:PORT][/FOLDER].
func spotOf(place string) spot {
	host, folder, _ := strings.Cut(place, "/")
	return spot{host, path.Clean("/" + folder)}
}

// registryAPI is what the paths of every registry begin with; the repository comes after it.
const registryAPI = "/v2"

// of is the address to go to in place of another: the same, if it has no mirror.
func (m mirrors) of(u *url.URL) *url.URL {
	for _, one := range m {
		if !strings.EqualFold(u.Host, one.from.host) {
			continue
		}
		to := *u
		to.Host = one.to.host
		if one.from.folder == "/" && one.to.folder == "/" {
			return &to
		}
		if moved, ok := one.move(u.Path); ok {
			to.Path, to.RawPath = moved, ""
			return &to
		}
	}
	return u
}

// move is a path in the mirror. In a registry, folders are those of repositories.
func (m mirror) move(p string) (string, bool) {
	api := ""
	if strings.HasPrefix(p, registryAPI+"/") {
		api, p = registryAPI, p[len(registryAPI):]
	}
	if api != "" && p == "/" {
		return api + p, m.from.folder == "/" // the registry as such
	}
	rest, ok := strings.CutPrefix(p, strings.TrimSuffix(m.from.folder, "/"))
	if !ok || rest != "" && rest[0] != '/' {
		return "", false
	}
	return api + strings.TrimSuffix(m.to.folder, "/") + rest, true
}

// holds says whether a host is a mirror, which whoever runs us has chosen.
func (m mirrors) holds(hostname string) bool {
	return slices.ContainsFunc(m, func(one mirror) bool {
		u := url.URL{Host: one.to.host}
		return strings.EqualFold(u.Hostname(), hostname)
	})
}

// mirrored sends requests to mirrors. A mirror gets what its host would get, credentials included: it stands in for it.
type mirrored struct {
	next    http.RoundTripper
	mirrors mirrors
}

// RoundTrip does not change the request, so that redirects and credentials are judged by the host that was meant.
func (m *mirrored) RoundTrip(req *http.Request) (*http.Response, error) {
	to := m.mirrors.of(req.URL)
	if to == req.URL {
		return m.next.RoundTrip(req)
	}
	sent := req.Clone(req.Context())
	sent.URL, sent.Host = to, ""
	resp, err := m.next.RoundTrip(sent)
	if resp != nil {
		resp.Request = req
	}
	return resp, err
}
