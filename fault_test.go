package mothership_test

import (
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/kyma-project/mothership"
	"github.com/kyma-project/mothership/internal/cluster"
)

// Two versions of a module: a is changed, c is dropped, d is new.
const (
	lettersV1 = `
{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {v: "1"}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {v: "1"}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {v: "1"}}
`
	lettersV2 = `
{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {v: "2"}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {v: "1"}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: d}, data: {v: "1"}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: d}}
`
)

// serverFaults are what a server can do to an upgrade of the letters. touched says that something was applied before or
// beside the fault: it must then be a part of the upgrade, and nothing may be pruned.
var serverFaults = map[string]struct {
	fault   fault
	is      error
	words   []string
	touched bool
}{
	"Unauthorized":       {at("", "", says(401, "Unauthorized", "Unauthorized")), cluster.ErrUnauthorized, []string{"401 unauthorized"}, false},
	"Down":               {at("", "", refuses), cluster.ErrUnreachable, []string{"the server's version", "unreachable"}, false},
	"Hangs":              {at("", "", hangs), cluster.ErrTimeout, []string{"the server's version", "no complete answer in time"}, false},
	"Page":               {at("", "", page(200, "text/html", "<html>log in</html>")), cluster.ErrUnexpected, []string{"unexpected answer", "text/html"}, false},
	"Redirected":         {at("", "", page(302, "text/html", "")), cluster.ErrUnexpected, []string{"unexpected answer"}, false},
	"ListForbidden":      {at("GET", "configmaps", says(403, "Forbidden", "no list for you")), cluster.ErrForbidden, []string{"403 forbidden", "ConfigMap", "no list for you"}, false},
	"ListHangs":          {at("GET", "api/v1/configmaps", hangs), cluster.ErrTimeout, []string{"listing configmaps", "timed out"}, false},
	"ListUnavailable":    {at("GET", "api/v1/configmaps", says(503, "ServiceUnavailable", "etcd is away")), cluster.ErrUnavailable, []string{"listing configmaps", "503 unavailable", "etcd is away"}, false},
	"ListThrottled":      {at("GET", "api/v1/configmaps", says(429, "TooManyRequests", "slow down")), cluster.ErrThrottled, []string{"listing configmaps", "429 throttled"}, false},
	"HalfAList":          {at("GET", "api/v1/configmaps", page(200, "application/json", `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{},"items":[`)), cluster.ErrTruncated, []string{"listing configmaps", "truncated answer"}, false},
	"ListWithoutItems":   {at("GET", "api/v1/configmaps", page(200, "application/json", `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{}}`)), cluster.ErrTruncated, []string{"listing configmaps", "truncated answer"}, false},
	"ListNotFoundByPage": {at("GET", "api/v1/configmaps", page(404, "text/plain", "404 page not found")), cluster.ErrUnexpected, []string{"listing configmaps", "404 unexpected answer"}, false},
	"ApplyUnauthorized":  {at("PATCH", "configmaps/d", says(401, "Unauthorized", "Unauthorized")), cluster.ErrUnauthorized, []string{"$NS/d", "401 unauthorized"}, true},
	"ApplyForbidden":     {at("PATCH", "configmaps/d", says(403, "Forbidden", "not you")), cluster.ErrForbidden, []string{"$NS/d", "403 forbidden", "not you"}, true},
	"ApplyConflict":      {at("PATCH", "configmaps/d", says(409, "Conflict", "changed meanwhile")), cluster.ErrConflict, []string{"$NS/d", "409 conflict", "changed meanwhile"}, true},
	"ApplyInvalid":       {at("PATCH", "configmaps/d", says(422, "Invalid", "data.v: no")), cluster.ErrInvalid, []string{"$NS/d", "422 invalid", "data.v: no"}, true},
	"ApplyThrottled":     {at("PATCH", "configmaps/d", says(429, "TooManyRequests", "slow down")), cluster.ErrThrottled, []string{"$NS/d", "429 throttled"}, true},
	"ApplyFails":         {at("PATCH", "configmaps/d", says(500, "InternalError", "etcd broke")), cluster.ErrUnavailable, []string{"$NS/d", "500 unavailable", "etcd broke"}, true},
	"ApplyHangs":         {at("PATCH", "configmaps/d", hangs), cluster.ErrTimeout, []string{"$NS/d", "timed out"}, true},
	"ApplyBreaksOff":     {at("PATCH", "configmaps/d", refuses), cluster.ErrUnreachable, []string{"$NS/d", "unreachable"}, true},
	"InventoryForbidden": {at("PATCH", "mothership-system", says(403, "Forbidden", "not there")), cluster.ErrForbidden, []string{"inventory of module $NS/letters", "403 forbidden"}, false},
	"PruneForbidden":     {at("DELETE", "configmaps/c", says(403, "Forbidden", "it stays")), cluster.ErrForbidden, []string{"$NS/c", "403 forbidden", "it stays"}, true},
}

func TestServerFaults(t *testing.T) {
	t.Parallel()
	for name, test := range serverFaults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			p := newProxy(t, s.cfg)
			s.cfg = p.cfg
			m := s.module("letters", lettersV1)
			s.install(m)
			before := s.state(m)

			p.has(test.fault)
			m.Template.Source = s.module("letters", lettersV2).Template.Source
			hasty := mothership.New(mothership.Options{Connection: mothership.Connection{CallTimeout: 500 * time.Millisecond, Retries: 1}})
			start := time.Now()
			r, err := hasty.Install(t.Context(), s.cfg, m, mothership.InstallOptions{Timeout: 4 * time.Second})
			if err == nil || p.strikes() == 0 {
				t.Fatalf("no error, %d faults", p.strikes())
			}
			if took := time.Since(start); took > 12*time.Second {
				t.Errorf("the error took %s", took)
			}
			if !errors.Is(err, test.is) {
				t.Errorf("error = %v, want %v", err, test.is)
			}
			for _, w := range test.words {
				wants(t, err.Error(), s.fill(w))
			}
			if r != nil && r.Count(mothership.ActionPrune) != 0 {
				t.Errorf("pruned: %v", actions(r.Objects))
			}
			after := s.state(m)
			if test.touched {
				for _, kept := range []string{"ConfigMap/b", "ConfigMap/c"} {
					if before[kept] != after[kept] {
						t.Errorf("%s was %q and is %q", kept, before[kept], after[kept])
					}
				}
			} else if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("something was changed (-before +after):\n%s", diff)
			}

			p.has(nil)
			s.install(m)
			if diff := cmp.Diff([]string{"ConfigMap/a", "ConfigMap/b", "ConfigMap/d", "parent"}, sortedKeys(s.state(m))); diff != "" {
				t.Errorf("after the fault (-want +got):\n%s", diff)
			}
			if r := s.install(m); r.Changed() || writes(r.Requests) != 0 {
				t.Errorf("again: %v, %v", actions(r.Objects), r.Requests)
			}
		})
	}
}

func TestPassingFaultsAreOutlasted(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]fault{
		"Throttled":      says(429, "TooManyRequests", "slow down"),
		"InternalError":  says(500, "InternalError", "etcd"),
		"Unavailable":    says(503, "ServiceUnavailable", "starting"),
		"Conflict":       at("PATCH", "configmaps/", says(409, "Conflict", "changed meanwhile")),
		"Webhook":        at("PATCH", "", says(500, "InternalError", `Internal error occurred: failed calling webhook "w.test": connection refused`)),
		"NoAnswer":       refuses,
		"HalfAList":      at("GET", "api/v1/configmaps", page(200, "application/json", `{"metadata":{},"items":[{"meta`)),
		"HangsOnce":      times(1, hangs),
		"DeletionFailed": at("DELETE", "", says(500, "InternalError", "etcd")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			p := newProxy(t, s.cfg)
			s.installer = mothership.New(mothership.Options{Connection: mothership.Connection{CallTimeout: time.Second}})
			m := s.module("letters", lettersV1)
			s.install(m)
			s.cfg = p.cfg
			p.has(times(3, f))
			m.Template.Source = s.module("letters", lettersV2).Template.Source
			s.install(m)
			if p.strikes() == 0 {
				t.Error("there was no fault")
			}
			p.has(times(2, f))
			s.uninstall(m)
			if left := s.state(m); len(left) != 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

func TestListOfSeveralPagesBreaksOff(t *testing.T) {
	t.Parallel()
	s := setup(t)
	p := newProxy(t, s.cfg)
	m := s.module("letters", lettersV1)
	s.install(m)
	before := s.state(m)
	first := at("GET", "api/v1/configmaps", func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("continue") != "" {
			return says(500, "InternalError", "the second page is gone")(w, r)
		}
		return page(200, "application/json", `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"1","continue":"more"},"items":[{"metadata":{"name":"a"}}]}`)(w, r)
	})
	p.has(first)
	s.cfg = p.cfg
	m.Template.Source = s.module("letters", lettersV2).Template.Source
	_, err := s.installer.Install(t.Context(), s.cfg, m, mothership.InstallOptions{Timeout: 3 * time.Second})
	if err == nil {
		t.Fatal("no error")
	}
	wants(t, err.Error(), "listing configmaps", "the second page is gone")
	if diff := cmp.Diff(before, s.state(m)); diff != "" {
		t.Errorf("something was changed (-before +after):\n%s", diff)
	}
}

func TestUnusableConnections(t *testing.T) {
	t.Parallel()
	s := setup(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "https://" + listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	m := s.module("web", web)
	for name, test := range map[string]struct {
		change func(*rest.Config)
		words  []string
	}{
		"Refused":     {func(c *rest.Config) { c.Host = closed }, []string{"unreachable", "refused"}},
		"UnknownHost": {func(c *rest.Config) { c.Host = "https://no-such-host.invalid" }, []string{"unreachable", "no-such-host.invalid"}},
		"OtherCA":     {func(c *rest.Config) { c.CAData = newProxy(t, s.cfg).cfg.CAData }, []string{"unreachable", "certificate"}},
		"WrongToken": {func(c *rest.Config) {
			c.CertData, c.KeyData, c.BearerToken = nil, nil, "not-a-token"
		}, []string{"401 unauthorized"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := rest.CopyConfig(s.cfg)
			test.change(cfg)
			start := time.Now()
			_, err := s.installer.Install(t.Context(), cfg, m, mothership.InstallOptions{Timeout: 20 * time.Second})
			if err == nil {
				t.Fatal("no error")
			}
			wants(t, err.Error(), test.words...)
			if strings.Contains(err.Error(), "not-a-token") {
				t.Errorf("the error has the token: %v", err)
			}
			if took := time.Since(start); took > 15*time.Second {
				t.Errorf("the error took %s", took)
			}
		})
	}
}
