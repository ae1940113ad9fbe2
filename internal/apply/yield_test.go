package apply

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/bundle"
)

func TestUnder(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		pointer, pattern string
		want             bool
	}{
		{"/spec/replicas", "/spec/replicas", true},
		{"/spec/replicas", "/spec", true},
		{"/spec", "/spec/replicas", false},
		{"/spec/replicasets", "/spec/replicas", false},
		{"/webhooks/*/clientConfig/caBundle", "/webhooks/*/clientConfig/caBundle", true},
		{"/webhooks/*/clientConfig/caBundle", "/webhooks/0/clientConfig/caBundle", true},
		{"/data/a~1b", "/data/a~1b", true},
		{"/data/a", "/data/*", true},
		{"/data/a", "/data/", true},
	} {
		if got := under(test.pointer, test.pattern); got != test.want {
			t.Errorf("%s under %s: %v", test.pointer, test.pattern, got)
		}
	}
}

func TestYieldRulesNameTheirObjects(t *testing.T) {
	t.Parallel()
	rules := yieldRules{rules: []v1beta2.YieldRule{
		{Group: "apps", Kind: "Deployment", Name: "web", Paths: []string{"/spec/replicas"}},
		{Paths: []string{"/metadata/labels/team"}},
	}}
	path := func(tokens ...string) (p fieldPath) {
		for _, token := range tokens {
			p = append(p, step{token: token})
		}
		return p
	}
	web, replicas := bundle.Ref{Group: "apps", Kind: "Deployment", Name: "web"}, path("spec", "replicas")
	other := web
	other.Name = "other"
	set := bundle.Ref{Group: "apps", Kind: "StatefulSet", Name: "web"}
	got := []bool{
		rules.yields(web, replicas), rules.yields(other, replicas), rules.yields(set, replicas),
		rules.yields(set, path("metadata", "labels", "team")),
	}
	if diff := cmp.Diff([]bool{true, false, false, true}, got); diff != "" {
		t.Errorf("yields (-want +got):\n%s", diff)
	}
}

func TestLastWrittenOfADefinitionOnItsWayOut(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	deleted := func(ago time.Duration) *metav1.Time { at := metav1.NewTime(now.Add(-ago)); return &at }
	poked := func(ago time.Duration) map[string]string {
		return map[string]string{pokedAnnotation: now.Add(-ago).Format(time.RFC3339)}
	}
	for name, test := range map[string]struct {
		deletion    *metav1.Time
		annotations map[string]string
		want        time.Duration
	}{
		"NotDeleted":            {nil, nil, 0},
		"Deleted":               {deleted(time.Minute), nil, time.Minute},
		"DeletedByAFasterClock": {deleted(-time.Minute), nil, 0},
		"Poked":                 {deleted(time.Minute), poked(3 * time.Second), 3 * time.Second},
		"PokedLongAgo":          {deleted(time.Minute), poked(time.Hour), time.Minute},
		"PokedWithNonsense":     {deleted(time.Minute), map[string]string{pokedAnnotation: "yesterday"}, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := &Extra{}
			e.live.DeletionTimestamp, e.live.Annotations = test.deletion, test.annotations
			if got := now.Sub(lastWritten(e, now)); got != test.want {
				t.Errorf("%s ago, want %s", got, test.want)
			}
		})
	}
}
