package apitest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/infra/local/localtest"
)

// table is what kubectl get asks for.
const table = "application/json;as=Table;v=v1;g=meta.k8s.io"

func TestColumns(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.catalogue(t)
	kyma := b.mustCreate(t, object(t, "Kyma", "eu-1", `{channel: fast}`))
	cluster := b.mustCreate(t, object(t, "Runtime", "eu-1", `{provider: local, driftDetection: Watch}`))
	const ready = `{"type":"Ready","status":"False","reason":"X","message":"web: no such version","lastTransitionTime":"2026-01-01T00:00:00Z"}`
	if _, err := b.patch(t, kyma, `{"status":{"state":"Warning","modulesReady":"5/6","conditions":[`+ready+`]}}`, "status"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.patch(t, cluster, `{"status":{"state":"Ready","facts":[{"key":"kubernetes.version","value":"v1.36.3","writer":"w","observedAt":"2026-01-01T00:00:00Z"}]}}`, "status"); err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string][]string{
		"Kyma":              {"Name=eu-1", "Channel=fast", "State=Warning", "Ready=5/6", "Message=web: no such version (wide)"},
		"ModuleTemplate":    {"Name=web-1.0.0", "Module=web", "Version=1.0.0", "Namespace=kyma-system (wide)", `Needs=["module.istio"] (wide)`},
		"ModuleReleaseMeta": {"Name=web", "Regular=1.0.0", "Fast=1.1.0", "Mandatory=<nil>", `Channels=[{"channel":"regular","version":"1.0.0"},{"channel":"fast","version":"1.1.0"}] (wide)`},
		"Runtime":           {"Name=eu-1", "Provider=local", "State=Ready", "Version=v1.36.3", "Drift=Watch (wide)", "Message=<nil> (wide)"},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(append(want, "Age"), b.row(t, kind)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// catalogue creates one module with two channels and the template of one of its versions.
func (b bed) catalogue(t *testing.T) {
	t.Helper()
	b.mustCreate(t, object(t, "ModuleTemplate", "web-1.0.0", `{moduleName: web, version: 1.0.0, source: {chart: {path: web}}, needs: [module.istio]}`))
	b.mustCreate(t, object(t, "ModuleReleaseMeta", "web", `{moduleName: web, channels: [{channel: regular, version: 1.0.0}, {channel: fast, version: 1.1.0}]}`))
}

// row is the only object of a kind as a table shows it: column=cell, without the age's cell.
func (b bed) row(t *testing.T, kind string) []string {
	t.Helper()
	body, err := get(t.Context(), b.srv.Config(), fmt.Sprintf("/apis/%s/namespaces/%s/%s", v1beta2.GroupVersion, b.namespace, plurals[kind]), table)
	if err != nil {
		t.Fatal(err)
	}
	var shown metav1.Table
	if err := json.Unmarshal(body, &shown); err != nil {
		t.Fatal(err)
	}
	if len(shown.Rows) != 1 {
		t.Fatalf("%d rows, want one", len(shown.Rows))
	}
	var row []string
	for i, column := range shown.ColumnDefinitions {
		switch cell := fmt.Sprintf("%s=%v", column.Name, shown.Rows[0].Cells[i]); {
		case column.Name == "Age":
			row = append(row, "Age")
		case column.Priority > 0:
			row = append(row, cell+" (wide)")
		default:
			row = append(row, cell)
		}
	}
	return row
}

func TestShortNamesAndCategory(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.catalogue(t)
	b.mustCreate(t, object(t, "Kyma", "eu-1", `{channel: fast}`))
	b.mustCreate(t, object(t, "Runtime", "eu-1", `{provider: local}`))
	want := []string{
		"kyma.operator.kyma-project.io/eu-1", "modulereleasemeta.operator.kyma-project.io/web",
		"moduletemplate.operator.kyma-project.io/web-1.0.0", "runtime.operator.kyma-project.io/eu-1",
	}
	for _, names := range []string{"ky,mrm,mt,skr", "mothership"} {
		got := strings.Fields(localtest.Kubectl(t, b.srv, "get", names, "-n", b.namespace, "-o", "name"))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("kubectl get %s (-want +got):\n%s", names, diff)
		}
	}
}
