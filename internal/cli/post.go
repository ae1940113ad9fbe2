package cli

import (
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/render/post"
)

// postFlag is the flag by which the post-render step of all modules is given: the name of a file.
type postFlag struct {
	file string
	into *v1beta2.PostRender
}

var _ pflag.Value = (*postFlag)(nil)

// addPostFlag defines the flag, which fills options in.
func addPostFlag(fs *pflag.FlagSet, into *v1beta2.PostRender) {
	fs.Var(&postFlag{into: into}, "post-render", "a YAML `FILE` of what is done to all rendered objects: imageMirrors, imagePullSecrets, labels …")
}

// String is the name of the file.
func (p *postFlag) String() string { return p.file }

// Type is shown nowhere: the flag's text names its argument.
func (p *postFlag) Type() string { return "file" }

// Set reads the file. Fields that are not known are refused.
func (p *postFlag) Set(name string) error {
	data, err := readFile(name)
	if err != nil {
		return err
	}
	var o v1beta2.PostRender
	if err := yaml.UnmarshalStrict(data, &o); err != nil {
		return err
	}
	p.file, *p.into = name, o
	return post.Check(o)
}
