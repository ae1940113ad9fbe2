package render

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const overlay = `
-- app/base/kustomization.yaml --
resources: [deployment.yaml]
configMapGenerator:
- name: settings
  literals: ['url=https://example.com/x?ref=1']
  files: [app.conf]
-- app/base/app.conf --
size = 1
-- app/base/deployment.yaml --
apiVersion: apps/v1
kind: Deployment
metadata: {name: app}
spec:
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}, annotations: {docs: "https://example.com"}}
    spec: {containers: [{name: app, image: app:1, envFrom: [{configMapRef: {name: settings}}]}]}
-- app/prod/kustomization.yaml --
resources: [../base, extra.yaml]
components: [../component]
namePrefix: prod-
labels: [{pairs: {env: prod}}]
patches:
- target: {kind: Deployment}
  patch: |-
    - op: add
      path: /spec/replicas
      value: 3
images: [{name: app, newTag: "2"}]
-- app/prod/extra.yaml --
apiVersion: v1
kind: ServiceAccount
metadata: {name: extra}
-- app/component/kustomization.yaml --
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
patches: [{path: p.yaml}]
-- app/component/p.yaml --
apiVersion: apps/v1
kind: Deployment
metadata: {name: app}
spec: {paused: true}
`

func kustomizeRequest(archive, root string) Request {
	r := request(Kustomize, strings.TrimPrefix(archive, "\n"))
	r.Tree.Root = root
	return r
}

func TestKustomize(t *testing.T) {
	t.Parallel()
	b := mustRender(t, kustomizeRequest(overlay, "app/prod"))
	want := []string{
		"ConfigMap demo-system/prod-settings-m4cm8m4k2c", "Deployment.apps demo-system/prod-app", "ServiceAccount demo-system/prod-extra",
	}
	got := refs(b)
	got[0] = got[0][:len("ConfigMap demo-system/prod-settings-")] + "m4cm8m4k2c" // the hash is kustomize's business
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	text := bytesOf(t, b, "prod-app")
	for _, part := range []string{`"replicas":3`, `"image":"app:2"`, `"paused":true`, `"env":"prod"`, `"name":"prod-settings-`} {
		if !strings.Contains(text, part) {
			t.Errorf("no %s in %s", part, text)
		}
	}
	again, err := isolated(t, IsolatedOptions{}).Render(context.Background(), kustomizeRequest(overlay, "app/prod"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b, again); diff != "" {
		t.Error(diff)
	}
}

func TestKustomizeRefusesRemote(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		t.Error("something was fetched")
	}))
	t.Cleanup(server.Close)
	url := server.URL
	for name, kustomization := range map[string]string{
		"ResourceURL":     "resources: [" + url + "/a.yaml]",
		"ResourceGitHub":  "resources: ['github.com/org/repo//dir?ref=main']",
		"ResourceGit":     "resources: ['git@example.com:org/repo.git']",
		"ResourceForced":  "resources: ['git::https://example.com/org/repo']",
		"ResourceSSH":     "resources: ['ssh://git@example.com/org/repo']",
		"ResourceFile":    "resources: ['file:///etc']",
		"ResourceUpper":   "resources: ['HTTPS://example.com/x.yaml']",
		"ResourceQuery":   "resources: ['example.com/org/repo?ref=v1']",
		"ResourcesUpper":  "Resources: [" + url + "/a.yaml]",
		"ResourcesLongS":  "re\u017fources: [" + url + "/a.yaml]",
		"EnvsUpper":       "secretGenerator: [{name: a, ENVS: [" + url + "/f]}]",
		"Base":            "bases: [" + url + "]",
		"Component":       "components: [" + url + "]",
		"CRD":             "crds: [" + url + "/crd.json]",
		"Configuration":   "configurations: [" + url + "/c.yaml]",
		"Patch":           "patches: [{path: " + url + "/p.yaml}]",
		"StrategicMerge":  "patchesStrategicMerge: [" + url + "/p.yaml]",
		"Replacement":     "replacements: [{path: " + url + "/r.yaml}]",
		"OpenAPI":         "openapi: {path: " + url + "/o.json}",
		"GeneratorFile":   "configMapGenerator: [{name: a, files: ['k=" + url + "/f']}]",
		"GeneratorEnv":    "secretGenerator: [{name: a, envs: [" + url + "/f]}]",
		"InlineGenerator": "generators: [\"apiVersion: builtin\\nkind: ConfigMapGenerator\\nmetadata: {name: x}\\nname: x\\nfiles: ['" + url + "/f']\\n\"]",
		"FileTransformer": "transformers: [transformer.yaml]",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			archive := "-- kustomization.yaml --\nresources: [cm.yaml]\n-- cm.yaml --\n" + configMap("a") +
				"-- transformer.yaml --\napiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: x}\npath: " + url + "/p.yaml\n" +
				"-- deep/er/kustomization.yml --\n" + kustomization + "\n"
			_, err := New(Options{}).Render(context.Background(), kustomizeRequest(archive, "."))
			if name == "FileTransformer" {
				archive = strings.Replace(archive, "deep/er/kustomization.yml", "Kustomization", 1)
				_, err = New(Options{}).Render(context.Background(), kustomizeRequest(archive, "."))
			}
			wantError(t, err, ErrRemote, "which is not fetched")
		})
	}
}

func TestKustomizeErrors(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		archive, root string
		kind          error
		text          string
	}{
		"NoKustomization": {"-- a.yaml --\n" + configMap("a"), ".", ErrMalformed, "kustomization.yaml is missing"},
		"MissingFile":     {"-- kustomization.yaml --\nresources: [gone.yaml]\n", ".", ErrMalformed, "kustomization.yaml: kustomize: accumulating resources"},
		"Duplicate":       {"-- kustomization.yaml --\nresources: []\nresources: []\n", ".", ErrMalformed, `kustomization.yaml, document 1, line 2: key "resources" is set twice`},
		"HelmCharts":      {"-- kustomization.yaml --\nhelmCharts: [{name: x, repo: 'https://x'}]\n", ".", ErrMalformed, "helmCharts is not accepted"},
		"UnknownField":    {"-- kustomization.yaml --\nresourcez: []\n", ".", ErrMalformed, "resourcez"},
		"OutsideFile":     {"-- kustomization.yaml --\nresources: [../../etc/x.yaml]\n", ".", ErrMalformed, "kustomize:"},
		"FileAbove":       {"-- a/kustomization.yaml --\nresources: [../b/x.yaml]\n-- b/x.yaml --\n" + configMap("x"), "a", ErrMalformed, "security"},
		"ExecPlugin":      {"-- kustomization.yaml --\nresources: [a.yaml]\ngenerators: [g.yaml]\n-- a.yaml --\n" + configMap("a") + "-- g.yaml --\napiVersion: example.com/v1\nkind: Gen\nmetadata: {name: g, annotations: {config.kubernetes.io/function: \"exec: {path: /bin/true}\"}}\n", ".", ErrMalformed, "kustomize:"},
		"Empty":           {"-- kustomization.yaml --\nresources: [a.yaml]\n-- a.yaml --\n# nothing\n", ".", ErrEmpty, "never a desired state"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := New(Options{}).Render(context.Background(), kustomizeRequest(tc.archive, tc.root))
			wantError(t, err, tc.kind, tc.text)
		})
	}
}
