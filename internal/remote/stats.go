package remote

import (
	"maps"
	"net/http"
	"strings"
	"sync"
)

// The verbs by which requests are counted.
const (
	VerbGet              = "get"
	VerbList             = "list"
	VerbCreate           = "create"
	VerbUpdate           = "update"
	VerbPatch            = "patch"
	VerbApply            = "apply"
	VerbDelete           = "delete"
	VerbDeleteCollection = "deletecollection"
	VerbDiscovery        = "discovery"
	VerbVersion          = "version"
	VerbWatch            = "watch"
	// VerbWait counts the looks of Serves.
	VerbWait = "wait"
)

// Stats is the number of HTTP requests by verb, retries included.
type Stats map[string]int

// Total number of requests.
func (s Stats) Total() int {
	total := 0
	for _, n := range s {
		total += n
	}
	return total
}

// Sub is what was added since an older reading: verbs without a new request are left out.
func (s Stats) Sub(older Stats) Stats {
	out := Stats{}
	for verb, n := range s {
		if d := n - older[verb]; d != 0 {
			out[verb] = d
		}
	}
	return out
}

// counter counts requests. It is safe for concurrent use.
type counter struct {
	mu sync.Mutex
	n  Stats // guarded by mu
}

func (c *counter) add(verb string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = Stats{}
	}
	c.n[verb] += n
}

func (c *counter) read() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		return Stats{}
	}
	return maps.Clone(c.n)
}

// verbOf names a request by its method and path, as the API server's RequestInfo does
// (https://kubernetes.io/docs/reference/access-authn-authz/authorization/#determine-the-request-verb).
func verbOf(req *http.Request) string {
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	switch {
	case parts[0] == "version":
		return VerbVersion
	case parts[0] == "api" && len(parts) <= 2, parts[0] == "apis" && len(parts) <= 3:
		return VerbDiscovery
	}
	named := isNamed(parts)
	switch req.Method {
	case http.MethodGet, http.MethodHead:
		if named {
			return VerbGet
		}
		return VerbList
	case http.MethodPost:
		return VerbCreate
	case http.MethodPut:
		return VerbUpdate
	case http.MethodPatch:
		if strings.HasPrefix(req.Header.Get("Content-Type"), "application/apply-patch") {
			return VerbApply
		}
		return VerbPatch
	case http.MethodDelete:
		if named {
			return VerbDelete
		}
		return VerbDeleteCollection
	}
	return strings.ToLower(req.Method)
}

// isNamed says whether a resource path ends in an object, not in a collection.
func isNamed(parts []string) bool {
	if parts[0] == "apis" {
		parts = parts[1:]
	}
	if len(parts) > 2 {
		parts = parts[2:] // behind the group and version
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
		// namespaces/x/status and namespaces/x/finalize are the namespace's own.
		return len(parts) > 1 || parts[0] == "status" || parts[0] == "finalize"
	}
	return len(parts) > 1
}
