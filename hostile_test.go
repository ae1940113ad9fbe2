package mothership_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/kyma-project/mothership"
	"github.com/kyma-project/mothership/api/v1beta2"
)

// brokenVersions are next versions of a module that can be had, but not rendered.
func brokenVersions(t *testing.T) map[string]struct {
	source v1beta2.Source
	want   string
} {
	const chartYAML = "apiVersion: v2\nname: web\nversion: 2.0.0\n"
	first, rest, _ := strings.Cut(web, "kind: ServiceAccount")
	chart := func(files map[string]string) v1beta2.Source { return mothership.Chart(folder(t, files)) }
	plain := func(text string) v1beta2.Source {
		return mothership.Manifests(folder(t, map[string]string{"web.yaml": text}))
	}
	laughs := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for i := range 8 {
		a, b := string(rune('a'+i)), string(rune('b'+i))
		laughs += b + ": &" + b + " [" + strings.TrimSuffix(strings.Repeat("*"+a+",", 9), ",") + "]\n"
	}
	return map[string]struct {
		source v1beta2.Source
		want   string
	}{
		"Loop":          {chart(map[string]string{"Chart.yaml": chartYAML, "templates/a.yaml": "{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}"}), "does a template loop?"},
		"Memory":        {chart(map[string]string{"Chart.yaml": chartYAML, "templates/a.yaml": `{{ $s := "xxxxxxxx" }}{{ range until 50 }}{{ $s = printf "%s%s" $s $s }}{{ end }}`}), "MiB of memory"},
		"Newer":         {chart(map[string]string{"Chart.yaml": chartYAML + "kubeVersion: '>=1.99.0'\n", "templates/a.yaml": web}), "needs Kubernetes >=1.99.0, but the runtime has v1."},
		"ThirdDocument": {plain(first + "kind: ServiceAccount\nkind: ServiceAccount" + rest), `web.yaml, document 3, line 20: key "kind" is set twice`},
		"BillionLaughs": {plain(web + "---\n" + laughs), "aliases expand to too much"},
		"Tabs":          {plain(web + "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n\tname: b\n"), "a tab is used for indentation"},
		"NotUTF8":       {plain(web + "# \xff\n"), "not UTF-8"},
		"CutOff":        {plain(web[:len(web)-20]), "web.yaml, document 4"},
		"Empty":         {plain("# nothing is left\n"), "never a desired state"},
		"Large":         {plain(web + "---\na: " + strings.Repeat("x", 5<<20) + "\n"), "bytes"},
	}
}

// TestBrokenVersionKeepsTheLastGoodState gives an installed module next versions that cannot be rendered: each is an error within a
// bounded time, nothing is written, and nothing is pruned.
func TestBrokenVersionKeepsTheLastGoodState(t *testing.T) {
	t.Parallel()
	s := setup(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	within := func(timeout time.Duration) {
		s.installer = mothership.New(mothership.Options{
			Isolate: &mothership.Isolation{Command: []string{exe, renderChild}, MemoryBytes: 256 << 20}, IsolateAll: true, RenderTimeout: timeout,
		})
	}
	within(time.Minute)
	good := s.module("web", web)
	s.install(good)
	members, parent := s.members(good), s.kubectl("get", "configmap", "-n", v1beta2.SystemNamespace, s.namespace+".web", "-o", "jsonpath={.metadata.resourceVersion}")
	for name, tc := range brokenVersions(t) {
		broken := good
		broken.Template.Source = tc.source
		within(time.Minute)
		if name == "Loop" {
			within(4 * time.Second)
		}
		start := time.Now()
		r, err := s.installer.Install(t.Context(), s.cfg, broken, mothership.InstallOptions{})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", name, err, tc.want)
		}
		if r != nil && (r.Changed() || writes(r.Requests) != 0) {
			t.Errorf("%s: it wrote: %v", name, r.Requests)
		}
		if took := time.Since(start); took > time.Minute {
			t.Errorf("%s: it took %s", name, took)
		}
	}
	for _, member := range strings.Fields(members) { // there may be more: an EndpointSlice copies its Service's labels
		if got := s.members(good); !strings.Contains(got, member) {
			t.Errorf("%s is gone: %s", member, got)
		}
	}
	if got := s.kubectl("get", "configmap", "-n", v1beta2.SystemNamespace, s.namespace+".web", "-o", "jsonpath={.metadata.resourceVersion}"); got != parent {
		t.Errorf("the inventory was written")
	}
	if got := changes(s.verify(good)); len(got) > 0 {
		t.Errorf("verify: %v", got)
	}
	if r := s.install(good); r.Changed() {
		t.Errorf("the good version again: %v", actions(r.Objects))
	}
}
