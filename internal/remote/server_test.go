package remote

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kyma-project/mothership/internal/infra/local/localtest"
)

// These tests talk to a real kube-apiserver.

func TestObjectLifecycle(t *testing.T) {
	t.Parallel()
	c, ns := realClient(t)
	ctx := t.Context()
	configMaps := resource(t, c, "v1", "ConfigMap")

	var created metav1.PartialObjectMetadata
	if err := c.Create(ctx, configMaps, ns, configMap("a", map[string]string{"k": "1"}, nil), &created); err != nil {
		t.Fatal(err)
	}
	if created.UID == "" || created.Kind != "ConfigMap" || created.APIVersion != "v1" {
		t.Errorf("created = %+v, want the metadata of a ConfigMap", created)
	}
	if err := c.Apply(ctx, configMaps, ns, "a", configMap("a", map[string]string{"k": "2"}, nil), ApplyOptions{Manager: "m", Force: true}, nil); err != nil {
		t.Fatal(err)
	}
	var whole unstructured.Unstructured
	patch := []byte(`{"data":{"other":"3"}}`)
	if err := c.Patch(ctx, configMaps, ns, "a", types.MergePatchType, patch, PatchOptions{Manager: "p"}, &whole); err != nil {
		t.Fatal(err)
	}
	data, _, _ := unstructured.NestedStringMap(whole.Object, "data")
	if diff := cmp.Diff(map[string]string{"k": "2", "other": "3"}, data); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}

	t.Run("DryRunChangesNothing", func(t *testing.T) {
		var dry unstructured.Unstructured
		changed := configMap("a", map[string]string{"k": "dry"}, nil)
		if err := c.Apply(ctx, configMaps, ns, "a", changed, ApplyOptions{Manager: "m", Force: true, DryRun: true}, &dry); err != nil {
			t.Fatal(err)
		}
		if err := c.Delete(ctx, configMaps, ns, "a", DeleteOptions{DryRun: true}); err != nil {
			t.Fatal(err)
		}
		var now struct {
			Data map[string]string `json:"data"`
		}
		if err := c.Get(ctx, configMaps, ns, "a", &now); err != nil {
			t.Fatal(err)
		}
		if got, _, _ := unstructured.NestedString(dry.Object, "data", "k"); got != "dry" || now.Data["k"] != "2" {
			t.Errorf("dry run answered %q and left %q, want dry and 2", got, now.Data["k"])
		}
	})

	if err := c.Delete(ctx, configMaps, ns, "a", DeleteOptions{UID: "another"}); !errors.Is(err, ErrConflict) {
		t.Errorf("deleting with another UID: %v, want a conflict", err)
	}
	if err := c.Delete(ctx, configMaps, ns, "a", DeleteOptions{UID: created.UID, Propagation: metav1.DeletePropagationBackground}); err != nil {
		t.Fatal(err)
	}
	err := c.Get(ctx, configMaps, ns, "a", nil)
	if !errors.Is(err, ErrNotFound) || errors.Is(err, ErrNoKind) || !apierrors.IsNotFound(err) {
		t.Errorf("reading what is deleted: %v, want not found", err)
	}
	want := fmt.Sprintf(`reading ConfigMap %s/a: 404 not found: configmaps "a" not found`, ns)
	if err.Error() != want {
		t.Errorf("message = %q, want %q", err, want)
	}
	if diff := cmp.Diff(Stats{"create": 1, "apply": 2, "patch": 1, "get": 2, "delete": 3}, c.Stats()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	c, ns := realClient(t)
	ctx := t.Context()
	configMaps, deployments := resource(t, c, "v1", "ConfigMap"), resource(t, c, "apps/v1", "Deployment")
	mine := configMap("a", map[string]string{"k": "1"}, nil)
	if err := c.Apply(ctx, configMaps, ns, "a", mine, ApplyOptions{Manager: "first"}, nil); err != nil {
		t.Fatal(err)
	}
	theirs := configMap("a", map[string]string{"k": "2"}, nil)
	before := c.Stats()
	for name, tc := range map[string]struct {
		err   error
		want  error
		words string
	}{
		"FieldOfAnotherManager": {
			c.Apply(ctx, configMaps, ns, "a", theirs, ApplyOptions{Manager: "second"}, nil), ErrConflict, `conflicts with "first"`,
		},
		"ExistsAlready": {
			c.Create(ctx, configMaps, ns, mine, nil), ErrConflict, "creating ConfigMap " + ns + "/a: 409 conflict: configmaps \"a\" already exists",
		},
		"InvalidField": {
			c.Apply(ctx, deployments, ns, "a", []byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{}}`),
				ApplyOptions{Manager: "m"}, nil), ErrInvalid, "applying Deployment.apps " + ns + "/a: 422 invalid: ",
		},
		"UnknownField": {
			c.Apply(ctx, configMaps, ns, "b", []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"},"datum":{}}`),
				ApplyOptions{Manager: "m"}, nil), ErrInvalid, ".datum: field not declared in schema",
		},
		"UnreadableValue": {
			c.Apply(ctx, configMaps, ns, "b", []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"},"binaryData":{"k":"!"}}`),
				ApplyOptions{Manager: "m"}, nil), ErrInvalid, "illegal base64",
		},
		"NamespaceMissing": {
			c.Create(ctx, configMaps, "nowhere", mine, nil), ErrNotFound, `namespaces "nowhere" not found`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if !errors.Is(tc.err, tc.want) || !strings.Contains(tc.err.Error(), tc.words) {
				t.Errorf("error = %v, want %v with %q", tc.err, tc.want, tc.words)
			}
			if errors.Is(tc.err, ErrNoKind) || IsTransient(tc.err) {
				t.Errorf("%v counts as unserved or transient", tc.err)
			}
		})
	}
	if got := c.Stats().Sub(before).Total(); got != 6 {
		t.Errorf("%d requests, want 6: a refusal is not retried", got)
	}
}

func TestCredentialsRefused(t *testing.T) {
	t.Parallel()
	srv := localtest.Server(t)
	ctx := t.Context()
	t.Run("Unauthorized", func(t *testing.T) {
		cfg := rest.AnonymousClientConfig(srv.Config())
		cfg.BearerToken = "not-a-token-of-this-server"
		c := newClient(t, cfg, Options{})
		err := c.Get(ctx, resource(t, c, "v1", "Namespace"), "", "default", nil)
		if !errors.Is(err, ErrUnauthorized) || strings.Contains(err.Error(), cfg.BearerToken) {
			t.Errorf("error = %v, want unauthorized", err)
		}
	})
	t.Run("Forbidden", func(t *testing.T) {
		cfg := srv.Config()
		cfg.Impersonate.UserName = "nobody"
		c := newClient(t, cfg, Options{})
		_, err := c.ListMeta(ctx, resource(t, c, "v1", "Node"), ListOptions{})
		if !errors.Is(err, ErrForbidden) || !apierrors.IsForbidden(err) {
			t.Errorf("error = %v, want forbidden", err)
		}
	})
}

func TestSecretsAreNotQuoted(t *testing.T) {
	t.Parallel()
	c, ns := realClient(t)
	secrets := resource(t, c, "v1", "Secret")
	for name, body := range map[string]string{
		"NotBase64":    `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"k":"hunter2!"}}`,
		"WrongType":    `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"stringData":{"k":{"hunter2":1}}}`,
		"BadKey":       `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"stringData":{"hunter2 !":"x"}}`,
		"BadDockerCfg": `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"type":"kubernetes.io/dockerconfigjson","stringData":{".dockerconfigjson":"hunter2"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := c.Apply(t.Context(), secrets, ns, "s", []byte(body), ApplyOptions{Manager: "m"}, nil)
			if err == nil {
				t.Fatal("the server took it")
			}
			for e := err; e != nil; e = errors.Unwrap(e) {
				if name != "BadKey" && strings.Contains(fmt.Sprintf("%v %+v %#v", e, e, e), "hunter2") {
					t.Errorf("the error quotes the secret: %v", e)
				}
			}
			if !strings.Contains(err.Error(), "Secret "+ns+"/s") || !errors.Is(err, ErrInvalid) {
				t.Errorf("error = %v, want invalid, with the Secret's name", err)
			}
		})
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	c, ns := realClient(t)
	ctx := t.Context()
	configMaps := resource(t, c, "v1", "ConfigMap")
	for i := range 7 {
		labels := map[string]string{"parity": []string{"even", "odd"}[i%2], "mine": "yes"}
		if err := c.Create(ctx, configMaps, ns, configMap(fmt.Sprintf("c%d", i), nil, labels), nil); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		o     ListOptions
		want  string
		pages int
	}{
		"OnePage":       {ListOptions{Namespace: ns, LabelSelector: "mine"}, "c0 c1 c2 c3 c4 c5 c6", 1},
		"Pages":         {ListOptions{Namespace: ns, LabelSelector: "mine", Limit: 3}, "c0 c1 c2 c3 c4 c5 c6", 3},
		"LabelSelector": {ListOptions{LabelSelector: "parity=odd", Namespace: ns, Limit: 2}, "c1 c3 c5", 2},
		"FieldSelector": {ListOptions{Namespace: ns, FieldSelector: "metadata.name=c4"}, "c4", 1},
		"Nothing":       {ListOptions{Namespace: ns, LabelSelector: "mine=no"}, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.Stats()
			items, err := c.ListMeta(ctx, configMaps, tc.o)
			if err != nil {
				t.Fatal(err)
			}
			if got := names(items); got != tc.want {
				t.Errorf("names = %q, want %q", got, tc.want)
			}
			if diff := cmp.Diff(Stats{"list": tc.pages}, c.Stats().Sub(before)); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("BeyondMaxItems", func(t *testing.T) {
		_, err := c.ListMeta(ctx, configMaps, ListOptions{Namespace: ns, Limit: 2, MaxItems: 3})
		if !errors.Is(err, ErrTooLarge) {
			t.Errorf("error = %v, want too large", err)
		}
	})
	t.Run("WholeObjects", func(t *testing.T) {
		items, err := c.List(ctx, configMaps, ListOptions{Namespace: ns, LabelSelector: "mine", Limit: 4})
		if err != nil {
			t.Fatal(err)
		}
		if len(items) != 7 || items[0].GetKind() != "ConfigMap" || items[0].GetAPIVersion() != "v1" {
			t.Errorf("%d items, the first %v", len(items), items[0].Object)
		}
	})
}

func TestServerVersion(t *testing.T) {
	t.Parallel()
	c, _ := realClient(t)
	v, err := c.ServerVersion(t.Context())
	if err != nil || v.Major != "1" {
		t.Fatalf("version = %v, %v", v, err)
	}
}
