package cli_test

import (
	"crypto/tls"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/rogpeppe/go-internal/testscript"
)

// servers are those that a script has started, by name.
type servers map[string]*httptest.Server

// serversKey finds them among the values of a script.
type serversKey struct{}

func serversOf(ts *testscript.TestScript) servers {
	return ts.Value(serversKey{}).(servers) //nolint:forcetypeassert // Setup puts it there
}

// start runs a server until the script's end, or until it says down, and puts its host and port into a variable. An https server's
// authority is NAME.pem in the script's folder.
func (s servers) start(ts *testscript.TestScript, name string, h http.Handler, secure bool) *httptest.Server {
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes that end here on purpose
	if secure {
		srv.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
		srv.StartTLS()
		ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
		ts.Check(os.WriteFile(ts.MkAbs(name+".pem"), ca, 0o600))
	} else {
		srv.Start()
	}
	ts.Defer(srv.Close)
	ts.Setenv(name, srv.Listener.Addr().String())
	s[name] = srv
	return srv
}

// serveFiles serves the script's folder at $URL, or over https at $NAME.
func serveFiles(ts *testscript.TestScript, _ bool, args []string) {
	files := http.FileServer(http.Dir(ts.Getenv("WORK")))
	if len(args) == 1 {
		serversOf(ts).start(ts, args[0], files, true)
		return
	}
	ts.Setenv("URL", serversOf(ts).start(ts, "HTTP", files, false).URL)
}

// serveRegistry runs a registry in memory at $NAME; with a second argument it asks for user me and that password.
func serveRegistry(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: registry NAME [PASSWORD]")
	}
	h := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	if len(args) == 2 {
		h = guarded(h, args[1])
	}
	serversOf(ts).start(ts, args[0], h, true)
}

// guarded asks for a password.
func guarded(next http.Handler, want string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user == "me" && password == want {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Www-Authenticate", `Basic realm="test"`)
		w.WriteHeader(http.StatusUnauthorized)
	})
}

// serveGit commits a folder to a repository, tagged v1, and serves it at https://$NAME/repo.git.
func serveGit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: git NAME DIR")
	}
	git, err := exec.LookPath("git")
	ts.Check(err)
	root := ts.MkAbs("git-" + args[0])
	ts.Check(os.MkdirAll(root, 0o750))
	env := []string{"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null"}
	run := func(dir, line string) {
		cmd := exec.Command(git, strings.Fields(line)...)
		cmd.Dir = dir
		cmd.Env = append(append(os.Environ(), env...), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a",
			"GIT_COMMITTER_EMAIL=a@example.com", "GIT_AUTHOR_DATE=2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE=2026-01-01T00:00:00Z")
		if out, err := cmd.CombinedOutput(); err != nil {
			ts.Fatalf("git %s: %v\n%s", line, err, out)
		}
	}
	run(root, "init -q --bare -b main repo.git")
	work := ts.MkAbs(args[1])
	run(work, "init -q -b main")
	run(work, "add -A")
	run(work, "commit -q -m it")
	run(work, "tag v1")
	run(work, "push -q "+root+"/repo.git main v1")
	serversOf(ts).start(ts, args[0], &cgi.Handler{
		Path: git, Args: []string{"http-backend"}, Dir: root, Stderr: io.Discard,
		Env: append(env, "GIT_PROJECT_ROOT="+root, "GIT_HTTP_EXPORT_ALL=1"),
	}, true)
}

// down ends servers: nobody answers where they were.
func down(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		srv := serversOf(ts)[name]
		if srv == nil {
			ts.Fatalf("there is no server %s", name)
		}
		srv.CloseClientConnections()
		srv.Close()
	}
}
