package schema

import (
	"fmt"
	"sync"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/applyconfigurations"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
)

type fieldErrors = field.ErrorList

// Scheme has the Go types of the built-in kinds.
var Scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientscheme.AddToScheme(s))
	utilruntime.Must(apiextensions.AddToScheme(s))
	return s
}()

// clientTypes are the types that client-go has, and nothing that somebody else in the process adds to its scheme.
var clientTypes = func() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientscheme.AddToScheme(s))
	return s
}()

// builtInTypes are the merge schemas of client-go, for all clusters: 0.1 s and 20 MiB that only a process with clusters should spend.
var builtInTypes = sync.OnceValue(func() managedfields.TypeConverter { return applyconfigurations.NewTypeConverter(clientTypes) })

// converterOf gives a built-in kind's merge schema. Those that client-go has none of are written down here, or deduced.
func converterOf(gvk schema.GroupVersionKind) managedfields.TypeConverter {
	if clientTypes.Recognizes(gvk) {
		return builtInTypes()
	}
	if written := writtenSchemas[gvk.Kind]; written != "" {
		return parsedSchema(gvk, written)
	}
	return managedfields.NewDeducedTypeConverter()
}

// completeBuiltIn sends an object through its Go type and back, as the API server does, and fills in defaults.
func completeBuiltIn(gvk schema.GroupVersionKind, object map[string]any) error {
	typed, err := Scheme.New(gvk)
	if err != nil {
		return nil //nolint:nilerr // a kind without Go type here: APIService
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, typed); err != nil {
		return err
	}
	setDefaults(typed)
	return replace(object, typed, gvk)
}

// replace makes an object what a typed one says. Managed fields go by: they are kept beside the type.
func replace(object map[string]any, typed runtime.Object, gvk schema.GroupVersionKind) error {
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return fmt.Errorf("converting %s: %w", gvk.Kind, err)
	}
	clear(object)
	for key, value := range tree {
		object[key] = value
	}
	object["apiVersion"], object["kind"] = gvk.GroupVersion().String(), gvk.Kind
	return nil
}

func emptyBuiltIn(gvk schema.GroupVersionKind) map[string]any {
	object := map[string]any{}
	if typed, err := Scheme.New(gvk); err == nil {
		if err := replace(object, typed, gvk); err != nil {
			panic(err) // the zero value of a type of Kubernetes
		}
	}
	object["apiVersion"], object["kind"] = gvk.GroupVersion().String(), gvk.Kind
	if _, ok := object["metadata"].(map[string]any); !ok {
		object["metadata"] = map[string]any{}
	}
	return object
}
