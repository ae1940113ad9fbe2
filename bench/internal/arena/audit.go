package arena

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kyma-project/mothership/internal/infra/local"
)

// Requests are numbers of requests by verb, as the API server names them (get, list, watch, create, update, patch, delete …).
// What leads to no resource is "discovery", or "version", or "other"; server-side apply is "apply". A dry run has "-dryrun"
// behind its verb.
type Requests map[string]int

const dryRun = "-dryrun"

// Total number of requests.
func (r Requests) Total() int {
	total := 0
	for _, n := range r {
		total += n
	}
	return total
}

// Writes is the number of requests that can change something.
func (r Requests) Writes() int {
	n := 0
	for _, verb := range []string{"create", "update", "patch", "apply", "delete", "deletecollection"} {
		n += r[verb]
	}
	return n
}

// Verbs are the verbs in use, sorted.
func (r Requests) Verbs() []string { return slices.Sorted(maps.Keys(r)) }

// markerUser asks for something after a run, to know that the log has reached there.
const markerUser = "bench-marker"

// auditPolicy logs requests of the users only, at their end, and watches also at their beginning, as they may end late.
func auditPolicy(users []string) []byte {
	list, _ := json.Marshal(users) // strings always can be
	return fmt.Appendf(nil, `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": [
  {"level": "Metadata", "users": %s}, {"level": "None"}]}`, list)
}

// audit reads the server's audit log (https://kubernetes.io/docs/reference/config-api/apiserver-audit.v1/).
type audit struct {
	file    *os.File
	lines   *bufio.Reader
	part    []byte // of a line that is being written
	marker  *http.Client
	host    string
	markers int
}

func openAudit(log string, srv *local.Server) (*audit, error) {
	cfg, err := srv.UserConfig(markerUser, "system:masters")
	if err != nil {
		return nil, err
	}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	client.Timeout = callTimeout
	file, err := os.Open(log)
	if err != nil {
		return nil, fmt.Errorf("opening the audit log: %w", err)
	}
	return &audit{file: file, lines: bufio.NewReader(file), marker: client, host: cfg.Host}, nil
}

func (a *audit) close() error {
	a.marker.CloseIdleConnections()
	return a.file.Close()
}

// event is what is read of an audit event.
type event struct {
	AuditID string `json:"auditID"`
	Verb    string `json:"verb"`
	URI     string `json:"requestURI"`
	User    struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef *struct {
		Resource string `json:"resource"`
	} `json:"objectRef"`
}

// Count counts the requests of a user since the last call. Call it when the user's process has ended.
func (a *Arena) Count(ctx context.Context, user string) (Requests, error) {
	marker, err := a.audit.mark(ctx)
	if err != nil {
		return nil, fmt.Errorf("marking the audit log: %w", err)
	}
	out, seen := Requests{}, map[string]bool{}
	for {
		e, err := a.audit.next(ctx)
		switch {
		case err != nil:
			return nil, fmt.Errorf("reading the audit log: %w", err)
		case e.User.Username == markerUser && e.URI == marker:
			return out, nil
		case e.User.Username == user && !seen[e.AuditID]:
			seen[e.AuditID] = true
			out[e.name()]++
		}
	}
}

// mark asks for an address that nobody else asks for.
func (a *audit) mark(ctx context.Context) (string, error) {
	a.markers++
	path := fmt.Sprintf("/version?marker=%d", a.markers)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.host+path, nil)
	if err != nil {
		return "", err
	}
	resp, err := a.marker.Do(req)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return path, errors.Join(err, resp.Body.Close())
}

const (
	auditPoll = 5 * time.Millisecond
	// auditPolls bounds the wait for an event to ten seconds.
	auditPolls = 2000
)

// next waits for the next event.
func (a *audit) next(ctx context.Context) (event, error) {
	var e event
	tick := time.NewTicker(auditPoll)
	defer tick.Stop()
	for range auditPolls {
		line, err := a.lines.ReadBytes('\n')
		a.part = append(a.part, line...)
		if err == nil {
			err = json.Unmarshal(bytes.TrimSpace(a.part), &e)
			a.part = a.part[:0]
			return e, err
		}
		if !errors.Is(err, io.EOF) {
			return e, err
		}
		select {
		case <-ctx.Done():
			return e, context.Cause(ctx)
		case <-tick.C:
		}
	}
	return e, io.ErrUnexpectedEOF
}

// name is the verb that a request is counted under.
func (e event) name() string {
	u, err := url.Parse(e.URI)
	if err != nil {
		return "other"
	}
	name := e.Verb
	switch {
	case e.ObjectRef != nil:
		if e.Verb == "patch" && u.Query().Has("force") {
			name = "apply"
		}
	case u.Path == "/version":
		name = "version"
	case u.Path == "/api", u.Path == "/apis", strings.HasPrefix(u.Path, "/api/"), strings.HasPrefix(u.Path, "/apis/"):
		name = "discovery"
	case strings.HasPrefix(u.Path, "/openapi/"):
		name = "openapi"
	default:
		name = "other"
	}
	if len(u.Query()["dryRun"]) > 0 {
		name += dryRun
	}
	return name
}
