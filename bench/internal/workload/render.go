package workload

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kyma-project/mothership"
	"github.com/kyma-project/mothership/internal/kind"
)

// Object is a rendered object with what is needed to send it.
type Object struct {
	// Kind is the object's kind and group, as in "Deployment.apps".
	Kind string `json:"kind"`
	// Stage in which it is applied; objects of one stage follow each other.
	Stage string `json:"stage"`
	// Path of the object in URLs, from the slash.
	Path string `json:"path"`
	// Serves are the collections, as paths in URLs, that the server has once it serves what the object defines.
	Serves []string `json:"serves,omitempty"`
	// Body is the JSON that is sent.
	Body json.RawMessage `json:"body"`
}

// Rendered is a case in a namespace.
type Rendered struct {
	Case Case
	// Namespace that it goes to.
	Namespace string
	// Kinds is the number of different kinds among the objects.
	Kinds int
	// Objects in the order in which they are applied: first the namespace, which Mothership and Helm make themselves, then
	// the module's own.
	Objects []Object
}

// Render renders a case for a namespace, as the library sends it. No cluster is needed.
func (c Case) Render(ctx context.Context, namespace string) (*Rendered, error) {
	r, err := mothership.New(mothership.Options{}).Render(ctx, c.Module(namespace), mothership.RenderOptions{})
	if err != nil {
		return nil, fmt.Errorf("rendering %s: %w", c.Name, err)
	}
	out := &Rendered{Case: c, Namespace: namespace, Objects: []Object{namespaceObject(namespace)}}
	kinds := map[string]bool{}
	for _, o := range r.Objects {
		next, err := newObject(o)
		if err != nil {
			return nil, fmt.Errorf("rendering %s: %s: %w", c.Name, o.Ref, err)
		}
		kinds[next.Kind] = true
		out.Objects = append(out.Objects, next)
	}
	out.Kinds = len(kinds)
	return out, nil
}

func namespaceObject(name string) Object {
	return Object{
		Kind: "Namespace", Stage: "namespace", Path: "/api/v1/namespaces/" + name,
		Body: fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, name),
	}
}

// header is what every object has, and what is read of a definition.
type header struct {
	APIVersion string `json:"apiVersion"`
	Spec       struct {
		Group string `json:"group"`
		Names struct {
			Plural string `json:"plural"`
		} `json:"names"`
		Versions []struct {
			Name   string `json:"name"`
			Served bool   `json:"served"`
		} `json:"versions"`
	} `json:"spec"`
}

var errNotBuiltIn = errors.New("its kind is not built into Kubernetes, which no case of this comparison needs")

func newObject(o mothership.Object) (Object, error) {
	var h header
	if err := json.Unmarshal(o.JSON, &h); err != nil {
		return Object{}, err
	}
	gvk := schema.FromAPIVersionAndKind(h.APIVersion, o.Kind)
	info, ok := kind.Lookup(gvk)
	if !ok {
		return Object{}, errNotBuiltIn
	}
	out := Object{Kind: gvk.GroupKind().String(), Stage: o.Stage, Body: o.JSON}
	out.Path = collection(gvk.GroupVersion(), o.Namespace, info.Resource) + "/" + o.Name
	if o.Kind == "CustomResourceDefinition" {
		for _, v := range h.Spec.Versions {
			if v.Served {
				gv := schema.GroupVersion{Group: h.Spec.Group, Version: v.Name}
				out.Serves = append(out.Serves, collection(gv, "", h.Spec.Names.Plural))
			}
		}
	}
	return out, nil
}

func collection(gv schema.GroupVersion, namespace, resource string) string {
	path := "/apis/" + gv.String()
	if gv.Group == "" {
		path = "/api/" + gv.Version
	}
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	return path + "/" + resource
}

// WriteObjects writes the objects as JSON, for ReadObjects.
func (r *Rendered) WriteObjects(file string) error {
	data, err := json.Marshal(r.Objects)
	if err != nil {
		return fmt.Errorf("writing objects: %w", err)
	}
	return os.WriteFile(file, data, 0o600)
}

// ReadObjects reads what WriteObjects wrote.
func ReadObjects(file string) ([]Object, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading objects: %w", err)
	}
	var out []Object
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, fmt.Errorf("reading objects: %w", err)
	}
	return out, nil
}

// WriteManifests writes the objects as a YAML stream, for kubectl.
func (r *Rendered) WriteManifests(file string) error {
	var b bytes.Buffer
	for _, o := range r.Objects {
		b.WriteString("---\n")
		b.Write(o.Body)
		b.WriteByte('\n')
	}
	return os.WriteFile(file, b.Bytes(), 0o600)
}
