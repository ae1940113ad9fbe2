package mothership_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kyma-project/mothership"
)

// errKilled stands for the end of the process in the middle of a call.
var errKilled = errors.New("killed")

// TestInterruptedInstall ends an install at each of its requests in turn, and installs again.
func TestInterruptedInstall(t *testing.T) {
	t.Parallel()
	s := setup(t)
	p := newProxy(t, s.cfg)
	s.cfg = p.cfg
	v1 := s.module("web", web+"---"+widgets+"---"+widget)
	v2 := s.module("web", strings.Replace(webDropped, "hello", "servus", 1)+"---"+widgets+"---"+strings.Replace(widget, "one", "two", 1))
	for _, at := range []struct{ name, method, path string }{
		{"Inventory", http.MethodPatch, "/configmaps/" + s.namespace + ".web"},
		{"Definition", http.MethodPatch, "/customresourcedefinitions/"},
		{"Waiting", http.MethodGet, "/apis/" + s.namespace + ".test/v1"},
		{"BuiltIn", http.MethodPatch, "/deployments/web"},
		{"Custom", http.MethodPatch, "/widgets/one"},
	} {
		s.killed(p, v1, at.method, at.path)
		s.converges(at.name, v1)
		s.uninstall(v1)
	}
	for _, at := range []struct{ name, method, path string }{
		{"ChangedObject", http.MethodPatch, "/configmaps/web"},
		{"NewObject", http.MethodPatch, "/widgets/two"},
		{"PruneCustom", http.MethodDelete, "/widgets/one"},
		{"PruneAccount", http.MethodDelete, "/serviceaccounts/web"},
	} {
		s.install(v1)
		s.killed(p, v2, at.method, at.path)
		s.converges(at.name, v2)
	}
	for _, at := range []struct{ name, method, path string }{
		{"RemoveCustom", http.MethodDelete, "/widgets/"},
		{"RemoveDeployment", http.MethodDelete, "/deployments/web"},
		{"RemoveDefinition", http.MethodDelete, "/customresourcedefinitions/"},
		{"RemoveInventory", http.MethodDelete, "/configmaps/" + s.namespace + ".web"},
	} {
		s.install(v2)
		s.killedRemoving(p, v2, at.method, at.path)
		s.uninstall(v2)
		if left := s.members(v2); left != "" || s.parent(v2) != nil {
			t.Errorf("%s: left: %s", at.name, left)
		}
		s.install(v2)
		s.killedRemoving(p, v2, at.method, at.path)
		s.converges(at.name, v2)
	}
}

// killing ends the caller's context when a request arrives, before or after it took effect: both happen.
func killing(kill context.CancelCauseFunc, method, path string) fault {
	return at(method, path, func(_ http.ResponseWriter, r *http.Request) bool {
		kill(errKilled)
		return len(r.URL.Path)%2 == 0
	})
}

// killed installs until a request is sent.
func (s *site) killed(p *proxy, m mothership.Module, method, path string) {
	s.t.Helper()
	ctx, kill := context.WithCancelCause(s.t.Context())
	defer kill(nil)
	p.has(killing(kill, method, path))
	defer p.has(nil)
	if _, err := s.installer.Install(ctx, s.cfg, m, mothership.InstallOptions{Timeout: 30 * time.Second}); !errors.Is(err, errKilled) {
		s.t.Errorf("at %s %s: error = %v, want that it was killed", method, path, err)
	}
}

// killedRemoving uninstalls until a request is sent.
func (s *site) killedRemoving(p *proxy, m mothership.Module, method, path string) {
	s.t.Helper()
	ctx, kill := context.WithCancelCause(s.t.Context())
	defer kill(nil)
	p.has(killing(kill, method, path))
	defer p.has(nil)
	if _, err := s.installer.Uninstall(ctx, s.cfg, m, mothership.UninstallOptions{Timeout: 30 * time.Second}); !errors.Is(err, errKilled) {
		s.t.Errorf("at %s %s: error = %v, want that it was killed", method, path, err)
	}
}

// converges installs by another Installer, as another process would, and finds that nothing is missing or left over.
func (s *site) converges(name string, m mothership.Module) {
	s.t.Helper()
	s.installer = mothership.New(mothership.Options{})
	s.install(m)
	again := s.install(m)
	if again.Changed() || writes(again.Requests) != 0 {
		s.t.Errorf("%s: again: %v", name, actions(again.Objects))
	}
	want := map[string]bool{}
	for _, e := range again.Objects {
		want[e.Object.Name] = true
	}
	for line := range strings.Lines(s.members(m)) {
		_, object, _ := strings.Cut(strings.TrimSpace(line), "/")
		if !want[object] && !strings.HasPrefix(line, "endpointslice") {
			s.t.Errorf("%s: left over: %s", name, line)
		}
	}
	if diff := cmp.Diff(len(again.Objects), again.Count(mothership.ActionNone)); diff != "" {
		s.t.Errorf("%s: objects: %s", name, diff)
	}
}

func TestTimeoutOfACall(t *testing.T) {
	t.Parallel()
	s := setup(t)
	p := newProxy(t, s.cfg)
	p.has(hangs)
	s.cfg = p.cfg
	m := s.module("web", web)
	calls := map[string]func() error{
		"Install": func() error {
			_, err := s.installer.Install(t.Context(), s.cfg, m, mothership.InstallOptions{Timeout: 300 * time.Millisecond})
			return err
		},
		"Diff": func() error {
			_, err := s.installer.Diff(t.Context(), s.cfg, m, mothership.CompareOptions{Timeout: 300 * time.Millisecond})
			return err
		},
		"Verify": func() error {
			_, err := s.installer.Verify(t.Context(), s.cfg, m, mothership.CompareOptions{Timeout: 300 * time.Millisecond})
			return err
		},
		"Uninstall": func() error {
			_, err := s.installer.Uninstall(t.Context(), s.cfg, m, mothership.UninstallOptions{Timeout: 300 * time.Millisecond})
			return err
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			err := call()
			if err == nil {
				t.Fatal("no error")
			}
			wants(t, err.Error(), "the time given with the call is over", "reading ")
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}
