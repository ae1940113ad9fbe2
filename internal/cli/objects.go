package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// objects of a file that stands in for a control plane's API: what a Kyma and its valuesFrom, or the credentialsRefs of templates,
// lead to. As a client.Reader it knows Secrets and ConfigMaps by their names, in whatever namespace.
type objects struct {
	client.Reader
	kymas   []*v1beta2.Kyma
	secrets map[string]*corev1.Secret
	configs map[string]*corev1.ConfigMap
}

// readObjects reads a YAML file. Its errors name the document and hold nothing of it.
func readObjects(file string) (*objects, error) {
	data, err := readFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading objects: %w", err)
	}
	return decodeObjects(file, data)
}

func decodeObjects(file string, data []byte) (*objects, error) {
	out := &objects{secrets: map[string]*corev1.Secret{}, configs: map[string]*corev1.ConfigMap{}}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for n := 1; ; n++ { // ends with the file, whose size is bounded
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err == nil {
			err = out.add(document)
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: document %d: %w", file, n, err)
		}
	}
}

// errSecretForm is the error of a Secret: the parser's own could quote it.
var errSecretForm = errors.New("Secret: it is not as the Kubernetes API has it: metadata.name, and data (base64) or stringData") //nolint:staticcheck // it begins with a kind

func (o *objects) add(document []byte) error {
	var meta metav1.PartialObjectMetadata
	var content any
	if yaml.Unmarshal(document, &content) != nil || content != nil && yaml.Unmarshal(document, &meta) != nil {
		return errors.New("it is not YAML of a Kubernetes object")
	}
	switch {
	case content == nil:
		return nil
	case meta.Name == "":
		return errors.New("metadata.name is missing")
	}
	switch gvk := schema.FromAPIVersionAndKind(meta.APIVersion, meta.Kind); gvk {
	case v1beta2.GroupVersion.WithKind("Kyma"):
		k := &v1beta2.Kyma{}
		o.kymas = append(o.kymas, k)
		return yaml.UnmarshalStrict(document, k)
	case corev1.SchemeGroupVersion.WithKind("ConfigMap"):
		o.configs[meta.Name] = &corev1.ConfigMap{}
		return yaml.UnmarshalStrict(document, o.configs[meta.Name])
	case corev1.SchemeGroupVersion.WithKind("Secret"):
		s := &corev1.Secret{}
		if yaml.UnmarshalStrict(document, s) != nil {
			return errSecretForm
		}
		secretOf(s)
		o.secrets[meta.Name] = s
		return nil
	}
	return fmt.Errorf("%s %s: only a Kyma, Secrets and ConfigMaps are read", meta.APIVersion, meta.Kind)
}

// Get implements client.Reader.
func (o *objects) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch into := into.(type) {
	case *corev1.Secret:
		if s := o.secrets[key.Name]; s != nil {
			s.DeepCopyInto(into)
			return nil
		}
	case *corev1.ConfigMap:
		if c := o.configs[key.Name]; c != nil {
			c.DeepCopyInto(into)
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: "objects of the file"}, key.Name)
}
