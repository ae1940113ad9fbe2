package module

import (
	"errors"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kyma-project/mothership/internal/apply"
	"github.com/kyma-project/mothership/internal/cluster"
	"github.com/kyma-project/mothership/internal/infra/local/localtest"
	"github.com/kyma-project/mothership/internal/remote"
	"github.com/kyma-project/mothership/reconciler"
)

// grant makes service account team, which may do what is given with ConfigMaps of the site's namespace.
func (s *site) grant(verbs ...string) {
	s.t.Helper()
	c := localtest.Client(s.t, localtest.Server(s.t))
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "team"}}
	if _, err := c.CoreV1().ServiceAccounts(s.namespace).Create(s.t.Context(), account, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "team"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: verbs}},
	}
	if _, err := c.RbacV1().Roles(s.namespace).Create(s.t.Context(), role, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "team"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "team"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: s.namespace, Name: "team"}},
	}
	if _, err := c.RbacV1().RoleBindings(s.namespace).Create(s.t.Context(), binding, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// byTeam is a component that is applied as service account team.
func (s *site) byTeam(name string, yaml ...string) reconciler.Component {
	s.t.Helper()
	c := s.component(name, yaml...)
	c.Template.ServiceAccountName = "team"
	return c
}

// TestServiceAccount has a module do all that its account may: create, repair, prune, and be removed, over one connection.
func TestServiceAccount(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.grant("get", "create", "patch", "delete")
	c := s.byTeam("web", config("a", "1"), config("b", "1"))
	s.until(c) // a Role takes effect a moment after it was made
	s.patch(configMaps, "a", `{"data":{"v":"2"}}`)
	s.install(c)
	c = s.byTeam("web", config("a", "1"))
	s.install(c)
	if got := s.configs(c); got != "a" {
		t.Errorf("after pruning there are %q", got)
	}
	c.Deleting = true
	s.until(c)
	if got := s.configs(c); got != "" {
		t.Errorf("after the removal there are %q", got)
	}
}

// TestServiceAccountMayNot has a module reach for more than its account may: nothing of that happens, and the error names who may not
// do what.
func TestServiceAccountMayNot(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.grant("create", "patch")
	c := s.byTeam("web", config("a", "1"), config("b", "1"))
	s.until(c)
	tests := map[string]struct {
		component reconciler.Component
		says      []string
		hint      string
	}{
		"OtherKind": {
			s.byTeam("grab", "apiVersion: v1\nkind: Secret\nmetadata: {name: loot}\n"),
			[]string{"Secret " + s.namespace + "/loot: ServiceAccount " + s.namespace + "/team may not patch secrets in namespace " + s.namespace + ": ", "403 forbidden"},
			"bind a Role in namespace " + s.namespace + " to ServiceAccount " + s.namespace + "/team",
		},
		"OtherNamespace": {
			s.byTeam("reach", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "+s.namespace+", namespace: default}\n"),
			[]string{"system:serviceaccount:" + s.namespace + ":team", `cannot patch resource "configmaps"`, `in the namespace "default"`},
			"bind a Role in namespace default",
		},
		"ItsOwnRights": {
			s.byTeam("rise", "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: "+s.namespace+"}\nrules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]\n"),
			[]string{"may not patch clusterroles.rbac.authorization.k8s.io: "},
			"bind a ClusterRole to ServiceAccount",
		},
		"AnotherInventory": {
			s.byTeam("forge", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "+s.namespace+".other, namespace: mothership-system}\n"),
			[]string{`cannot patch resource "configmaps"`, `in the namespace "mothership-system"`},
			"bind a Role in namespace mothership-system",
		},
		"Prune": {
			s.byTeam("web", config("a", "1")),
			[]string{"ConfigMap " + s.namespace + "/b: ", `cannot delete resource "configmaps"`}, "bind a Role",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := s.run(tc.component)
			if r.Outcome != reconciler.OutcomeRetry || !errors.Is(r.Err, cluster.ErrForbidden) || errors.As(r.Err, new(*RuntimeError)) {
				t.Fatalf("%s: %v", r.Outcome, r.Err)
			}
			for _, word := range tc.says {
				if !strings.Contains(r.Err.Error(), word) {
					t.Errorf("%q is not in: %v", word, r.Err)
				}
			}
			at := (*apply.ObjectError)(nil)
			if !errors.As(r.Err, &at) || !strings.HasPrefix(at.Hint, tc.hint) {
				t.Errorf("hint of %v: want %s", at, tc.hint)
			}
		})
	}
	if got := s.configs(c); got != "a b" {
		t.Errorf("there are %q, want a b", got)
	}
}

// TestServiceAccountInTurn: what a wave sends is the account's, too, and what it may not do is said of it.
func TestServiceAccountInTurn(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.grant("get") // neither create nor patch
	account := s.rt.account(s.namespace, "team")
	objects := make([]cluster.Application, 3)
	for i := range objects {
		name := string(rune('a' + i))
		objects[i] = cluster.Application{
			Resource: configMaps, Namespace: s.namespace, Name: name, Body: []byte(config(name, "1")), Options: cluster.ApplyOptions{Manager: "m"},
		}
	}
	for way, in := range ways {
		told := 0
		account.ApplyEach(in(t.Context()), objects, func(i int, _ *metav1.PartialObjectMetadata, err error) bool {
			var may *AccountError
			if !errors.As(err, &may) || may.Name != "team" || !strings.Contains(err.Error(), "patch configmaps in namespace "+s.namespace) {
				t.Errorf("%s: object %d: %v", way, i, err)
			}
			told++
			return true
		})
		if told != len(objects) {
			t.Errorf("%s: %d objects were told of", way, told)
		}
	}
}

// TestServiceAccountDoesNotExist says so, and what to do.
func TestServiceAccountDoesNotExist(t *testing.T) {
	t.Parallel()
	s := setup(t)
	r := s.run(s.byTeam("web", config("a", "1"), config("b", "1")))
	who := (*AccountError)(nil)
	if r.Outcome != reconciler.OutcomeRetry || !errors.As(r.Err, &who) || !who.Missing || who.Impersonation {
		t.Fatalf("%s: %v", r.Outcome, r.Err)
	}
	for _, want := range []string{"team, which does not exist, may not patch configmaps in namespace " + s.namespace + ": "} {
		if !strings.Contains(r.Err.Error(), want) {
			t.Errorf("%q is not in: %v", want, r.Err)
		}
	}
	if want := "create ServiceAccount team in namespace " + s.namespace; !strings.HasPrefix(who.Hint(), want) {
		t.Errorf("hint %q does not begin with %q", who.Hint(), want)
	}
}

// TestMayNotImpersonate works with an identity that may not act as others.
func TestMayNotImpersonate(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.grant("*")
	srv := localtest.Server(t)
	token, err := localtest.Client(t, srv).CoreV1().ServiceAccounts(s.namespace).CreateToken(t.Context(), "team", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := rest.AnonymousClientConfig(srv.Config())
	cfg.BearerToken = token.Status.Token
	weak, err := remote.New(cfg, remote.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(weak.Close)
	err = NewRuntime("weak", weak).account(s.namespace, "boss").Delete(t.Context(), configMaps, s.namespace, "a", cluster.DeleteOptions{})
	who := (*AccountError)(nil)
	if !errors.As(err, &who) || !who.Impersonation || !strings.Contains(err.Error(), "cannot impersonate") {
		t.Fatalf("error: %v", err)
	}
	if want := "let the identity in the kubeconfig impersonate the serviceaccounts of namespace " + s.namespace; who.Hint() != want {
		t.Errorf("hint %q, want %q", who.Hint(), want)
	}
}

func TestServiceAccountNameIsChecked(t *testing.T) {
	t.Parallel()
	c := reconciler.Component{Name: "web", Namespace: "demo"}
	c.Template.ServiceAccountName = "team:admin"
	if err := validateIdentity(c); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), `serviceAccountName "team:admin"`) {
		t.Errorf("error: %v", err)
	}
}
