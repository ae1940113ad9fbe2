package remote

import (
	"slices"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/kyma-project/mothership/internal/infra/local/localtest"
)

// whoIs asks a real server who it takes a client for.
func whoIs(t *testing.T, c *Client) authenticationv1.UserInfo {
	t.Helper()
	reviews := Resource{
		GroupVersionResource: schema.GroupVersionResource{Group: "authentication.k8s.io", Version: "v1", Resource: "selfsubjectreviews"},
		Kind:                 "SelfSubjectReview",
	}
	var answer authenticationv1.SelfSubjectReview
	body := []byte(`{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview","metadata":{"name":"me"}}`)
	if err := c.Create(t.Context(), reviews, "", body, &answer); err != nil {
		t.Fatal(err)
	}
	return answer.Status.UserInfo
}

// TestAs has one connection speak as several users, and nothing of one be left in the requests of another.
func TestAs(t *testing.T) {
	t.Parallel()
	const account = "system:serviceaccount:demo:team"
	cfg := localtest.Server(t).Config()
	own := newClient(t, cfg, Options{})
	as := own.As(account)
	if before, who := whoIs(t, own), whoIs(t, as); who.Username != account || before.Username == account {
		t.Errorf("it is %s, and was %s", who.Username, before.Username)
	}
	if who := whoIs(t, own); who.Username == account {
		t.Errorf("afterwards the client itself is %s", who.Username)
	}
	if n := own.Stats()[VerbCreate]; n != 3 || as.Stats()[VerbCreate] != n {
		t.Errorf("%d requests were counted, and %d of the other: they share everything", n, as.Stats()[VerbCreate])
	}
	cfg = rest.CopyConfig(cfg)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: "boss", Groups: []string{"system:masters"}}
	boss := newClient(t, cfg, Options{})
	if who := whoIs(t, boss); who.Username != "boss" {
		t.Errorf("the kubeconfig's own user is %s", who.Username)
	}
	who := whoIs(t, boss.As(account))
	if who.Username != account || slices.Contains(who.Groups, "system:masters") || !slices.Contains(who.Groups, "system:serviceaccounts:demo") {
		t.Errorf("beside the kubeconfig's own impersonation it is %+v", who)
	}
}
