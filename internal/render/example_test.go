package render_test

import (
	"context"
	"fmt"

	"github.com/kyma-project/mothership/internal/render"
	"github.com/kyma-project/mothership/internal/source"
)

func ExampleNew() {
	tree := &source.Tree{Root: ".", Files: []source.File{
		{Path: "Chart.yaml", Data: []byte("apiVersion: v2\nname: hello\nversion: 1.0.0\n")},
		{Path: "templates/config.yaml", Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-{{ .Values.color }}\n")},
	}}
	b, err := render.New(render.Options{}).Render(context.Background(), render.Request{
		Tree: tree, Kind: render.Chart, Module: "hello", Namespace: "default", Values: map[string]any{"color": "blue"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, o := range b.Objects {
		fmt.Println(o.Ref)
	}
	// Output: ConfigMap default/hello-blue
}

func ExampleMergeValues() {
	values, err := render.MergeValues(
		[]render.NamedBytes{{Name: "prod.yaml", Data: []byte("image: {tag: v1}\nreplicas: 2\n")}},
		render.Sets{Values: []string{"image.tag=v2", "debug=true"}},
	)
	fmt.Println(values, err)
	// Output: map[debug:true image:map[tag:v2] replicas:2] <nil>
}
