package post

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// quay takes images of two registries from a mirror.
var quay = v1beta2.PostRender{ImageMirrors: []v1beta2.ImageMirror{
	{From: "quay.io", To: "mirror.example.com/quay"}, {From: "docker.io", To: "mirror.example.com/hub"},
	{From: "quay.io/jetstack", To: "mirror.example.com/cm"},
}}

// decode reads one object as bundles take them.
func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	var obj map[string]any
	if err := yaml.Unmarshal([]byte(text), &obj); err != nil {
		t.Fatal(err)
	}
	return obj
}

func TestImagesOfEveryWorkload(t *testing.T) {
	t.Parallel()
	spec := `{containers: [{name: a, image: "quay.io/org/a:1"}, {name: b}], initContainers: [{name: i, image: busybox}],` +
		` ephemeralContainers: [{name: e, image: "quay.io/jetstack/e@sha256:abc"}], volumes: [{name: v, image: {reference: "quay.io/data:2"}}, {name: w}]}`
	for name, tc := range map[string]struct{ object, at string }{
		"Pod":                   {"apiVersion: v1\nkind: Pod\nspec: " + spec, "/spec"},
		"PodTemplate":           {"apiVersion: v1\nkind: PodTemplate\ntemplate: {spec: " + spec + "}", "/template/spec"},
		"ReplicationController": {"apiVersion: v1\nkind: ReplicationController\nspec: {template: {spec: " + spec + "}}", "/spec/template/spec"},
		"Deployment":            {"apiVersion: apps/v1\nkind: Deployment\nspec: {template: {spec: " + spec + "}}", "/spec/template/spec"},
		"StatefulSet":           {"apiVersion: apps/v1\nkind: StatefulSet\nspec: {template: {spec: " + spec + "}}", "/spec/template/spec"},
		"DaemonSet":             {"apiVersion: apps/v1\nkind: DaemonSet\nspec: {template: {spec: " + spec + "}}", "/spec/template/spec"},
		"ReplicaSet":            {"apiVersion: apps/v1\nkind: ReplicaSet\nspec: {template: {spec: " + spec + "}}", "/spec/template/spec"},
		"Job":                   {"apiVersion: batch/v1\nkind: Job\nspec: {template: {spec: " + spec + "}}", "/spec/template/spec"},
		"CronJob":               {"apiVersion: batch/v1\nkind: CronJob\nspec: {jobTemplate: {spec: {template: {spec: " + spec + "}}}}", "/spec/jobTemplate/spec/template/spec"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			obj := decode(t, tc.object)
			report := Apply(quay, []map[string]any{obj})
			got := map[string]string{}
			for _, i := range report.Images {
				got[i.Path] = i.From + " " + i.To
			}
			want := map[string]string{
				tc.at + "/containers/0/image":          "quay.io/org/a:1 mirror.example.com/quay/org/a:1",
				tc.at + "/initContainers/0/image":      "busybox mirror.example.com/hub/library/busybox",
				tc.at + "/ephemeralContainers/0/image": "quay.io/jetstack/e@sha256:abc mirror.example.com/cm/e@sha256:abc",
				tc.at + "/volumes/0/image/reference":   "quay.io/data:2 mirror.example.com/quay/data:2",
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if again := Apply(quay, []map[string]any{obj}); len(again.Images) > 0 {
				t.Errorf("the second time: %v", again.Images)
			}
			text, _ := json.Marshal(obj)
			if strings.Contains(string(text), "quay.io") {
				t.Errorf("an image was left: %s", text)
			}
		})
	}
}

func TestMirrors(t *testing.T) {
	t.Parallel()
	rules := newMirrors([]v1beta2.ImageMirror{
		{From: "docker.io", To: "docker.io/mirror"}, {From: "quay.io/", To: "m.example.com:5000/quay/"}, {From: "ghcr.io/org", To: "ghcr.io"},
		{From: "localhost:5000/x", To: "quay.io/x"},
	})
	for image, want := range map[string]string{
		"nginx":                        "docker.io/mirror/library/nginx",
		"nginx:1.2":                    "docker.io/mirror/library/nginx:1.2",
		"org/app@sha256:1f":            "docker.io/mirror/org/app@sha256:1f",
		"docker.io/nginx":              "docker.io/mirror/library/nginx",
		"index.docker.io/a/b:c":        "docker.io/mirror/a/b:c",
		"docker.io/mirror/library/x":   "", // it is there already
		"quay.io/a/b:v1@sha256:2f":     "m.example.com:5000/quay/a/b:v1@sha256:2f",
		"quay.io":                      "docker.io/mirror/library/quay.io", // a name without a registry, odd as it is
		"quay.io.evil.com/a":           "",
		"quay.iox/a":                   "",
		"m.example.com:5000/quay/a:1":  "",
		"ghcr.io/org/app:2":            "ghcr.io/app:2", // the rule says more of it than the mirror
		"ghcr.io/organ/app:2":          "",
		"localhost:5000/x:1":           "quay.io/x:1",
		"example.com/quay.io/a":        "",
		"":                             "",
		"$(IMAGE)":                     "",
		"https://quay.io/a":            "",
		"a b":                          "",
		"{{ .Values.image }}":          "",
		"quay.io/UPPER/is-left-to-CRI": "m.example.com:5000/quay/UPPER/is-left-to-CRI",
	} {
		got, ok := rules.of(image)
		if !ok {
			got = ""
		}
		if got != want {
			t.Errorf("%q is at %q, want %q", image, got, want)
		}
	}
}

func TestImageFields(t *testing.T) {
	t.Parallel()
	o := quay
	o.ImageFields = []v1beta2.ImageField{
		{Group: "example.com", Kind: "Thing", Path: "/spec/parts/*/image"},
		{Group: "example.com", Kind: "Thing", Path: "/spec/a~1b"},
		{Group: "example.com", Kind: "Thing", Path: "/spec/list/1"},
		{Group: "example.com", Kind: "Thing", Path: "/spec/args/*", Prefix: "--image="},
		{Group: "example.com", Kind: "Thing", Path: "/spec/number"},
		{Group: "example.com", Kind: "Thing", Path: "/spec/gone/image"},
	}
	obj := decode(t, `
apiVersion: example.com/v1
kind: Thing
metadata: {name: t}
spec:
  parts: {x: {image: "quay.io/x:1"}, y: {image: "other.io/y"}, z: {}}
  a/b: quay.io/ab
  list: [quay.io/0, quay.io/1]
  args: [--v=2, "--image=quay.io/z:3"]
  number: 5
`)
	report := Apply(o, []map[string]any{obj, decode(t, "apiVersion: v1\nkind: Thing\nspec: {parts: {x: {image: quay.io/x}}}")})
	want := decode(t, `
parts: {x: {image: "mirror.example.com/quay/x:1"}, y: {image: "other.io/y"}, z: {}}
a/b: mirror.example.com/quay/ab
list: [quay.io/0, mirror.example.com/quay/1]
args: [--v=2, "--image=mirror.example.com/quay/z:3"]
number: 5
`)
	if diff := cmp.Diff(any(want), obj["spec"]); diff != "" {
		t.Error(diff)
	}
	var paths []string
	for _, i := range report.Images {
		paths = append(paths, i.String()+" "+i.Path)
	}
	if diff := cmp.Diff([]string{
		"Thing.example.com t /spec/parts/x/image", "Thing.example.com t /spec/a~1b", "Thing.example.com t /spec/list/1", "Thing.example.com t /spec/args/1",
	}, paths); diff != "" {
		t.Error(diff)
	}
	if len(report.Warnings) != 1 || !strings.Contains(report.Warnings[0], "/spec/number of Thing.example.com t holds no text") {
		t.Errorf("warnings: %q", report.Warnings)
	}
}

func TestPullSecrets(t *testing.T) {
	t.Parallel()
	o := v1beta2.PostRender{ImagePullSecrets: []string{"one", "two", "one"}}
	pod := decode(t, "apiVersion: v1\nkind: Pod\nspec: {imagePullSecrets: [{name: two}, {name: own}]}")
	account := decode(t, "apiVersion: v1\nkind: ServiceAccount\nimagePullSecrets: null")
	odd := decode(t, "apiVersion: v1\nkind: ServiceAccount\nimagePullSecrets: none")
	service := decode(t, "apiVersion: v1\nkind: Service\nspec: {}")
	for range 2 {
		Apply(o, []map[string]any{pod, account, odd, service})
	}
	for name, tc := range map[string]struct {
		got  any
		want string
	}{
		"Pod":            {pod["spec"], "{imagePullSecrets: [{name: two}, {name: own}, {name: one}]}"},
		"ServiceAccount": {account, "{apiVersion: v1, kind: ServiceAccount, imagePullSecrets: [{name: one}, {name: two}]}"},
		"WrongType":      {odd, "{apiVersion: v1, kind: ServiceAccount, imagePullSecrets: none}"},
		"Others":         {service, "{apiVersion: v1, kind: Service, spec: {}}"},
	} {
		if diff := cmp.Diff(any(decode(t, tc.want)), tc.got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, labels: {team: chart}}
spec:
  selector: {matchLabels: {app: d}}
  template: {metadata: {labels: {app: d}}, spec: {}}
`

func TestLabelsAndAnnotations(t *testing.T) {
	t.Parallel()
	o := v1beta2.PostRender{Labels: map[string]string{"team": "a", "cost": "7"}, Annotations: map[string]string{"note": "x"}}
	d, ns := decode(t, deployment), decode(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: n}")
	cron := decode(t, "apiVersion: batch/v1\nkind: CronJob\nspec: {jobTemplate: {spec: {template: {spec: {}}}}}")
	report := Apply(o, []map[string]any{d, ns, cron})
	if diff := cmp.Diff(decode(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, labels: {team: chart, cost: "7"}, annotations: {note: x}}
spec:
  selector: {matchLabels: {app: d}}
  template: {metadata: {labels: {app: d}}, spec: {}}
`), d); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(decode(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: n}"), ns); diff != "" {
		t.Errorf("a Namespace: %s", diff)
	}
	if diff := cmp.Diff([]string{"postRender: label team stays as the source sets it on 1 objects or templates"}, report.Warnings); diff != "" {
		t.Error(diff)
	}

	o.Pods = true
	Apply(o, []map[string]any{d, cron})
	if diff := cmp.Diff(decode(t, `{matchLabels: {app: d}}`), d["spec"].(map[string]any)["selector"]); diff != "" {
		t.Errorf("the selector: %s", diff)
	}
	if diff := cmp.Diff(decode(t, `{metadata: {labels: {app: d, team: a, cost: "7"}, annotations: {note: x}}, spec: {}}`), d["spec"].(map[string]any)["template"]); diff != "" {
		t.Errorf("the template: %s", diff)
	}
	template, _ := walk(cron, []string{"spec", "jobTemplate", "spec", "template", "metadata", "labels"})
	if diff := cmp.Diff(decode(t, `{team: a, cost: "7"}`), template); diff != "" {
		t.Errorf("a CronJob: %s", diff)
	}
}

func TestOddObjectsAreLeftAlone(t *testing.T) {
	t.Parallel()
	o := quay
	o.Labels, o.ImagePullSecrets, o.Pods = map[string]string{"a": "b"}, []string{"s"}, true
	for _, text := range []string{
		"apiVersion: 1\nkind: [x]\nmetadata: x", "apiVersion: v1\nkind: Pod\nmetadata: {labels: x}\nspec: x",
		"apiVersion: v1\nkind: Pod\nmetadata: []\nspec: {containers: x, volumes: [x, {image: y}], initContainers: [1, {image: 2}], imagePullSecrets: [x]}",
		"apiVersion: apps/v1\nkind: Deployment\nspec: {template: [x]}", "{}",
	} {
		before := decode(t, text)
		if report := Apply(o, []map[string]any{before}); len(report.Images) > 0 {
			t.Errorf("%s: %v", text, report)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	if err := Check(v1beta2.PostRender{
		ImageMirrors: []v1beta2.ImageMirror{{From: "quay.io/a/", To: "m.example.com:5000/b-c/d__e"}, {From: "localhost", To: "10.0.0.1:80"}},
		ImageFields:  []v1beta2.ImageField{{Kind: "A", Path: "/b"}}, ImagePullSecrets: []string{"a.b"},
		Labels: map[string]string{"app.kubernetes.io/part-of": "x"}, Annotations: map[string]string{"Example.com/a": "any thing"},
	}); err != nil {
		t.Error(err)
	}
	for want, o := range map[string]v1beta2.PostRender{
		`imageMirrors[0].from "nginx"`:           {ImageMirrors: []v1beta2.ImageMirror{{From: "nginx", To: "a.b"}}},
		`imageMirrors[0].to "a.b/c:1"`:           {ImageMirrors: []v1beta2.ImageMirror{{From: "a.b", To: "a.b/c:1"}}},
		`imageMirrors[0].to "https://a.b"`:       {ImageMirrors: []v1beta2.ImageMirror{{From: "a.b", To: "https://a.b"}}},
		`imageMirrors[0].to ""`:                  {ImageMirrors: []v1beta2.ImageMirror{{From: "a.b"}}},
		`imageFields[0]: it needs a kind`:        {ImageFields: []v1beta2.ImageField{{Path: "/a"}}},
		`imagePullSecrets[0] "A b"`:              {ImagePullSecrets: []string{"A b"}},
		`labels["a b"]`:                          {Labels: map[string]string{"a b": "x"}},
		`labels["a"]`:                            {Labels: map[string]string{"a": "x y"}},
		`helm.sh is reserved`:                    {Annotations: map[string]string{"helm.sh/resource-policy": "keep"}},
		`applyset.kubernetes.io is reserved`:     {Labels: map[string]string{v1beta2.ApplySetPartOfLabel: "x"}},
		`operator.kyma-project.io is reserved`:   {Annotations: map[string]string{v1beta2.DigestAnnotation: "x"}},
		`postRender.annotations["-"]: name part`: {Annotations: map[string]string{"-": "x"}},
	} {
		if err := Check(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Check = %v, want %q", err, want)
		}
	}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	all := v1beta2.PostRender{
		ImageMirrors: []v1beta2.ImageMirror{{From: "a.io", To: "m.io/a"}, {From: "b.io", To: "m.io/b"}}, ImagePullSecrets: []string{"x"},
		Labels: map[string]string{"a": "1", "b": "1"}, Pods: true,
	}
	got := Merge(all, &v1beta2.PostRender{
		ImageMirrors: []v1beta2.ImageMirror{{From: "a.io", To: "t.io/a"}}, ImageFields: []v1beta2.ImageField{{Kind: "A", Path: "/b"}},
		ImagePullSecrets: []string{"y"}, Labels: map[string]string{"b": "2"}, Annotations: map[string]string{"n": "1"},
	})
	want := v1beta2.PostRender{
		ImageMirrors: []v1beta2.ImageMirror{{From: "a.io", To: "t.io/a"}, {From: "b.io", To: "m.io/b"}}, ImageFields: []v1beta2.ImageField{{Kind: "A", Path: "/b"}},
		ImagePullSecrets: []string{"x", "y"}, Labels: map[string]string{"a": "1", "b": "2"}, Annotations: map[string]string{"n": "1"}, Pods: true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"a": "1", "b": "1"}, all.Labels); diff != "" {
		t.Errorf("the options of all were changed: %s", diff)
	}
	if !IsZero(v1beta2.PostRender{ImageFields: want.ImageFields, Pods: true}) || IsZero(all) {
		t.Error("IsZero is wrong")
	}
}
