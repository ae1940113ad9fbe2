package render

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const schemaChart = chartYAML + `-- templates/a.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
-- values.schema.json --
{
  "$schema": "https://json-schema.org/draft-07/schema#",
  "type": "object",
  "required": ["host"],
  "properties": {
    "image": {"type": "object", "properties": {"tag": {"type": "string"}, "pull/policy": {"enum": ["Always", "Never"]}}, "additionalProperties": false},
    "password": {"type": "string", "minLength": 10, "pattern": "^[a-z]+$"},
    "mode": {"const": "fast"},
    "replicas": {"type": "integer", "minimum": 1, "maximum": 5, "exclusiveMaximum": 5},
    "items": {"type": "array", "minItems": 2, "maxItems": 0, "uniqueItems": true},
    "id": {"maxLength": 2}, "never": false, "mail": {"format": "email"}
  }
}
-- charts/sub/Chart.yaml --
apiVersion: v2
name: sub
version: 1.0.0
-- charts/sub/values.schema.json --
{"properties": {"port": {"type": "integer"}}}
`

func TestSchemaViolations(t *testing.T) {
	t.Parallel()
	r := request(Chart, strings.ReplaceAll(schemaChart, "https://json-schema.org/draft-07/schema#", "http://json-schema.org/draft-07/schema#"))
	r.Values = map[string]any{
		"image": map[string]any{"tag": 1.5, "pull/policy": "hunter2", "extra": "hunter2"}, "password": "hunter2", "mode": "hunter2",
		"replicas": int64(9), "items": []any{"hunter2"}, "id": "hunter2", "never": "hunter2", "sub": map[string]any{"port": "hunter2"},
	}
	_, err := New(Options{}).Render(context.Background(), r)
	wantError(t, err, ErrValues, `module "demo": the values do not fit the chart's schema:`)
	var values *ValuesError
	if !errors.As(err, &values) {
		t.Fatal(err)
	}
	want := []Violation{
		{"/", "missing: host"},
		{"/id", "must have at most 2 characters"},
		{"/image", "not known to the chart: extra"},
		{"/image/pull~1policy", "must be one of [Always Never]"},
		{"/image/tag", "expected string, got number"},
		{"/items", "must have at least 2 items"},
		{"/items", "must have at most 0 items"},
		{"/mode", "must be fast"},
		{"/never", "not accepted by the chart"},
		{"/password", "must have at least 10 characters"},
		{"/password", "must match the pattern ^[a-z]+$"},
		{"/replicas", "must be at most 5"},
		{"/replicas", "must be below 5"},
		{"/sub/port", "expected integer, got string"},
	}
	if diff := cmp.Diff(want, values.Violations); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error shows a value: %v", err)
	}
	_, isolatedErr := isolated(t, IsolatedOptions{}).Render(context.Background(), r)
	if diff := cmp.Diff(err.Error(), isolatedErr.Error()); diff != "" {
		t.Error(diff)
	}
}

func TestSchemaFetchesNothing(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		t.Error("the schema was fetched")
	}))
	t.Cleanup(server.Close)
	for name, tc := range map[string]struct {
		schema string
		kind   error
	}{
		"HTTP":   {`{"$ref": "` + server.URL + `/schema.json"}`, ErrRemote},
		"File":   {`{"$ref": "file:///etc/hostname"}`, ErrRemote},
		"Schema": {`{"$schema": "` + server.URL + `/schema.json"}`, ErrRemote},
		"Broken": {`{"type": `, ErrMalformed},
		"Wrong":  {`{"type": "strnig"}`, ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := New(Options{}).Render(context.Background(), request(Chart,
				chartYAML+"-- templates/a.yaml --\n"+configMap("a")+"-- values.schema.json --\n"+tc.schema+"\n"))
			wantError(t, err, tc.kind, "demo/values.schema.json: the schema ")
		})
	}
	mustRender(t, request(Chart, chartYAML+"-- templates/a.yaml --\n"+configMap("a")+
		"-- values.schema.json --\n{\"properties\": {\"a\": {\"$ref\": \"urn:example:thing\"}}}\n"))
}
