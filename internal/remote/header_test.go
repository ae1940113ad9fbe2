package remote

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"
)

// What is the same in each header is taken out of a configuration only where client-go has nothing to decide.
func TestTakeHeader(t *testing.T) {
	t.Parallel()
	agent := http.Header{"User-Agent": {"us"}}
	for name, tt := range map[string]struct {
		cfg   rest.Config
		want  http.Header
		token string // that is left for client-go
	}{
		"Nothing":        {rest.Config{}, agent, ""},
		"Token":          {rest.Config{BearerToken: "t"}, http.Header{"User-Agent": {"us"}, "Authorization": {"Bearer t"}}, ""},
		"TokenAndFile":   {rest.Config{BearerToken: "t", BearerTokenFile: "/f"}, agent, "t"},
		"TokenAndName":   {rest.Config{BearerToken: "t", Username: "n"}, agent, "t"},
		"TokenAndExec":   {rest.Config{BearerToken: "t", ExecProvider: &api.ExecConfig{}}, agent, "t"},
		"TokenAndPlugin": {rest.Config{BearerToken: "t", AuthProvider: &api.AuthProviderConfig{}}, agent, "t"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := tt.cfg
			if diff := cmp.Diff(tt.want, takeHeader(&cfg, "us")); diff != "" || cfg.BearerToken != tt.token || cfg.UserAgent != "" {
				t.Errorf("left are token %q, agent %q; header: %s", cfg.BearerToken, cfg.UserAgent, diff)
			}
		})
	}
}

// Each way to say who one is arrives at the server; what a request says itself stays, and the request is not changed.
func TestCredentialsArrive(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		cfg  rest.Config
		own  http.Header
		want map[string]string
	}{
		"Token":     {rest.Config{BearerToken: "t"}, nil, map[string]string{"Authorization": "Bearer t", "User-Agent": "us"}},
		"Basic":     {rest.Config{Username: "n", Password: "p"}, nil, map[string]string{"Authorization": "Basic bjpw", "User-Agent": "us"}},
		"As":        {rest.Config{BearerToken: "t", Impersonate: rest.ImpersonationConfig{UserName: "u"}}, nil, map[string]string{"Authorization": "Bearer t", "Impersonate-User": "u"}},
		"Own":       {rest.Config{BearerToken: "t"}, http.Header{"Authorization": {"Bearer own"}, "User-Agent": {"them"}}, map[string]string{"Authorization": "Bearer own", "User-Agent": "them"}},
		"Anonymous": {rest.Config{}, nil, map[string]string{"Authorization": "", "User-Agent": "us"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got http.Header
			srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Clone() }))
			defer srv.Close()
			cfg := tt.cfg
			cfg.Host = srv.URL
			c, err := New(&cfg, Options{UserAgent: "us"})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/version", nil)
			if err != nil {
				t.Fatal(err)
			}
			if tt.own != nil {
				req.Header = tt.own
			}
			before := req.Header.Clone()
			resp, err := c.gate.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			if err := resp.Body.Close(); err != nil {
				t.Fatal(err)
			}
			for field, want := range tt.want {
				if got.Get(field) != want {
					t.Errorf("%s is %q, want %q", field, got.Get(field), want)
				}
			}
			if diff := cmp.Diff(before, req.Header); diff != "" {
				t.Errorf("the request was changed: %s", diff)
			}
		})
	}
}
