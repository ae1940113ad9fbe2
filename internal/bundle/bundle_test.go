package bundle

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/kind"
)

func manifest(t *testing.T, raw string) Manifest {
	t.Helper()
	var obj map[string]any
	if err := json.Unmarshal([]byte(raw), &obj); err != nil {
		t.Fatal(err)
	}
	return Manifest{Object: obj, Origin: "test.yaml"}
}

func bundleOf(t *testing.T, raws ...string) (*Bundle, error) {
	t.Helper()
	var all []Manifest
	for _, raw := range raws {
		all = append(all, manifest(t, raw))
	}
	return New(all, Options{Module: "shop", Namespace: "demo"})
}

func mustBundle(t *testing.T, raws ...string) *Bundle {
	t.Helper()
	b, err := bundleOf(t, raws...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const (
	crdJSON    = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"plans.example.com"},"spec":{"group":"example.com","scope":"Cluster","names":{"kind":"Plan","plural":"plans"},"versions":[{"name":"v1","served":true},{"name":"v0","served":false}]},"status":{"conditions":[]}}`
	planJSON   = `{"apiVersion":"example.com/v1","kind":"Plan","metadata":{"name":"p","namespace":"stray"}}`
	configJSON = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","creationTimestamp":null,"resourceVersion":"7"},"data":{"a":"b"}}`
	roleJSON   = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"r","namespace":"stray"}}`
	hookJSON   = `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":"w"}}`
	spaceJSON  = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"demo"}}`
)

func TestNewOrdersByStageAndResolvesScopes(t *testing.T) {
	t.Parallel()
	b := mustBundle(t, hookJSON, planJSON, configJSON, roleJSON, crdJSON, spaceJSON)
	var got []string
	for _, o := range b.Objects {
		got = append(got, o.Stage.String()+" "+o.Ref.String())
	}
	want := []string{
		"definitions Namespace demo",
		"definitions CustomResourceDefinition.apiextensions.k8s.io plans.example.com",
		"cluster ClusterRole.rbac.authorization.k8s.io r",
		"built-in ConfigMap demo/c",
		"custom Plan.example.com p",
		"admission ValidatingWebhookConfiguration.admissionregistration.k8s.io w",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func TestNewMakesTheBytesThatAreSent(t *testing.T) {
	t.Parallel()
	o := mustBundle(t, configJSON).Objects[0]
	var sent struct {
		Metadata map[string]any `json:"metadata"`
	}
	if err := json.Unmarshal(o.Bytes, &sent); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"name": "c", "namespace": "demo",
		"labels":      map[string]any{v1beta2.ApplySetPartOfLabel: ApplySetID("demo", "shop")},
		"annotations": map[string]any{v1beta2.DigestAnnotation: o.Digest},
	}
	if diff := cmp.Diff(want, sent.Metadata); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	if zeroed := strings.Replace(string(o.Bytes), o.Digest, noDigest, 1); Digest([]byte(zeroed)) != o.Digest {
		t.Error("the digest is not that of the bytes with zeroes in its place")
	}
	if !o.Member {
		t.Error("a ConfigMap is no member of the set")
	}
	if mustBundle(t, spaceJSON).Objects[0].Member {
		t.Error("a Namespace is a member of the set")
	}
}

func TestNewIsAPureFunction(t *testing.T) {
	t.Parallel()
	a, b := mustBundle(t, configJSON, roleJSON), mustBundle(t, roleJSON, configJSON)
	if a.Digest != b.Digest {
		t.Error("the order of manifests changes the digest")
	}
	if other := mustBundle(t, configJSON); other.Digest == a.Digest {
		t.Error("different bundles have one digest")
	}
}

func TestNewDropsStatusAndEncodesSecrets(t *testing.T) {
	t.Parallel()
	b := mustBundle(t, crdJSON, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"a":"b2xk","b":"a2VlcA=="},"stringData":{"a":"new"}}`)
	for _, o := range b.Objects {
		var obj map[string]any
		if err := json.Unmarshal(o.Bytes, &obj); err != nil {
			t.Fatal(err)
		}
		if obj["status"] != nil || obj["stringData"] != nil {
			t.Errorf("%s still has status or stringData", o.Ref)
		}
		if o.Kind == "Secret" {
			if diff := cmp.Diff(map[string]any{"a": "bmV3", "b": "a2VlcA=="}, obj["data"]); diff != "" {
				t.Errorf("data (-want +got):\n%s", diff)
			}
		}
	}
}

func TestNewTakesListsApart(t *testing.T) {
	t.Parallel()
	b := mustBundle(t, `{"apiVersion":"v1","kind":"List","items":[`+configJSON+`,`+roleJSON+`]}`)
	if len(b.Objects) != 2 {
		t.Errorf("%d objects, want 2", len(b.Objects))
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, object, want string }{
		{"NoAPIVersion", `{"kind":"ConfigMap","metadata":{"name":"c"}}`, "has no apiVersion"},
		{"NoKind", `{"apiVersion":"v1","metadata":{"name":"c"}}`, "has no kind"},
		{"NoName", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{}}`, "has no metadata.name"},
		{"GenerateName", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"c-"}}`, "generateName makes a new object each time"},
		{"NumberAsLabel", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","labels":{"a":1}}}`, `metadata.labels["a"] is not a string: quote it`},
		{"ListItemNoObject", `{"apiVersion":"v1","kind":"List","items":["x"]}`, "item 0 of the List is not an object"},
		{"CRDWithoutScope", `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"x"},"spec":{"group":"g","names":{"kind":"K"}}}`, "spec.scope"},
		{"SecretWithNumber", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"stringData":{"a":12345}}`, `stringData["a"] is not a string`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := bundleOf(t, test.object, configJSON)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error = %v, want %q in it", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "12345") {
				t.Errorf("the error shows a Secret's value: %v", err)
			}
		})
	}
	t.Run("Duplicate", func(t *testing.T) {
		t.Parallel()
		_, err := bundleOf(t, configJSON, configJSON)
		if err == nil || !strings.Contains(err.Error(), "ConfigMap demo/c: is defined twice") {
			t.Errorf("error = %v, want the duplicate named", err)
		}
	})
	t.Run("Empty", func(t *testing.T) {
		t.Parallel()
		if _, err := bundleOf(t); !errors.Is(err, ErrEmpty) {
			t.Errorf("error = %v, want ErrEmpty", err)
		}
	})
}

func TestApplySetIDIsKubectls(t *testing.T) {
	t.Parallel()
	// sha256("demo.shop.mothership-system.ConfigMap.") in unpadded base64url, as KEP-3659 says.
	const want = "applyset-"
	got := ApplySetID("demo", "shop")
	if !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "-v1") || len(got) != len(want)+43+3 {
		t.Errorf("ID = %s, which has not the specified form", got)
	}
	if got == ApplySetID("demo", "shop2") {
		t.Error("two modules have one ID")
	}
}

func TestWithAddsObjects(t *testing.T) {
	t.Parallel()
	b := mustBundle(t, crdJSON)
	more, err := b.With([]Manifest{manifest(t, planJSON)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(more.Objects) != 2 || more.Digest == b.Digest || len(b.Objects) != 1 {
		t.Error("the further object is not in the copy alone")
	}
	if more.Objects[1].Namespace != "" {
		t.Error("the scope that the bundle's definition states is not used")
	}
}

func TestDefinitions(t *testing.T) {
	t.Parallel()
	got, err := mustBundle(t, crdJSON).Definitions()
	if err != nil {
		t.Fatal(err)
	}
	want := []Definition{{
		GroupVersionKind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Plan"},
		Resource:         "plans", CRD: "plans.example.com",
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("definitions, served ones only (-want +got):\n%s", diff)
	}
}

func TestStageOf(t *testing.T) {
	t.Parallel()
	for gk, want := range map[schema.GroupKind]Stage{
		{Group: "apps", Kind: "Deployment"}:                                        StageBuiltIn,
		{Group: "cert-manager.io", Kind: "Issuer"}:                                 StageCustom,
		{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicy"}: StageAdmission,
		{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:                  StageCluster,
		{Kind: "Namespace"}: StageDefinitions,
	} {
		if got := StageOf(gk); got != want {
			t.Errorf("stage of %s = %s, want %s", gk, got, want)
		}
	}
	if kind.BuiltIn("example.com") {
		t.Error("example.com is called built in")
	}
}
