package apply

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/bundle"
)

func parse(t *testing.T, raw string) map[string]any {
	t.Helper()
	obj, err := decode([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return obj
}

func parseTree(t *testing.T, raw string) fields {
	t.Helper()
	tree, err := parseFields(metav1.NewFieldsV1(raw))
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestUncovered(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, object, owned string
		want                []string
	}{
		{
			name:   "EverythingOwned",
			object: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"y","labels":{"a":"b"}},"data":{"k":"v"}}`,
			owned:  `{"f:metadata":{"f:labels":{"f:a":{}}},"f:data":{"f:k":{}}}`,
		},
		{
			name:   "OneFieldLost",
			object: `{"data":{"k":"v","l":"w"}}`,
			owned:  `{"f:data":{"f:k":{}}}`,
			want:   []string{".data.l"},
		},
		{
			name:   "AllFieldsLost",
			object: `{"data":{"k":"v"}}`,
			owned:  `{}`,
			want:   []string{".data.k"},
		},
		{
			name:   "AtomicMapIsOwnedAsAWhole",
			object: `{"spec":{"selector":{"app":"x"}}}`,
			owned:  `{"f:spec":{"f:selector":{}}}`,
		},
		{
			name:   "AtomicListIsOwnedAsAWhole",
			object: `{"spec":{"args":["a","b"]}}`,
			owned:  `{"f:spec":{"f:args":{}}}`,
		},
		{
			name:   "ItemByKey",
			object: `{"spec":{"containers":[{"name":"app","image":"i"},{"name":"side","image":"j"}]}}`,
			owned:  `{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{".":{},"f:name":{},"f:image":{}},"k:{\"name\":\"side\"}":{".":{},"f:name":{}}}}}`,
			want:   []string{".spec.containers[name=side].image"},
		},
		{
			name:   "DefaultedKeyGoesToTheItemThatLacksIt",
			object: `{"ports":[{"port":53,"protocol":"UDP","name":"dns"},{"port":53,"name":"dns-tcp"}]}`,
			owned: `{"f:ports":{"k:{\"port\":53,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{}},
				"k:{\"port\":53,\"protocol\":\"UDP\"}":{".":{},"f:name":{},"f:port":{},"f:protocol":{}}}}`,
		},
		{
			name:   "ItemRemoved",
			object: `{"ports":[{"port":80}]}`,
			owned:  `{"f:ports":{"k:{\"port\":81,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}`,
			want:   []string{".ports[port=80].port"},
		},
		{
			name:   "SetItem",
			object: `{"metadata":{"finalizers":["a","b"]}}`,
			owned:  `{"f:metadata":{"f:finalizers":{"v:\"a\"":{}}}}`,
			want:   []string{".metadata.finalizers[1]"},
		},
		{
			name:   "NullOwnsNothing",
			object: `{"spec":{"a":null,"b":{"c":null},"d":1}}`,
			owned:  `{"f:spec":{"f:d":{}}}`,
		},
		{
			name:   "EmptyValuesMustBeOwned",
			object: `{"spec":{"emptyDir":{},"args":[]}}`,
			owned:  `{"f:spec":{"f:args":{}}}`,
			want:   []string{".spec.emptyDir"},
		},
		{
			name:   "KeyWithDots",
			object: `{"metadata":{"annotations":{"a.b/c":"d"}}}`,
			owned:  `{"f:metadata":{"f:annotations":{}}}`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, path := range uncovered(parse(t, test.object), parseTree(t, test.owned)) {
				got = append(got, path.String())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("uncovered paths (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOwnsFindsWhoTookAField(t *testing.T) {
	t.Parallel()
	obj := parse(t, `{"spec":{"containers":[{"name":"app","image":"i"}]}}`)
	missing := uncovered(obj, parseTree(t, `{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{".":{},"f:name":{}}}}}`))
	if len(missing) != 1 {
		t.Fatalf("missing = %v, want the image alone", missing)
	}
	taker := parseTree(t, `{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{"f:image":{}}}}}`)
	if !taker.owns(missing[0]) {
		t.Errorf("%s is not found in what the other manager owns", missing[0])
	}
	if bystander := parseTree(t, `{"f:spec":{"f:replicas":{}}}`); bystander.owns(missing[0]) {
		t.Errorf("%s is found in what a bystander owns", missing[0])
	}
}

func TestPointer(t *testing.T) {
	t.Parallel()
	obj := parse(t, `{"a":[{"b/c":{"d~e":1}}]}`)
	if got, want := leaves(obj)[0].pointer(), "/a/*/b~1c/d~0e"; got != want {
		t.Errorf("pointer = %s, want %s", got, want)
	}
}

func TestYields(t *testing.T) {
	t.Parallel()
	y := yieldRules{rules: []v1beta2.YieldRule{{Group: "apps", Kind: "Deployment", Paths: []string{"/spec/template/spec/containers/*/image", "/spec/replicas"}}}}
	deployment := bundle.Ref{Group: "apps", Kind: "Deployment", Name: "x"}
	obj := parse(t, `{"spec":{"replicas":1,"paused":true,"template":{"spec":{"containers":[{"name":"a","image":"i"}]}}}}`)
	got := map[string]bool{}
	for _, path := range leaves(obj) {
		got[path.String()] = y.yields(deployment, path)
	}
	want := map[string]bool{
		".spec.replicas": true, ".spec.paused": false,
		".spec.template.spec.containers[name=a].image": true, ".spec.template.spec.containers[name=a].name": false,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("yielded (-want +got):\n%s", diff)
	}
	if y.yields(bundle.Ref{Group: "apps", Kind: "StatefulSet", Name: "x"}, leaves(obj)[1]) {
		t.Error("a rule for Deployments yields a field of a StatefulSet")
	}
}

func TestWithoutDropsYieldedFieldsOnly(t *testing.T) {
	t.Parallel()
	raw := []byte(`{"spec":{"a":1,"list":[{"name":"x","v":1},{"name":"y","v":2}]}}`)
	var drop []fieldPath
	for _, path := range leaves(parse(t, string(raw))) {
		if path.String() == ".spec.list[name=y].v" {
			drop = append(drop, path)
		}
	}
	got, err := without(&bundle.Object{Bytes: raw}, drop)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"spec":{"a":1,"list":[{"name":"x","v":1},{"name":"y"}]}}`; string(got) != want {
		t.Errorf("without = %s, want %s", got, want)
	}
}

func TestContests(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c := newContests(func() time.Time { return now })
	lose := func() { c.record("field"); now = now.Add(time.Minute) }
	lose()
	lose()
	if c.contested("field") {
		t.Fatal("two losses are called a fight")
	}
	lose()
	if !c.contested("field") {
		t.Fatal("three losses within an hour are not called a fight")
	}
	now = now.Add(contestPause)
	if c.contested("field") {
		t.Fatal("the field is still left alone after the pause")
	}
	lose()
	now = now.Add(contestPause + time.Minute)
	if !c.contested("field") {
		t.Error("the second pause is not longer than the first")
	}
	now = now.Add(3 * time.Hour)
	lose()
	if c.contested("field") {
		t.Error("losses long ago are counted")
	}
}

func TestContestsAreBounded(t *testing.T) {
	t.Parallel()
	c := newContests(time.Now)
	for i := range 2 * maxContests {
		c.record(string(rune(i)))
	}
	if len(c.lost) > maxContests {
		t.Errorf("%d fields are remembered, want at most %d", len(c.lost), maxContests)
	}
}

func TestMaskHidesSecretValues(t *testing.T) {
	t.Parallel()
	secret := &Step{Object: &bundle.Object{}, Ref: bundle.Ref{Kind: "Secret", Name: "s"}, live: &metav1.PartialObjectMetadata{}}
	live := parse(t, `{"data":{"password":"czNjcmV0"},"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"s3cret","note":"a"}}}`)
	next := parse(t, `{"data":{"password":"bmV3","extra":"bmV3"},"stringData":{"x":"new"},"metadata":{"annotations":{"note":"b"}}}`)
	out, err := json.Marshal(compareObjects(secret, live, next))
	if err != nil {
		t.Fatal(err)
	}
	for _, leak := range []string{"czNjcmV0", "bmV3", "s3cret", `"new"`} {
		if strings.Contains(string(out), leak) {
			t.Errorf("the diff of a Secret shows %s: %s", leak, out)
		}
	}
	if !strings.Contains(string(out), ".data.password") || !strings.Contains(string(out), ".data.extra") {
		t.Errorf("the diff of a Secret does not name the fields: %s", out)
	}
}

// FuzzUncovered checks that no fieldsV1 tree, which anybody who may write an object can shape, makes the comparison panic or
// run away.
func FuzzUncovered(f *testing.F) {
	f.Add(`{"spec":{"a":[{"name":"x"}]}}`, `{"f:spec":{"f:a":{"k:{\"name\":\"x\"}":{".":{}}}}}`)
	f.Add(`{"a":["b",1,null]}`, `{"f:a":{"v:\"b\"":{},"i:1":{},"k:[]":{}}}`)
	f.Add(`{"metadata":{"labels":null}}`, `{"f:metadata":{"f:labels":null}}`)
	f.Fuzz(func(t *testing.T, object, owned string) {
		obj, err := decode([]byte(object))
		if err != nil {
			return
		}
		tree, err := parseFields(metav1.NewFieldsV1(owned))
		if err != nil {
			return
		}
		missing := uncovered(obj, tree)
		for _, path := range missing {
			_ = path.String()
			_ = path.pointer()
			tree.owns(path)
			drop(obj, path)
		}
	})
}
