package module

import (
	"strings"
	"testing"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/render"
	"github.com/kyma-project/mothership/internal/source"
	"github.com/kyma-project/mothership/reconciler"
)

// TestPostRenderIsOfAllAndOfTheTemplate also shows that the default custom resource passes the step, which is no part of what was
// rendered, and what was rewritten is listed with the rest.
func TestPostRenderIsOfAllAndOfTheTemplate(t *testing.T) {
	t.Parallel()
	r := New(Options{
		Sources: source.New(source.Options{}), Renderer: render.New(render.Options{}), Key: []byte("key"),
		PostRender: v1beta2.PostRender{
			ImageMirrors: []v1beta2.ImageMirror{{From: "quay.io", To: "mirror.example.com"}}, Labels: map[string]string{"team": "all", "fleet": "one"},
		},
	})
	c := reconciler.Component{Name: "web", Namespace: "demo"}
	c.Template.Source.Chart = chart(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: 'quay.io/c:1'}]}\n")
	c.Template.Data = raw(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"image":"quay.io/w:2"}}`)
	c.Template.PostRender = &v1beta2.PostRender{
		ImageFields: []v1beta2.ImageField{{Group: "example.com", Kind: "Widget", Path: "/spec/image"}}, Labels: map[string]string{"team": "web"},
	}
	for range 2 { // the template's own bytes are not changed
		out, err := r.Render(t.Context(), c, RenderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var images []string
		for _, i := range out.Bundle.Images {
			images = append(images, i.String()+" "+i.Path+" "+i.To)
		}
		want := "Pod p /spec/containers/0/image mirror.example.com/c:1, Widget.example.com w /spec/image mirror.example.com/w:2"
		if got := strings.Join(images, ", "); got != want {
			t.Errorf("rewritten: %s", got)
		}
		for _, o := range out.Bundle.Objects {
			text := string(o.Bytes)
			if strings.Contains(text, "quay.io") || !strings.Contains(text, `"team":"web"`) || !strings.Contains(text, `"fleet":"one"`) {
				t.Errorf("%s: %s", o.Ref, text)
			}
		}
	}
}
