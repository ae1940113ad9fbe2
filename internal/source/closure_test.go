package source

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

func TestKustomization(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		files []string
		named string
		root  string
		want  []string
	}{
		"Alone": {
			files: []string{"k/kustomization.yaml", "resources: [a.yaml]", "k/a.yaml", "", "k/.git/x", "", "z/other.yaml", ""},
			named: "k", root: ".",
			want: []string{"a.yaml", "kustomization.yaml"},
		},
		"Overlay": {
			files: []string{"overlays/prod/kustomization.yaml", "resources: [../../base]\ncomponents: [../../parts/tls]",
				"overlays/test/kustomization.yaml", "", "base/kustomization.yml", "resources: [more]", "base/more/Kustomization", "",
				"parts/tls/kustomization.yaml", "kind: Component", "secret/key", ""},
			named: "overlays/prod", root: "overlays/prod",
			want: []string{"base/kustomization.yml", "base/more/Kustomization", "overlays/prod/kustomization.yaml", "parts/tls/kustomization.yaml"},
		},
		"BaseOfBase": {
			files: []string{"a/b/kustomization.yaml", "bases: [../../c]", "c/kustomization.yaml", "bases: [../d]", "d/kustomization.yaml", ""},
			named: "a/b", root: "a/b",
			want: []string{"a/b/kustomization.yaml", "c/kustomization.yaml", "d/kustomization.yaml"},
		},
		"EachField": {
			files: []string{"k/kustomization.yaml", `
crds: [../f/crd.yaml]
configurations: [../f/conf.yaml]
generators: [../f/gen.yaml]
transformers:
- ../f/tr.yaml
- |-
  apiVersion: builtin
  kind: PrefixTransformer
  metadata: {name: x}
validators: ["{apiVersion: v1}"]
patchesStrategicMerge: [../f/sm.yaml, "kind: A\n"]
patchesJson6902: [{path: ../f/json.yaml}]
patches: [{path: ../f/patch.yaml}, {patch: "kind: https://not/an/address"}]
replacements: [{path: ../f/repl.yaml}]
configMapGenerator: [{name: a, files: [k=../f/data.txt, ../f/plain.txt], envs: [../f/envs]}]
secretGenerator: [{name: a, env: ../f/env}]
openapi: {path: ../f/schema.json}
`, "f/crd.yaml", "", "f/conf.yaml", "", "f/gen.yaml", "", "f/tr.yaml", "", "f/sm.yaml", "", "f/json.yaml", "", "f/patch.yaml", "",
				"f/repl.yaml", "", "f/data.txt", "", "f/plain.txt", "", "f/envs", "", "f/env", "", "f/schema.json", "", "f/unused", ""},
			named: "k", root: "k",
			want: []string{"f/conf.yaml", "f/crd.yaml", "f/data.txt", "f/env", "f/envs", "f/gen.yaml", "f/json.yaml", "f/patch.yaml",
				"f/plain.txt", "f/repl.yaml", "f/schema.json", "f/sm.yaml", "f/tr.yaml", "k/kustomization.yaml"},
		},
		"Ring": { // kustomize itself refuses it, with a message of its own
			files: []string{"a/kustomization.yaml", "resources: [../b]", "b/kustomization.yaml", "resources: [../a]"},
			named: "a", root: "a",
			want: []string{"a/kustomization.yaml", "b/kustomization.yaml"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree, err := fetch(t, pathRef(Kustomize, filepath.Join(write(t, tc.files...), tc.named)))
			if err != nil {
				t.Fatal(err)
			}
			if tree.Root != tc.root {
				t.Errorf("root is %q, want %q", tree.Root, tc.root)
			}
			wantPaths(t, tree, tc.want...)
		})
	}
}

func TestKustomizationRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		file string
		err  error
		says string
	}{
		"Missing":        {"resources: [nope.yaml]", ErrNotFound, `refers to "nope.yaml" in "resources", which does not exist`},
		"MissingOutside": {"resources: [../nope]", ErrNotFound, "which does not exist"},
		"Absolute":       {"resources: [/etc/passwd]", ErrUnsafe, `absolute path "/etc/passwd"`},
		"AboveRoot":      {"resources: [" + strings.Repeat("../", 40) + "nope]", ErrNotFound, "nope"},
		"Parent":         {"resources: [..]", ErrInvalid, "a folder that it is in itself"},
		"Itself":         {"resources: [.]", ErrInvalid, "a folder that it is in itself"},
		"BaseIsEmpty":    {"resources: [../empty]", ErrNotFound, `"empty" holds no kustomization.yaml`},
		"Malformed":      {"resources: [a", ErrInvalid, `"kustomization.yaml" is malformed`},
		"DuplicateKey":   {"resources: []\nresources: [x]", ErrInvalid, `"resources" already set`},
		"WrongType":      {"resources: {a: b}", ErrInvalid, "is malformed"},
		"TooManyRefs":    {"resources:\n" + strings.Repeat("- a.yaml\n", 101), ErrTooLarge, "more than 100 references"},
		"TooLarge":       {"#" + strings.Repeat("x", 1<<20), ErrTooLarge, "1048576"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := write(t, "k/kustomization.yaml", tc.file, "k/a.yaml", "", "empty/x", "")
			_, err := fetch(t, pathRef(Kustomize, dir+"/k"))
			wantError(t, err, tc.err, tc.says)
		})
	}
	t.Run("TwoFiles", func(t *testing.T) {
		t.Parallel()
		_, err := fetch(t, pathRef(Kustomize, write(t, "kustomization.yaml", "", "Kustomization", "")))
		wantError(t, err, ErrInvalid, `"Kustomization" is a second kustomization`)
	})
	t.Run("LinkLeaves", func(t *testing.T) {
		t.Parallel()
		dir := write(t, "k/kustomization.yaml", "resources: [l.yaml]", "secret.yaml", "")
		symlink(t, dir, "../secret.yaml", "k/l.yaml")
		_, err := fetch(t, pathRef(Kustomize, dir+"/k"))
		wantError(t, err, ErrUnsafe, `"l.yaml" is a link to "../secret.yaml", which leaves the directory`)
	})
	t.Run("LinkOnTheWay", func(t *testing.T) {
		t.Parallel()
		dir := write(t, "k/kustomization.yaml", "resources: [l/secret.yaml]", "other/secret.yaml", "")
		symlink(t, dir, "../other", "k/l")
		_, err := fetch(t, pathRef(Kustomize, dir+"/k"))
		wantError(t, err, ErrUnsafe, "link that leaves the directory")
	})
}

func TestKustomizationRefusesRemote(t *testing.T) {
	t.Parallel()
	addresses := []string{
		"https://example.com/x.yaml", "HTTP://example.com/x.yaml", "http:example.com", "https://example.com/org/repo//path?ref=v1",
		"github.com/org/repo", "GitHub.com/org/repo", "github.com:org/repo", "git@github.com:org/repo.git", "user@host:path.git",
		"git::https://example.com/repo", "GIT::x", "ssh://host/repo", "file:///etc/passwd", "oci://host/x",
	}
	fields := []string{"resources: [%q]", "components: [%q]", "transformers: [%q]", "patches: [{path: %q}]", "openapi: {path: %q}",
		"configMapGenerator: [{files: [%q]}]", "Resources: [%q]"}
	for _, address := range addresses {
		for _, field := range fields {
			dir := write(t, "kustomization.yaml", fmt.Sprintf(field, address))
			_, err := fetch(t, pathRef(Kustomize, dir))
			wantError(t, err, ErrUnsupported, "remote bases are refused")
		}
	}
	keyed := write(t, "kustomization.yaml", `configMapGenerator: [{files: ["key=https://example.com/x"]}]`)
	_, err := fetch(t, pathRef(Kustomize, keyed))
	wantError(t, err, ErrUnsupported, "remote bases are refused")
}

// TestKustomizationKeepsPinnedBases shows that remote bases which cannot change are left to whoever renders: in the fields of bases
// alone, and pinned in full.
func TestKustomizationKeepsPinnedBases(t *testing.T) {
	t.Parallel()
	const commit, digest = "?ref=0123456789012345678901234567890123456789", "?digest=sha256:0123456789012345678901234567890123456789012345678901234567890123"
	for text, kept := range map[string]bool{
		"resources: ['https://example.com/r//x" + commit + "']":                 true,
		"components: ['github.com/org/r/x" + commit + "&timeout=1s']":           true,
		"bases: ['oci://example.com/r" + digest + "']":                          true,
		"resources: ['https://example.com/r//x" + commit[:len(commit)-1] + "']": false,
		"resources: ['https://example.com/r//x" + commit + "0']":                false,
		"crds: ['https://example.com/x.json" + digest + "']":                    false,
		"patches: [{path: 'https://example.com/x.yaml" + digest + "'}]":         false,
		"transformers: ['https://example.com/x.yaml" + digest + "']":            false,
	} {
		_, err := fetch(t, pathRef(Kustomize, write(t, "kustomization.yaml", text)))
		if kept && err != nil || !kept && !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
