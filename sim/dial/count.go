package dial

import (
	"net/http"
	"strings"
	"sync"
)

// Count is a number of requests.
type Count struct {
	Verb  string `json:"verb"`
	Agent string `json:"agent"`
	N     uint64 `json:"n"`
}

// Counters count the requests of one cluster. The zero value works.
type Counters struct {
	mu     sync.Mutex
	counts map[asked]uint64
}

type asked struct{ verb, agent string }

// Add counts a request, whose path is as the API server knows it.
func (c *Counters) Add(r *http.Request) {
	agent, _, _ := strings.Cut(r.UserAgent(), "/")
	c.add(asked{verbOf(r), agent[:min(len(agent), 64)]})
}

// VerbConnect is that of connections that end without a request, which have no user agent.
const VerbConnect = "connect"

// AddConnection counts a connection that gets no answer, so that there is no request.
func (c *Counters) AddConnection() { c.add(asked{verb: VerbConnect}) }

func (c *Counters) add(a asked) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = map[asked]uint64{}
	}
	c.counts[a]++
}

// Read gives the counts, in no order, and forgets them if it is to.
func (c *Counters) Read(reset bool) []Count {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]Count, 0, len(c.counts))
	for a, n := range c.counts {
		out = append(out, Count{Verb: a.verb, Agent: a.agent, N: n})
	}
	if reset {
		c.counts = nil
	}
	return out
}

// verbOf is a request's verb as audit logs know it.
func verbOf(r *http.Request) string {
	segments := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case segments[0] == "version":
		return "version"
	case segments[0] == "openapi", segments[0] == "api" && len(segments) <= 2, segments[0] == "apis" && len(segments) <= 3:
		return "discovery"
	}
	switch r.Method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodDelete:
		return "delete"
	case http.MethodPatch:
		if strings.HasPrefix(r.Header.Get("Content-Type"), "application/apply-patch") {
			return "apply"
		}
		return "patch"
	}
	if w := r.URL.Query().Get("watch"); w == "true" || w == "1" {
		return "watch"
	}
	if isCollection(segments) {
		return "list"
	}
	return "get"
}

// isCollection says whether a path names a resource, not an object.
func isCollection(segments []string) bool {
	rest := segments[min(len(segments), 2):]
	if segments[0] == "apis" {
		rest = segments[min(len(segments), 3):]
	}
	if len(rest) > 2 && rest[0] == "namespaces" {
		rest = rest[2:]
	}
	return len(rest) == 1
}
