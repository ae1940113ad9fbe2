package sim

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	goruntime "runtime"
	"slices"
	"strings"

	"github.com/kyma-project/mothership/sim/content"
	"github.com/kyma-project/mothership/sim/dial"
)

// AddRequest is the body of POST /runtimes.
type AddRequest struct {
	// Name of one cluster, or Prefix and Count for <prefix>0 … <prefix><count-1>.
	Name   string `json:"name,omitempty"`
	Prefix string `json:"prefix,omitempty"`
	Count  int    `json:"count,omitempty"`
	// From is the cluster to clone; empty for new ones.
	From string `json:"from,omitempty"`
}

// DialRequest is the body of PUT /dials.
type DialRequest struct {
	// Names of clusters, and whatever begins with Prefix.
	Names  []string   `json:"names,omitempty"`
	Prefix string     `json:"prefix,omitempty"`
	Dials  dial.Dials `json:"dials"`
}

// Stats is the answer of GET /stats.
type Stats struct {
	Runtimes    int   `json:"runtimes"`
	Objects     int   `json:"objects"`
	Contents    int   `json:"contents"`
	Bytes       int   `json:"contentBytes"`
	Connections int64 `json:"connections"`
	// Pending is what is still to happen by itself: a fleet at rest has none.
	Pending int `json:"pending"`
	// Merges are the writes so far, Remembered those that cost a look-up only.
	Merges     uint64 `json:"merges"`
	Remembered uint64 `json:"remembered"`
	HeapBytes  uint64 `json:"heapBytes"`
}

func (s *Server) adminHandler() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	m.HandleFunc("GET /stats", func(w http.ResponseWriter, _ *http.Request) { reply(w, s.Stats(), nil) })
	m.HandleFunc("GET /connections", func(w http.ResponseWriter, _ *http.Request) { reply(w, s.connections.Load(), nil) })
	m.HandleFunc("GET /runtimes", func(w http.ResponseWriter, _ *http.Request) { reply(w, s.fleet.names(), nil) })
	m.HandleFunc("POST /runtimes", s.adminAdd)
	m.HandleFunc("DELETE /runtimes/{name}", func(w http.ResponseWriter, r *http.Request) {
		reply(w, struct{}{}, s.Remove(r.PathValue("name")))
	})
	m.HandleFunc("GET /runtimes/{name}/kubeconfig", s.adminKubeconfig)
	m.HandleFunc("GET /runtimes/{name}/dials", s.adminDials)
	m.HandleFunc("PUT /dials", s.adminDial)
	m.HandleFunc("GET /requests", s.adminRequests(false))
	m.HandleFunc("DELETE /requests", s.adminRequests(true))
	return m
}

// reply answers with JSON, or an error as text.
func reply(w http.ResponseWriter, body any, err error) {
	switch {
	case errors.Is(err, ErrNotFound):
		http.Error(w, err.Error(), http.StatusNotFound)
	case errors.Is(err, ErrExists):
		http.Error(w, err.Error(), http.StatusConflict)
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	default:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(body) // the client is gone
	}
}

// maxAdmin bounds what the administration reads: the names of a large fleet.
const maxAdmin = 16 << 20

func read(w http.ResponseWriter, r *http.Request, into any) error {
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxAdmin))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}

// maxCount bounds one request for clusters.
const maxCount = 1_000_000

func (s *Server) adminAdd(w http.ResponseWriter, r *http.Request) {
	var q AddRequest
	if err := read(w, r, &q); err != nil {
		reply(w, nil, err)
		return
	}
	if q.Name != "" {
		reply(w, []string{q.Name}, s.fleet.add(q.Name, q.From))
		return
	}
	var names []string
	for i := range min(q.Count, maxCount) {
		name := fmt.Sprintf("%s%d", q.Prefix, i)
		if err := s.fleet.add(name, q.From); err != nil {
			reply(w, nil, err)
			return
		}
		names = append(names, name)
	}
	reply(w, names, nil)
}

func (s *Server) adminKubeconfig(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if _, err := s.Cluster(name); err != nil {
		reply(w, nil, err)
		return
	}
	out, err := s.Kubeconfig(name)
	if err != nil {
		reply(w, nil, err)
		return
	}
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(out) // the client is gone
}

func (s *Server) adminDials(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	runtime := s.fleet.get(name)
	if runtime == nil {
		reply(w, nil, fmt.Errorf("%s: %w", name, ErrNotFound))
		return
	}
	reply(w, runtime.dials.Load(), nil)
}

func (s *Server) adminDial(w http.ResponseWriter, r *http.Request) {
	var q DialRequest
	if err := read(w, r, &q); err != nil {
		reply(w, nil, err)
		return
	}
	if q.Prefix != "" {
		for _, name := range s.fleet.names() {
			if strings.HasPrefix(name, q.Prefix) {
				q.Names = append(q.Names, name)
			}
		}
	}
	for _, name := range q.Names {
		if err := s.Dial(name, q.Dials); err != nil {
			reply(w, nil, err)
			return
		}
	}
	reply(w, q.Names, nil)
}

// adminRequests gives the counts of each cluster, or with ?sum=true of all together, and forgets them if it is to.
func (s *Server) adminRequests(reset bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		counts := map[string][]dial.Count{}
		for _, name := range s.fleet.names() {
			if runtime := s.fleet.get(name); runtime != nil {
				if c := runtime.counters.Read(reset); len(c) > 0 {
					counts[name] = c
				}
			}
		}
		if r.URL.Query().Get("sum") == "true" {
			reply(w, sum(counts), nil)
			return
		}
		reply(w, counts, nil)
	}
}

func sum(counts map[string][]dial.Count) []dial.Count {
	all := map[dial.Count]uint64{}
	for _, list := range counts {
		for _, c := range list {
			all[dial.Count{Verb: c.Verb, Agent: c.Agent}] += c.N
		}
	}
	out := make([]dial.Count, 0, len(all))
	for c, n := range all {
		c.N = n
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b dial.Count) int { return cmp.Or(cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Verb, b.Verb)) })
	return out
}

// Stats are figures of the simulator.
func (s *Server) Stats() Stats {
	out := Stats{Connections: s.connections.Load(), Pending: s.fleet.world.Pending()}
	out.Contents, out.Bytes = content.Stats()
	out.Remembered, out.Merges = s.fleet.world.Merges()
	for _, name := range s.fleet.names() {
		if r := s.fleet.get(name); r != nil {
			out.Runtimes++
			out.Objects += r.cluster.Count()
		}
	}
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	out.HeapBytes = m.HeapAlloc
	return out
}
