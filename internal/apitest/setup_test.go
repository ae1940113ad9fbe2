package apitest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/kyma-project/mothership/api/crd"
	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/infra/local"
	"github.com/kyma-project/mothership/internal/infra/local/localtest"
)

func TestMain(m *testing.M) { os.Exit(localtest.Main(m)) }

// served is how long the server may take until new definitions are served and published.
const served = time.Minute

// plurals are the resources of all kinds.
var plurals = map[string]string{
	"Kyma": "kymas", "ModuleTemplate": "moduletemplates", "ModuleReleaseMeta": "modulereleasemetas", "Runtime": "runtimes",
}

// bed is a namespace on a server that has the definitions.
type bed struct {
	srv       *local.Server
	namespace string
	client    dynamic.Interface
}

// installed is done once for the server that all tests share.
var installed = struct {
	sync.Once
	err error
}{}

func setup(t *testing.T) bed {
	t.Helper()
	srv := localtest.Server(t)
	client, err := dynamic.NewForConfig(srv.Config())
	if err != nil {
		t.Fatal(err)
	}
	installed.Do(func() { installed.err = install(client, srv.Config()) })
	if installed.err != nil {
		t.Fatal(installed.err)
	}
	return bed{srv: srv, namespace: localtest.Namespace(t, srv), client: client}
}

// install creates the definitions and waits until the server serves and describes them.
func install(client dynamic.Interface, config *rest.Config) error {
	ctx, cancel := context.WithTimeout(context.Background(), served)
	defer cancel()
	definitions := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	for _, file := range crd.All() {
		definition, err := decode(string(file))
		if err != nil {
			return err
		}
		if _, err := definitions.Create(ctx, definition, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}); err != nil {
			return fmt.Errorf("creating %s: %w", definition.GetName(), err)
		}
	}
	for _, plural := range plurals {
		if err := await(ctx, func(ctx context.Context) (bool, error) {
			_, err := client.Resource(v1beta2.GroupVersion.WithResource(plural)).List(ctx, metav1.ListOptions{})
			return !apierrors.IsNotFound(err), err
		}); err != nil {
			return fmt.Errorf("waiting for %s: %w", plural, err)
		}
	}
	return awaitDescription(ctx, config)
}

// awaitDescription waits for what kubectl explain reads.
func awaitDescription(ctx context.Context, config *rest.Config) error {
	err := await(ctx, func(ctx context.Context) (bool, error) {
		text, err := get(ctx, config, "/openapi/v3/apis/"+v1beta2.GroupVersion.String(), "application/json")
		for kind := range plurals {
			if !strings.Contains(string(text), `"kind":"`+kind+`"`) {
				return false, nil
			}
		}
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the description of %s: %w", v1beta2.GroupVersion, err)
	}
	return nil
}

// await asks until the answer is yes, or an error of a server that does serve what it is asked for.
func await(ctx context.Context, ask func(context.Context) (bool, error)) error {
	return wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		done, err := ask(ctx)
		if !done {
			return false, nil
		}
		return true, err
	})
}

// resource is where objects of a kind are, in the test's namespace.
func (b bed) resource(kind string) dynamic.ResourceInterface {
	return b.client.Resource(v1beta2.GroupVersion.WithResource(plurals[kind])).Namespace(b.namespace)
}

// create creates an object; strictly: a field that the definition does not have is an error.
func (b bed) create(t *testing.T, obj *unstructured.Unstructured, dryRun ...string) (*unstructured.Unstructured, error) {
	t.Helper()
	obj = obj.DeepCopy()
	obj.SetNamespace(b.namespace)
	return b.resource(obj.GetKind()).Create(t.Context(), obj, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict, DryRun: dryRun})
}

// mustCreate is create for an object that has to be accepted.
func (b bed) mustCreate(t *testing.T, obj *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	made, err := b.create(t, obj)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// object is an object of the API group from its kind, name and the YAML of its spec; no spec where that is empty.
func object(t *testing.T, kind, name, spec string) *unstructured.Unstructured {
	t.Helper()
	obj, err := decode(fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: %q}\n", v1beta2.GroupVersion, kind, name))
	if err != nil {
		t.Fatal(err)
	}
	var content any
	if err := yaml.Unmarshal([]byte(spec), &content); err != nil {
		t.Fatal(err)
	}
	if content != nil {
		obj.Object["spec"] = content
	}
	return obj
}

func decode(text string) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	text = strings.TrimPrefix(text, "---\n")
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("decoding: %w", err)
	}
	if err := obj.UnmarshalJSON(data); err != nil {
		return nil, fmt.Errorf("decoding: %w", err)
	}
	return obj, nil
}

// text is everything that an error of the API server says to a person.
func text(err error) string {
	if err == nil {
		return ""
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Message
	}
	return err.Error()
}
