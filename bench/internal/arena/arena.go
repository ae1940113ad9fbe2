// Package arena is where contestants meet: one real API server that counts the requests of each, and that is made as clean
// after a run as it was before.
//
// No controllers run there: they would work at the same time as what is measured. Requests are counted by the server's audit
// log, per user, at the metadata level, for all contestants alike.
//
// It may import internal/infra/local of the root module, bench/internal/workload and client-go.
package arena

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kyma-project/mothership/internal/infra/local"
)

// callTimeout bounds every request of the arena's own.
const callTimeout = 30 * time.Second

// Arena is a running API server. It is used by one goroutine.
type Arena struct {
	srv    *local.Server
	client *http.Client
	audit  *audit
}

// Start starts the server, with an audit log in the folder that counts the requests of the users. Close it when done.
func Start(ctx context.Context, folder string, users []string) (*Arena, error) {
	log, policy := filepath.Join(folder, "audit.log"), filepath.Join(folder, "audit-policy.yaml")
	if err := os.WriteFile(policy, auditPolicy(append([]string{markerUser}, users...)), 0o600); err != nil {
		return nil, fmt.Errorf("writing the audit policy: %w", err)
	}
	srv, err := local.Start(ctx, local.Options{APIServerArgs: []string{
		"--audit-policy-file=" + policy, "--audit-log-path=" + log, "--audit-log-maxsize=10000",
	}})
	if err != nil {
		return nil, err
	}
	a := &Arena{srv: srv}
	if a.client, err = rest.HTTPClientFor(srv.Config()); err == nil {
		a.client.Timeout = callTimeout
		a.audit, err = openAudit(log, srv)
	}
	if err != nil {
		return nil, errors.Join(err, srv.Close())
	}
	return a, nil
}

// Close stops the server.
func (a *Arena) Close() error {
	a.client.CloseIdleConnections()
	return errors.Join(a.audit.close(), a.srv.Close())
}

// WriteKubeconfig writes a kubeconfig for a user, who may do everything.
func (a *Arena) WriteKubeconfig(user, file string) error {
	cfg, err := a.srv.UserConfig(user, "system:masters")
	if err != nil {
		return err
	}
	data, err := local.Kubeconfig(cfg)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("writing a kubeconfig: %w", err)
	}
	return os.WriteFile(file, data, 0o600)
}

// Version of the server, as v1.36.3.
func (a *Arena) Version(ctx context.Context) (string, error) {
	var info struct {
		GitVersion string `json:"gitVersion"`
	}
	_, err := a.call(ctx, http.MethodGet, "/version", "", &info)
	return info.GitVersion, err
}

// errStatus is an answer that was not expected.
var errStatus = errors.New("unexpected status")

// call makes a request as the administrator. The answer is decoded into out unless that is nil. A status of 404 is no error;
// of others, those from 400 are.
func (a *Arena) call(ctx context.Context, method, path, body string, out any) (int, error) {
	req, err := http.NewRequestWithContext(ctx, method, a.srv.Config().Host+path, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusBadRequest && resp.StatusCode != http.StatusNotFound {
		return resp.StatusCode, fmt.Errorf("%s %s: %w %s", method, path, errStatus, resp.Status)
	}
	if out == nil || resp.StatusCode == http.StatusNotFound {
		return resp.StatusCode, nil
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return resp.StatusCode, fmt.Errorf("%s %s: %w", method, path, err)
	}
	return resp.StatusCode, nil
}
