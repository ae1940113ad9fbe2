package apitest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// patch merges a patch into an object or a subresource of it.
func (b bed) patch(t *testing.T, obj *unstructured.Unstructured, patch string, subresources ...string) (*unstructured.Unstructured, error) {
	t.Helper()
	return b.resource(obj.GetKind()).Patch(t.Context(), obj.GetName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict}, subresources...)
}

func TestChange(t *testing.T) {
	t.Parallel()
	b := setup(t)
	template := b.mustCreate(t, object(t, "ModuleTemplate", "web-1.0.0", `{moduleName: web, version: 1.0.0, source: {chart: {path: web}}}`))
	runtime := b.mustCreate(t, object(t, "Runtime", "eu-1", `{provider: local}`))
	existing := b.mustCreate(t, object(t, "Runtime", "eu-2", `{provider: byoc, kubeconfig: {secretRef: {name: eu-2}}}`))
	kyma := b.mustCreate(t, object(t, "Kyma", "eu-1", `{channel: regular}`))
	for _, c := range []struct {
		name  string
		obj   *unstructured.Unstructured
		patch string
		want  string
	}{
		{"TemplateSource", template, `{"spec":{"source":{"chart":{"path":"web-2"}},"values":{"a":1}}}`, ""},
		{"TemplateModule", template, `{"spec":{"moduleName":"shop"}}`, `spec.moduleName: Invalid value: "shop": moduleName cannot change: make another ModuleTemplate`},
		{"TemplateVersion", template, `{"spec":{"version":"1.0.1"}}`, `spec.version: Invalid value: "1.0.1": version cannot change: make another ModuleTemplate`},
		{"RuntimeProvider", existing, `{"spec":{"provider":"local"}}`, `spec.provider: Invalid value: "local": the provider of a runtime cannot change: make another Runtime`},
		{"RuntimeDriftDetection", runtime, `{"spec":{"driftDetection":"Watch"}}`, ""},
		{"RuntimeKubeconfig", existing, `{"spec":{"kubeconfig":{"secretRef":{"name":"new"}}}}`, ""},
		{"RuntimeKubeconfigRemoved", existing, `{"spec":{"kubeconfig":null}}`, "a byoc runtime needs kubeconfig.secretRef"},
		{"KymaChannel", kyma, `{"spec":{"channel":"fast"}}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := b.patch(t, c.obj, c.patch)
			if (c.want == "") != (err == nil) || !strings.Contains(text(err), c.want) {
				t.Errorf("the server says %q, want %q", text(err), c.want)
			}
		})
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, c := range []struct{ kind, name, spec, want string }{
		{"Kyma", "eu-1", `{channel: regular, modules: [{name: web, valuesFrom: [{kind: Secret, name: s}]}, {name: db, managed: false, customResourcePolicy: Ignore}]}`,
			`{"channel":"regular","modules":[{"customResourcePolicy":"CreateAndDelete","managed":true,"name":"web","valuesFrom":[{"key":"values.yaml","kind":"Secret","name":"s"}]},{"customResourcePolicy":"Ignore","managed":false,"name":"db"}]}`},
		{"ModuleTemplate", "web-1.0.0", `{moduleName: web, version: 1.0.0, source: {chart: {path: web}}}`,
			`{"moduleName":"web","namespace":"kyma-system","source":{"chart":{"path":"web"}},"version":"1.0.0"}`},
		{"ModuleReleaseMeta", "web", `{moduleName: web, mandatory: {version: 1.0.0}}`, `{"mandatory":{"version":"1.0.0"},"moduleName":"web"}`},
		{"Runtime", "eu-1", `{provider: byoc, kubeconfig: {secretRef: {name: eu-1}}}`,
			`{"deletionPolicy":"Delete","driftDetection":"Poll","kubeconfig":{"secretRef":{"key":"kubeconfig","name":"eu-1"}},"provider":"byoc"}`},
	} {
		t.Run(c.kind, func(t *testing.T) {
			t.Parallel()
			made := b.mustCreate(t, object(t, c.kind, c.name, c.spec))
			got, err := json.Marshal(made.Object["spec"])
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != c.want {
				t.Errorf("spec\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestStatusIsApart(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, c := range []struct{ kind, spec, change string }{
		{"Kyma", `{channel: regular}`, `{"channel":"fast"}`},
		{"Runtime", `{provider: local}`, `{"driftDetection":"Watch"}`},
	} {
		t.Run(c.kind, func(t *testing.T) {
			t.Parallel()
			obj := object(t, c.kind, "eu-1", c.spec)
			obj.Object["status"] = map[string]any{"state": "Ready"}
			made := b.mustCreate(t, obj)
			if status, found := made.Object["status"]; found {
				t.Errorf("created with status %v, want none", status)
			}
			got, err := b.patch(t, obj, `{"spec":`+c.change+`,"status":{"state":"Warning","observedGeneration":1}}`, "status")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(made.Object["spec"], got.Object["spec"]); diff != "" || got.GetGeneration() != 1 {
				t.Errorf("a patch of the status changed the spec, generation %d (-want +got):\n%s", got.GetGeneration(), diff)
			}
			if state, _, _ := unstructured.NestedString(got.Object, "status", "state"); state != "Warning" {
				t.Errorf("status.state %q, want Warning", state)
			}
			got, err = b.patch(t, obj, `{"status":{"state":"Error"}}`)
			if err != nil {
				t.Fatal(err)
			}
			if state, _, _ := unstructured.NestedString(got.Object, "status", "state"); state != "Warning" {
				t.Errorf("status.state %q after a patch of the object, want Warning", state)
			}
		})
	}
}

func TestCatalogueHasNoStatus(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.mustCreate(t, object(t, "ModuleReleaseMeta", "web", `{moduleName: web, mandatory: {version: 1.0.0}}`))
	if _, err := b.patch(t, made, `{"status":{}}`, "status"); !apierrors.IsNotFound(err) {
		t.Errorf("patching the status: %v, want not found", err)
	}
}

func TestStatusIsChecked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	kyma := b.mustCreate(t, object(t, "Kyma", "eu-1", `{channel: regular}`))
	runtime := b.mustCreate(t, object(t, "Runtime", "eu-1", `{provider: local}`))
	for _, c := range []struct {
		name  string
		obj   *unstructured.Unstructured
		patch string
		want  string
	}{
		{"UnknownState", kyma, `{"status":{"state":"Great"}}`, `status.state: Unsupported value: "Great"`},
		{"ModuleWithoutState", kyma, `{"status":{"modules":[{"name":"web"}]}}`, `status.modules[0].state: Required value`},
		{"FactTwice", runtime, `{"status":{"facts":[{"key":"a","value":"1","writer":"w","observedAt":"2026-01-01T00:00:00Z"},{"key":"a","value":"2","writer":"w","observedAt":"2026-01-01T00:00:00Z"}]}}`, `status.facts[1]: Duplicate value: {"key":"a"}`},
		{"FactKey", runtime, `{"status":{"facts":[{"key":"a b","value":"1","writer":"w","observedAt":"2026-01-01T00:00:00Z"}]}}`, `status.facts[0].key: Invalid value: "a b": the key of a fact has`},
		{"OfAnotherOperator", kyma, `{"status":{"lastOperation":{"operation":"x"}}}`, `unknown field "status.lastOperation"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if _, err := b.patch(t, c.obj, c.patch, "status"); err == nil || !strings.Contains(text(err), c.want) {
				t.Errorf("the server says %q, want %q", text(err), c.want)
			}
		})
	}
}
