package render

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// toMirror takes every image from one registry, and says whose the objects are.
var toMirror = v1beta2.PostRender{
	ImageMirrors:     []v1beta2.ImageMirror{{From: "quay.io", To: "mirror.example.com/quay"}},
	ImageFields:      []v1beta2.ImageField{{Group: "apps", Kind: "Deployment", Path: "/spec/template/spec/containers/*/args/*", Prefix: "--acme-http01-solver-image="}},
	ImagePullSecrets: []string{"mirror"},
	Labels:           map[string]string{"example.com/team": "platform"},
	Annotations:      map[string]string{"example.com/origin": "test"},
}

// TestPostRender takes a real chart through the step: no image is left that comes from elsewhere.
func TestPostRender(t *testing.T) {
	t.Parallel()
	r := certManager(t)
	plain := mustRender(t, r)
	r.PostRender = toMirror
	b := mustRender(t, r)
	if diff := cmp.Diff(refs(plain), refs(b)); diff != "" {
		t.Errorf("other objects: %s", diff)
	}
	if len(b.Images) != 4 {
		t.Errorf("rewritten: %v", b.Images)
	}
	for _, i := range b.Images {
		if i.To != strings.Replace(i.From, "quay.io/", "mirror.example.com/quay/", 1) || i.Kind != "Deployment" {
			t.Errorf("rewritten: %+v", i)
		}
	}
	for _, o := range b.Objects {
		text := string(o.Bytes)
		if o.Kind == "Deployment" && strings.Contains(text, `"quay.io/`) {
			t.Errorf("%s has an image from elsewhere", o.Ref)
		}
		if !strings.Contains(text, `"example.com/team":"platform"`) || !strings.Contains(text, `"example.com/origin":"test"`) {
			t.Errorf("%s has no label or annotation", o.Ref)
		}
		if pods := o.Kind == "Deployment" || o.Kind == "ServiceAccount"; pods != strings.Contains(text, `"imagePullSecrets":[{"name":"mirror"}]`) {
			t.Errorf("pull secrets of %s: %s", o.Ref, text)
		}
		if o.Kind == "Deployment" && strings.Count(text, "example.com/team") != 1 {
			t.Errorf("%s has the label in its template or selector", o.Ref)
		}
	}
	got, err := isolated(t, IsolatedOptions{}).Render(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b, got); diff != "" {
		t.Errorf("the child does otherwise: %s", diff)
	}
}

// TestPostRenderOnce shows that kustomize's and plain objects pass the same step, and what is in Lists, too.
func TestPostRenderOnce(t *testing.T) {
	t.Parallel()
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: here}\nspec: {containers: [{name: c, image: 'quay.io/mirror.example.com/c'}]}\n"
	for name, r := range map[string]Request{
		"Manifests": request(Manifests, "-- a.yaml --\n"+pod),
		"List":      request(Manifests, "-- a.yaml --\napiVersion: v1\nkind: List\nitems:\n- "+strings.ReplaceAll(strings.TrimSpace(pod), "\n", "\n  ")+"\n"),
		"Kustomize": request(Kustomize, "-- kustomization.yaml --\nresources: [a.yaml]\n-- a.yaml --\n"+pod),
		"Chart":     request(Chart, chartYAML+"-- templates/a.yaml --\n"+pod),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r.PostRender = toMirror
			b := mustRender(t, r)
			if len(b.Images) != 1 || b.Images[0].To != "mirror.example.com/quay/mirror.example.com/c" || b.Images[0].String() != "Pod here/p" {
				t.Errorf("rewritten: %+v", b.Images)
			}
			if text := bytesOf(t, b, "p"); strings.Count(text, `"name":"mirror"`) != 1 || strings.Count(text, "example.com/team") != 1 {
				t.Error(text)
			}
		})
	}
}

func TestPostRenderIsChecked(t *testing.T) {
	t.Parallel()
	r := request(Manifests, "-- a.yaml --\n"+configMap("a"))
	r.PostRender.ImageMirrors = []v1beta2.ImageMirror{{From: "nginx", To: "mirror.example.com"}}
	r.PostRender.Labels = map[string]string{"helm.sh/chart": "x"}
	_, err := New(Options{}).Render(context.Background(), r)
	wantError(t, err, ErrMalformed, `postRender.imageMirrors[0].from "nginx": it begins with a registry`)
	wantError(t, err, ErrMalformed, `postRender.labels["helm.sh/chart"]: helm.sh is reserved`)
}
