package kind

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/kyma-project/mothership/internal/infra/local"
	"github.com/kyma-project/mothership/internal/infra/local/localtest"
)

var update = flag.Bool("update", false, "write table.go from the server's discovery")

// persisted are the verbs of what can be kept in a cluster: a kind without them is a question (SubjectAccessReview) or
// a sub-resource (Binding).
var persisted = []string{"create", "patch", "list"}

func TestTableIsTheServersDiscovery(t *testing.T) {
	t.Parallel()
	srv := localtest.Start(t, func(o *local.Options) {
		o.Controllers, o.APIServerArgs = nil, []string{"--runtime-config=api/all=true", "--feature-gates=AllAlpha=true,AllBeta=true"}
	})
	client, err := discovery.NewDiscoveryClientForConfig(srv.Config())
	if err != nil {
		t.Fatal(err)
	}
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	served := kinds(t, lists)
	if *update {
		if err := os.WriteFile("table.go", source(t, served), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(table, served); diff != "" {
		t.Errorf("the table is not what the server serves (run go generate ./internal/kind) (-table +server):\n%s", diff)
	}
	have, err := os.ReadFile("table.go")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(have), string(source(t, served))); diff != "" {
		t.Errorf("table.go is not as generated (-file +generated):\n%s", diff)
	}
}

// kinds are the persisted kinds of all groups and versions.
func kinds(t *testing.T, lists []*metav1.APIResourceList) map[schema.GroupVersionKind]Info {
	t.Helper()
	out := map[schema.GroupVersionKind]Info{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") || !hasAll(r.Verbs, persisted) {
				continue
			}
			out[gv.WithKind(r.Kind)] = Info{Resource: r.Name, Namespaced: r.Namespaced}
		}
	}
	return out
}

func hasAll(have, want []string) bool {
	return !slices.ContainsFunc(want, func(w string) bool { return !slices.Contains(have, w) })
}

// source is the text of table.go, sorted by group, version and kind.
func source(t *testing.T, kinds map[schema.GroupVersionKind]Info) []byte {
	t.Helper()
	var lines []string
	for gvk, info := range kinds {
		lines = append(lines, fmt.Sprintf("\t{Group: %q, Version: %q, Kind: %q}: {Resource: %q, Namespaced: %t},\n",
			gvk.Group, gvk.Version, gvk.Kind, info.Resource, info.Namespaced))
	}
	slices.Sort(lines)
	var b bytes.Buffer
	b.WriteString(`// Code generated from the discovery of kube-apiserver by go generate; DO NOT EDIT.

package kind

import "k8s.io/apimachinery/pkg/runtime/schema"

// table has all persisted kinds that are built in, of every version.
var table = map[schema.GroupVersionKind]Info{
`)
	b.WriteString(strings.Join(lines, ""))
	b.WriteString("}\n")
	formatted, err := format.Source(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return formatted
}
