package wire

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/kyma-project/mothership/sim/schema"
)

// Version is what clusters say of themselves.
var Version = version.Info{
	Major: "1", Minor: "36", GitVersion: "v1.36.3+simulated", GitTreeState: "clean", GoVersion: runtime.Version(), Compiler: runtime.Compiler,
	Platform: runtime.GOOS + "/" + runtime.GOARCH,
}

func auditID() string { return rand.Text() }

// document serves what is not a resource.
func (q *request) document(segments []string) error {
	if q.Method != http.MethodGet {
		return errNoPath
	}
	switch path := strings.Join(segments, "/"); {
	case path == "version":
		return q.json(http.StatusOK, Version)
	case path == "healthz", path == "livez", path == "readyz":
		q.out.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = q.out.Write([]byte("ok"))
		return nil
	case path == "api":
		return q.core()
	case path == "apis":
		return q.groups()
	case segments[0] == "openapi":
		return q.openAPI(segments[1:])
	case segments[0] == "api" && len(segments) == 2:
		return q.resources(apischema.GroupVersion{Version: segments[1]})
	case segments[0] == "apis" && len(segments) == 2:
		return q.group(segments[1])
	case segments[0] == "apis" && len(segments) == 3:
		return q.resources(apischema.GroupVersion{Group: segments[1], Version: segments[2]})
	}
	return errNoPath
}

// aggregated says whether the client knows the aggregated form.
func (q *request) aggregated() bool {
	return strings.Contains(q.Header.Get("Accept"), "as=APIGroupDiscoveryList") && strings.Contains(q.Header.Get("Accept"), "v=v2")
}

const aggregatedType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// cached answers with a document that the client may have.
func (q *request) cached(d schema.Document, contentType string) error {
	h := q.out.Header()
	h.Set("ETag", d.ETag)
	h.Set("Vary", "Accept")
	if q.Header.Get("If-None-Match") == d.ETag {
		q.out.WriteHeader(http.StatusNotModified)
		return nil
	}
	h.Set("Content-Type", contentType)
	_, _ = q.out.Write(d.Body) // the client is gone
	return nil
}

func (q *request) core() error {
	if q.aggregated() {
		return q.cached(q.c.Catalog().Discovery(true), aggregatedType)
	}
	return q.json(http.StatusOK, metav1.APIVersions{
		TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"},
		ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: q.Host}},
	})
}

func (q *request) groups() error {
	catalog := q.c.Catalog()
	if q.aggregated() && q.o.HalfDiscovery {
		return q.cached(catalog.HalfDiscovery(), aggregatedType)
	}
	if q.aggregated() {
		return q.cached(catalog.Discovery(false), aggregatedType)
	}
	out := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for _, g := range catalog.Groups() {
		if g.Name != "" {
			out.Groups = append(out.Groups, apiGroup(g))
		}
	}
	return q.json(http.StatusOK, out)
}

func apiGroup(g schema.Group) metav1.APIGroup {
	out := metav1.APIGroup{Name: g.Name}
	for _, v := range g.Versions {
		out.Versions = append(out.Versions, metav1.GroupVersionForDiscovery{GroupVersion: g.Name + "/" + v, Version: v})
	}
	out.PreferredVersion = out.Versions[0]
	return out
}

func (q *request) group(name string) error {
	groups := q.c.Catalog().Groups()
	i := slices.IndexFunc(groups, func(g schema.Group) bool { return g.Name == name })
	if i < 0 || name == "" {
		return errNoPath
	}
	out := apiGroup(groups[i])
	out.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
	return q.json(http.StatusOK, out)
}

func (q *request) resources(gv apischema.GroupVersion) error {
	catalog := q.c.Catalog()
	known := slices.ContainsFunc(catalog.Groups(), func(g schema.Group) bool {
		return g.Name == gv.Group && slices.Contains(g.Versions, gv.Version)
	})
	if !known {
		return errNoPath
	}
	return q.json(http.StatusOK, metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String(), APIResources: catalog.Resources(gv),
	})
}

// openAPI serves the index and the documents of OpenAPI v3. There is no v2.
func (q *request) openAPI(segments []string) error {
	if len(segments) == 0 || segments[0] != "v3" {
		return errNoPath
	}
	catalog := q.c.Catalog()
	if len(segments) == 1 {
		paths := map[string]any{}
		for _, g := range catalog.Groups() {
			for _, v := range g.Versions {
				gv := apischema.GroupVersion{Group: g.Name, Version: v}
				path := openAPIPath(gv)
				paths[path] = map[string]any{"serverRelativeURL": fmt.Sprintf("/openapi/v3/%s?hash=%s", path, strings.Trim(catalog.OpenAPI(gv).ETag, `"`))}
			}
		}
		return q.json(http.StatusOK, map[string]any{"paths": paths})
	}
	gv := apischema.GroupVersion{Version: segments[len(segments)-1]}
	if len(segments) == 4 {
		gv.Group = segments[2]
	}
	if len(catalog.Resources(gv)) == 0 {
		return errNoPath
	}
	return q.cached(catalog.OpenAPI(gv), "application/json")
}

func openAPIPath(gv apischema.GroupVersion) string {
	if gv.Group == "" {
		return "api/" + gv.Version
	}
	return "apis/" + gv.String()
}
