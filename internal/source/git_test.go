package source

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kyma-project/mothership/api/v1beta2"
)

func TestGit(t *testing.T) {
	t.Parallel()
	repo := newRepository(t, "chart/Chart.yaml", "name: demo\n", "chart/templates/a.yaml", "a: 1\n", "chart/.helmignore", "*.bak\n",
		"chart/x.bak", "junk", "deploy/a.yaml", "a: 1\n", "deploy/README.md", "read me", "one.yaml", "one: 1\n",
		"base/kustomization.yaml", "resources: [a.yaml]\n", "base/a.yaml", "a: 1\n",
		"overlays/prod/kustomization.yaml", "resources: [../../base]\n")
	first := git(t, repo.work, "rev-parse", "HEAD")
	git(t, repo.work, "tag", "light")
	git(t, repo.work, "tag", "-a", "v1", "-m", "release")
	git(t, repo.work, "branch", "both")
	git(t, repo.work, "tag", "both")
	git(t, repo.work, "branch", "feature/one")
	repo.put(t, "deploy/a.yaml", "a: 2\n")
	second := repo.commit(t)
	srv := serveTLS(t, repo.handler(t))

	tests := map[string]struct {
		kind      Kind
		ref, path string
		revision  string
		root      string
		want      []string
		err       error
		says      string
	}{
		"DefaultBranch": {kind: Manifests, path: "deploy", revision: "HEAD@sha1:" + second, want: []string{"a.yaml"}},
		"Branch":        {kind: Manifests, ref: "main", path: "deploy", revision: "main@sha1:" + second, want: []string{"a.yaml"}},
		"BranchInFull":  {kind: Manifests, ref: "refs/heads/feature/one", path: "deploy/", revision: "refs/heads/feature/one@sha1:" + first, want: []string{"a.yaml"}},
		"BranchSlash":   {kind: Manifests, ref: "feature/one", path: "./deploy", revision: "feature/one@sha1:" + first, want: []string{"a.yaml"}},
		"Tag":           {kind: Manifests, ref: "light", path: "deploy", revision: "light@sha1:" + first, want: []string{"a.yaml"}},
		"AnnotatedTag":  {kind: Manifests, ref: "v1", path: "deploy", revision: "v1@sha1:" + first, want: []string{"a.yaml"}},
		"Commit":        {kind: Manifests, ref: first, path: "deploy", revision: "sha1:" + first, want: []string{"a.yaml"}},
		"Chart":         {kind: Chart, path: "chart", revision: "HEAD@sha1:" + second, want: []string{".helmignore", "Chart.yaml", "templates/a.yaml"}},
		"File":          {kind: Manifests, path: "one.yaml", revision: "HEAD@sha1:" + second, want: []string{"one.yaml"}},
		"Kustomization": {kind: Kustomize, path: "overlays/prod", revision: "HEAD@sha1:" + second, root: "overlays/prod",
			want: []string{"base/a.yaml", "base/kustomization.yaml", "overlays/prod/kustomization.yaml"}},
		"KustomizationBelow": {kind: Kustomize, path: "base", revision: "HEAD@sha1:" + second, want: []string{"a.yaml", "kustomization.yaml"}},
		"BothBranchAndTag":   {kind: Manifests, ref: "both", err: ErrInvalid, says: `"both" is both a branch and a tag: say refs/heads/both or refs/tags/both`},
		"NoSuchBranch":       {kind: Manifests, ref: "nope", err: ErrNotFound, says: `no branch or tag "nope"`},
		"NoSuchFolder":       {kind: Manifests, path: "nope", err: ErrNotFound, says: `entry "nope" is not in the repository`},
		"NoChart":            {kind: Chart, path: "deploy", err: ErrNotFound, says: `"Chart.yaml" is missing`},
		"NoKustomization":    {kind: Kustomize, err: ErrNotFound, says: `holds no kustomization.yaml`},
		"PathLeaves":         {kind: Manifests, path: "../x", err: ErrUnsafe, says: `leaves the archive`},
		"OtherCommit":        {kind: Manifests, ref: strings.Repeat("a", 40), err: ErrUnsupported, says: "server gives branches and tags only"},
	}
	m, _ := hurried(Options{})
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ref := gitRef(tc.kind, srv, tc.ref, tc.path)
			tree, err := m.Fetch(t.Context(), ref)
			if tc.err != nil {
				wantError(t, err, tc.err, "fetching "+srv.URL+"/repo.git", tc.says)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			wantPaths(t, tree, tc.want...)
			if tc.root == "" {
				tc.root = "."
			}
			if tree.Revision != tc.revision || tree.Root != tc.root || tree.Trusted {
				t.Errorf("tree is %s at %s, trusted %t; want %s at %s", tree.Revision, tree.Root, tree.Trusted, tc.revision, tc.root)
			}
			if same, err := m.Current(t.Context(), ref, tree); err != nil || !same {
				t.Errorf("current is %t, %v", same, err)
			}
		})
	}
}

// A folder of a repository has the digest of the same folder on disk, so that one digest holds for both.
func TestGitDigestIsThatOfADirectory(t *testing.T) {
	t.Parallel()
	repo := newRepository(t, "chart/Chart.yaml", "name: demo\n", "chart/.helmignore", "*.bak\ntmp/\n", "chart/x.bak", "junk",
		"chart/tmp/x.yaml", "junk", "shared/v.yaml", "v: 1\n",
		"base/kustomization.yaml", "resources: [a.yaml]\n", "base/a.yaml", "a: 1\n", "overlays/prod/kustomization.yaml", "resources: [../../base]\n")
	symlink(t, repo.work, "Chart.yaml", "chart/link.yaml")
	repo.commit(t)
	srv := serveTLS(t, repo.handler(t))
	m, _ := hurried(Options{})
	for _, tc := range []struct {
		kind Kind
		path string
	}{{Chart, "chart"}, {Manifests, "base"}, {Kustomize, "overlays/prod"}} {
		local, err := m.Fetch(t.Context(), pathRef(tc.kind, filepath.Join(repo.work, tc.path)))
		if err != nil {
			t.Fatal(err)
		}
		ref := gitRef(tc.kind, srv, "main", tc.path)
		ref.Digest = local.Digest
		tree, err := m.Fetch(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		wantPaths(t, tree, paths(local)...)
		ref.Digest = BytesDigest(nil)
		_, err = m.Fetch(t.Context(), ref)
		wantError(t, err, ErrDigest, "verifying "+srv.URL+"/repo.git", local.Digest)
	}
}

func TestGitLinks(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		links map[string]string // name → target
		want  []string
		err   error
		says  string
	}{
		"File":        {links: map[string]string{"d/l.yaml": "../a.yaml"}, want: []string{"l.yaml", "own.yaml"}},
		"Folder":      {links: map[string]string{"d/l": "../sub"}, want: []string{"l/b.yaml", "own.yaml"}},
		"ThroughLink": {links: map[string]string{"d/l": "../sub", "d/m.yaml": "l/b.yaml"}, want: []string{"l/b.yaml", "m.yaml", "own.yaml"}},
		"OfLink":      {links: map[string]string{"d/l.yaml": "m.yaml", "d/m.yaml": "own.yaml"}, want: []string{"l.yaml", "m.yaml", "own.yaml"}},
		"NotWanted":   {links: map[string]string{"d/README": "own.yaml"}, want: []string{"own.yaml"}},
		"Absolute":    {links: map[string]string{"d/l.yaml": "/etc/passwd"}, err: ErrUnsafe, says: `is a link to the absolute path "/etc/passwd"`},
		"Leaves":      {links: map[string]string{"d/l.yaml": "../../../etc/passwd"}, err: ErrUnsafe, says: `which leaves the repository`},
		"Missing":     {links: map[string]string{"d/l.yaml": "nope"}, err: ErrNotFound, says: `does not exist`},
		"Circle":      {links: map[string]string{"d/l.yaml": "m.yaml", "d/m.yaml": "l.yaml"}, err: ErrUnsafe, says: `leads in a circle`},
		"FolderAbove": {links: map[string]string{"d/l": ".."}, err: ErrTooLarge, says: `folders deep`},
	}
	repo := newRepository(t)
	for name, tc := range tests {
		repo.put(t, name+"/a.yaml", "a: 1\n")
		repo.put(t, name+"/sub/b.yaml", "b: 1\n")
		repo.put(t, name+"/d/own.yaml", "own: 1\n")
		for link, target := range tc.links {
			symlink(t, repo.work, target, filepath.Join(name, link))
		}
	}
	repo.commit(t)
	srv := serveTLS(t, repo.handler(t))
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, _ := hurried(Options{Limits: Limits{Depth: 8}})
			tree, err := m.Fetch(t.Context(), gitRef(Manifests, srv, "", name+"/d"))
			if tc.err != nil {
				wantError(t, err, tc.err, tc.says)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			wantPaths(t, tree, tc.want...)
		})
	}
}

func TestGitSubmodule(t *testing.T) {
	t.Parallel()
	repo := newRepository(t, "d/a.yaml", "a: 1\n", "other/b.yaml", "b: 1\n")
	git(t, repo.work, "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+",d/sub")
	git(t, repo.work, "commit", "-q", "-m", "submodule")
	repo.publish(t)
	srv := serveTLS(t, repo.handler(t))
	m, _ := hurried(Options{})
	for _, kind := range []Kind{Chart, Kustomize} {
		path := "d"
		if kind == Kustomize {
			path = "d/sub"
		}
		_, err := m.Fetch(t.Context(), gitRef(kind, srv, "", path))
		wantError(t, err, ErrUnsupported, `"d/sub" is a submodule: copy (vendor) it into the repository`)
	}
	if _, err := m.Fetch(t.Context(), gitRef(Manifests, srv, "", "other")); err != nil {
		t.Errorf("a submodule elsewhere is nobody's business: %v", err)
	}
}

func TestGitLimits(t *testing.T) {
	t.Parallel()
	repo := newRepository(t, "d/a.yaml", strings.Repeat("a: 1\n", 1000), "deep/1/2/3/a.yaml", "a: 1\n")
	for i := range 30 {
		repo.put(t, "many/"+strings.Repeat("x", i+1)+".yaml", strings.Repeat("b", i))
	}
	repo.commit(t)
	srv := serveTLS(t, repo.handler(t))
	tests := map[string]struct {
		limits Limits
		path   string
		says   string
	}{
		"Pack":     {Limits{Download: 500}, "d", "larger than the limit of 500 bytes"},
		"File":     {Limits{FileBytes: 4000}, "d", `"a.yaml" is larger than the limit of 4000 bytes`},
		"Unpacked": {Limits{Bytes: 1200}, "d", "unpacks to more than"},
		"Entries":  {Limits{Files: 20}, "many", "holds more than 20 entries"},
		"Objects":  {Limits{Files: 1}, "many", "more than 20 objects"},
		"Depth":    {Limits{Depth: 2}, "deep", "more than 2 folders deep"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := New(Options{Limits: tc.limits}).Fetch(t.Context(), gitRef(Manifests, srv, "", tc.path))
			wantError(t, err, ErrTooLarge, tc.says)
		})
	}
}

func TestGitFollowsABranch(t *testing.T) {
	t.Parallel()
	repo := newRepository(t, "a.yaml", "a: 1\n")
	srv := serveTLS(t, repo.handler(t))
	m, _ := hurried(Options{})
	ref := gitRef(Manifests, srv, "main", "")
	old, err := m.Fetch(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	repo.put(t, "a.yaml", "a: 2\n")
	commit := repo.commit(t)
	if same, err := m.Current(t.Context(), ref, old); err != nil || same {
		t.Errorf("current is %t, %v", same, err)
	}
	tree, err := m.Fetch(t.Context(), ref)
	if err != nil || tree.Revision != "main@sha1:"+commit || string(tree.Files[0].Data) != "a: 2\n" {
		t.Errorf("tree is %+v, %v", tree, err)
	}
}

func TestGitAnyCommit(t *testing.T) {
	t.Parallel()
	repo := newRepository(t, "a.yaml", "a: 1\n")
	first := git(t, repo.work, "rev-parse", "HEAD")
	repo.put(t, "a.yaml", "a: 2\n")
	repo.commit(t)
	git(t, repo.bare(), "config", "uploadpack.allowReachableSHA1InWant", "true")
	srv := serveTLS(t, repo.handler(t))
	m, _ := hurried(Options{CacheDir: t.TempDir()})
	tree, err := m.Fetch(t.Context(), gitRef(Manifests, srv, first, ""))
	if err != nil || string(tree.Files[0].Data) != "a: 1\n" {
		t.Fatalf("tree is %+v, %v", tree, err)
	}
	before := srv.asked("")
	again, err := m.Fetch(t.Context(), gitRef(Manifests, srv, first, ""))
	if err != nil || again.Digest != tree.Digest || again.Revision != tree.Revision || srv.asked("") != before {
		t.Errorf("a commit that is on disk: %+v, %v, %d requests", again, err, srv.asked("")-before)
	}
	_, err = m.Fetch(t.Context(), gitRef(Manifests, srv, strings.Repeat("a", 40), ""))
	wantError(t, err, ErrNotFound, "repository has no such commit")
}

func TestGitOddServers(t *testing.T) {
	t.Parallel()
	empty := &repository{root: t.TempDir()}
	git(t, empty.root, "init", "-q", "--bare", "repo.git")
	repo := newRepository(t, "a.yaml", "a: 1\n")
	cut := newRepository(t, "a.yaml", "a: 1\n")
	page := "text/html"
	tests := map[string]struct {
		srv  *secure
		err  error
		says string
	}{
		"Empty":     {serveTLS(t, empty.handler(t)), ErrNotFound, "repository is empty"},
		"Missing":   {serveTLS(t, (&repository{root: t.TempDir()}).handler(t)), ErrNotFound, "server answers 404"},
		"WebPage":   {serveTLS(t, answering(page, "<html>")), ErrUnsupported, `not a Git repository: the server answers "text/html"`},
		"Garbage":   {serveTLS(t, answering(advertisement, "zzzz")), ErrUnsupported, "not Git's protocol"},
		"Nothing":   {serveTLS(t, answering(advertisement, "")), ErrUnsupported, "not Git's protocol"},
		"Refuses":   {serveTLS(t, answering(advertisement, "0010ERR go away\n")), ErrDenied, `server says "go away"`},
		"Elsewhere": {serveTLS(t, redirecting("http://169.254.169.254/info/refs")), ErrUnsafe, "redirects from https to http"},
		"Metadata":  {serveTLS(t, redirecting("https://169.254.169.254/info/refs")), ErrUnsafe, "169.254.169.254, a private address"},
		"CutPack":   {serveTLS(t, cutting(cut.handler(t), "/git-upload-pack", 60)), ErrUnavailable, "ended in the middle"},
		"BadPack":   {serveTLS(t, damaging(repo.handler(t), "/git-upload-pack")), ErrInvalid, "pack is malformed"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, _ := hurried(Options{})
			_, err := m.Fetch(t.Context(), gitRef(Manifests, tc.srv, "", ""))
			wantError(t, err, tc.err, tc.says)
		})
	}
}

func TestGitFollowsARedirectOfItsServer(t *testing.T) {
	t.Parallel()
	repo := newRepository(t, "a.yaml", "a: 1\n")
	srv := serveTLS(t, guarded(renaming(repo.handler(t), "/old.git", "/repo.git")))
	m, _ := hurried(Options{Credentials: secrets(map[string]*Credentials{"me": {Username: "me", Password: "s3cret"}})})
	ref := gitRef(Manifests, srv, "", "").with("me")
	ref.Git.URL = srv.URL + "/old.git"
	if _, err := m.Fetch(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
}

func TestGitRefIsChecked(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		git  v1beta2.GitSource
		says string
	}{
		"SCP":        {v1beta2.GitSource{URL: "git@example.com:org/repo"}, "ssh://user@host/path"},
		"NoPath":     {v1beta2.GitSource{URL: "https://example.com"}, "not the address of a Git repository"},
		"Query":      {v1beta2.GitSource{URL: "https://example.com/x?ref=secret"}, "no query"},
		"Option":     {v1beta2.GitSource{URL: "https://example.com/x", Ref: "--upload-pack=touch"}, "no branch, tag or commit"},
		"ParentRef":  {v1beta2.GitSource{URL: "https://example.com/x", Ref: "a/../b"}, "no branch, tag or commit"},
		"ControlRef": {v1beta2.GitSource{URL: "https://example.com/x", Ref: "a\nb"}, "no branch, tag or commit"},
	}
	for name, tc := range tests {
		_, err := New(Options{}).Fetch(t.Context(), Ref{Kind: Chart, SourceRef: v1beta2.SourceRef{Git: &tc.git}})
		wantError(t, err, ErrInvalid, tc.says)
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: message shows a query: %v", name, err)
		}
	}
	_, err := New(Options{}).Fetch(t.Context(), Ref{Kind: Chart, SourceRef: v1beta2.SourceRef{Git: &v1beta2.GitSource{URL: "file://" + t.TempDir()}}})
	wantError(t, err, ErrInvalid, "not the address of a Git repository")
}

// A branch that is moved by force between the question where it leads and the request for its commit is asked for again; one that
// never stands still is an error, not a mixture.
func TestGitBranchMovesWhileItIsRead(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		moves int32
		err   error
	}{"Once": {moves: 1}, "Always": {moves: 100, err: ErrUnavailable}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := newRepository(t, "d/a.yaml", "a: 0\n")
			next := repo.handler(t)
			var moved atomic.Int32
			srv := serveTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if n := moved.Load(); r.Method == http.MethodPost && n < tc.moves {
					moved.Add(1)
					repo.put(t, "d/a.yaml", fmt.Sprintf("a: %d\n", n+1))
					git(t, repo.work, "add", "-A")
					git(t, repo.work, "commit", "-q", "--amend", "-m", "another")
					repo.publish(t)
				}
				next.ServeHTTP(w, r)
			}))
			m, _ := hurried(Options{})
			tree, err := m.Fetch(t.Context(), gitRef(Manifests, srv, "main", "d"))
			if tc.err != nil {
				wantError(t, err, tc.err, `"main" moved while it was read: server says`)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := string(tree.Files[0].Data); got != "a: 1\n" {
				t.Errorf("content is %q, want that of the second commit", got)
			}
		})
	}
}
