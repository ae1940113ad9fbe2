package render

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kyma-project/mothership/internal/source"
)

// The bounds within which hostile input gets its error, that of the time with room for a machine that does much else.
const (
	hostileTimeout = 3 * time.Second
	hostileMemory  = 256 << 20
	hostileSlack   = 30 * time.Second
)

// lines repeats a line with a number in it.
func lines(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// nested nests templates that expand each other: every level doubles what is below it.
func nested(levels int) string {
	var b strings.Builder
	b.WriteString(`{{ define "t0" }}x{{ end }}`)
	for i := 1; i <= levels; i++ {
		fmt.Fprintf(&b, `{{ define "t%d" }}{{ include "t%d" . }}{{ include "t%d" . }}{{ end }}`, i, i-1, i-1)
	}
	fmt.Fprintf(&b, "a: {{ include \"t%d\" . }}\n", levels)
	return b.String()
}

// hostile is input that must end in an error: never in a bundle, never in the end of the process that renders the fleet.
var hostile = map[string]struct {
	kind  Kind
	files string
	err   error // nil: any of those that say so
	want  string
}{
	// Templates that loop, recurse or allocate without end.
	"Loop":             {Chart, chartYAML + "-- templates/a.yaml --\n" + endless, ErrDeadline, "took more than 3s: does a template loop?"},
	"Allocation":       {Chart, chartYAML + "-- templates/a.yaml --\n" + greedy, ErrMemory, "took more than 256 MiB of memory"},
	"AllocationAtOnce": {Chart, chartYAML + "-- templates/a.yaml --\n" + huge, ErrMemory, "took more than 256 MiB of memory"},
	"Recursion":        {Chart, chartYAML + "-- templates/a.yaml --\n" + deep, nil, ""},
	"RecursiveInclude": {Chart, chartYAML + "-- templates/a.yaml --\n{{ define \"r\" }}{{ include \"r\" . }}{{ end }}a: {{ include \"r\" . }}\n", ErrTemplate, "a.yaml, line 1"},
	"RecursiveTpl":     {Chart, chartYAML + "-- templates/a.yaml --\na: {{ tpl (repeat 1000 \"{{ tpl .Values.t . }}\") . }}\n-- values.yaml --\nt: '{{ tpl .Values.t . }}'\n", nil, ""},
	"ExpandingInclude": {Chart, chartYAML + "-- templates/a.yaml --\n" + nested(60), nil, ""},
	"Regex":            {Chart, chartYAML + "-- templates/a.yaml --\na: {{ mustRegexMatch (repeat 1000 \"(x{1000})\") \"x\" }}\n", nil, ""},
	"Repeat":           {Chart, chartYAML + "-- templates/a.yaml --\na: {{ repeat 2000000000 \"xxxxxxxx\" | len }}\n", nil, ""},
	"Dependencies":     {Chart, "-- Chart.yaml --\napiVersion: v2\nname: demo\nversion: 1.0.0\ndependencies: [{name: demo, version: 1.0.0}]\n", ErrMalformed, "missing in charts/: demo"},
	"TooManyObjects":   {Chart, chartYAML + "-- templates/a.yaml --\n{{ range until 10001 }}---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c-{{ . }}}\n{{ end }}", ErrMalformed, "more than 10000"},
	"TooLargeOutput":   {Chart, chartYAML + "-- templates/a.yaml --\na: {{ repeat 5000000 \"x\" }}\n", ErrMalformed, "more than 4194304 are not accepted"},
	"Schema":           {Chart, chartYAML + "-- values.schema.json --\n{\"$ref\": \"#/$defs/a\", \"$defs\": {\"a\": {\"$ref\": \"#/$defs/a\"}}}\n-- templates/a.yaml --\n" + configMap("a"), nil, ""},

	// YAML that expands, that nests, that is huge, that is none.
	"BillionLaughs":       {Manifests, "-- a.yaml --\n" + billionLaughs, ErrMalformed, "a.yaml, document 1: aliases expand to too much"},
	"BillionLaughsValues": {Chart, chartYAML + "-- values.yaml --\n" + billionLaughs + "-- templates/a.yaml --\n" + configMap("a"), ErrMalformed, "values.yaml, document 1: aliases expand to too much"},
	"BillionLaughsChart":  {Chart, "-- Chart.yaml --\n" + billionLaughs + "-- templates/a.yaml --\n" + configMap("a"), ErrMalformed, "Chart.yaml, document 1: aliases expand to too much"},
	"BillionLaughsKustom": {Kustomize, "-- kustomization.yaml --\n" + billionLaughs, ErrMalformed, "kustomization.yaml, document 1: aliases expand to too much"},
	"BillionLaughsInKust": {Kustomize, "-- kustomization.yaml --\nresources: [a.yaml]\n-- a.yaml --\n" + billionLaughs, nil, ""},
	"BillionLaughsInTpl":  {Chart, chartYAML + "-- templates/a.yaml --\na: {{ .Files.Get \"bomb\" | fromYaml | toYaml | len }}\n-- bomb --\n" + billionLaughs, nil, ""},
	"Deep":                {Manifests, "-- a.yaml --\n" + strings.Repeat("[", 20_000), ErrMalformed, "a.yaml, document 1"},
	"DeepBlocks":          {Manifests, "-- a.yaml --\n" + strings.Repeat("- ", 20_000), ErrMalformed, "a.yaml, document 1"},
	"ManyDocuments":       {Manifests, "-- a.yaml --\n" + lines(10_001, "---\na: %d\n"), ErrMalformed, "more than 10000 documents"},
	"ManyErrors":          {Manifests, "-- a.yaml --\n" + lines(10_000, "---\n- %d\n"), ErrMalformed, "and 9980 more problems"},
	"Tabs":                {Manifests, "-- a.yaml --\napiVersion: v1\nkind: ConfigMap\nmetadata:\n\tname: a\n", ErrMalformed, "a.yaml, document 1, line 4: a tab is used for indentation: use spaces"},
	"NotUTF8":             {Manifests, "-- a.yaml --\napiVersion: v1\nkind: \xff\n", ErrMalformed, "a.yaml, line 2: not UTF-8"},
	"NotUTF8Template":     {Chart, chartYAML + "-- templates/a.yaml --\na: {{ \"\\xff\" }}\n", ErrMalformed, "demo/templates/a.yaml, line 1 of the rendered text: not UTF-8"},
	"NotUTF8Values":       {Chart, chartYAML + "-- values.yaml --\na: \xff\n-- templates/a.yaml --\n" + configMap("a"), ErrMalformed, "values.yaml, line 1: not UTF-8"},
	"UTF16":               {Manifests, "-- a.yaml --\n\xff\xfea\x00:\x00 \x001\x00", ErrMalformed, "a.yaml, line 1: not UTF-8"},
	"ThirdDocument":       {Manifests, "-- a.yaml --\n" + configMap("a") + "---\n" + configMap("b") + "---\n" + configMap("c") + "  name: again\n", ErrMalformed, `a.yaml, document 3, line 15: key "name" is set twice`},
	"ThirdDocumentInHelm": {Chart, chartYAML + "-- templates/a.yaml --\n" + configMap("a") + "---\n" + configMap("b") + "---\n" + configMap("c") + "  name: again\n", ErrMalformed, `demo/templates/a.yaml, document 3, line 15 of the rendered text: key "name" is set twice`},
	"CutOff":              {Manifests, "-- a.yaml --\n" + configMap("a") + "data:\n  key: \"cut o", ErrMalformed, "a.yaml, document 1"},
	"ListOfNothing":       {Manifests, "-- a.yaml --\napiVersion: v1\nkind: List\nitems: []\n", ErrEmpty, "never a desired state"},
	"ListOfNonsense":      {Manifests, "-- a.yaml --\napiVersion: v1\nkind: List\nitems: [{}, x]\n", ErrMalformed, "item 2 of the List is not an object but a string"},
	"ListOfLists":         {Manifests, "-- a.yaml --\n" + strings.Repeat("{kind: List, items: [", 60) + strings.Repeat("]}", 60) + "\n", ErrMalformed, "nested too deeply"},
	"ListWithoutItems":    {Manifests, "-- a.yaml --\napiVersion: v1\nkind: ConfigMapList\n", ErrMalformed, "has no metadata"},
	"TwiceTheSame":        {Manifests, "-- a.yaml --\n" + configMap("a") + "-- b.yaml --\n" + configMap("a"), ErrMalformed, "is defined twice, also in a.yaml"},
	"Empty":               {Manifests, "-- a.yaml --\n", ErrEmpty, "never a desired state"},

	// What the runtime cannot have.
	"NewerKubernetes": {Chart, chartYAML + "kubeVersion: '>=1.99.0'\n-- templates/a.yaml --\n" + configMap("a"), ErrMalformed, "the chart needs Kubernetes >=1.99.0, but the runtime has v1.36.0"},

	// Kustomizations that go in rings and reach out.
	"KustomizeRing":    {Kustomize, "-- kustomization.yaml --\nresources: [a]\n-- a/kustomization.yaml --\nresources: [../b]\n-- b/kustomization.yaml --\nresources: [../a]\n", ErrMalformed, "cycle"},
	"KustomizeSelf":    {Kustomize, "-- kustomization.yaml --\nresources: [.]\n", ErrMalformed, "kustomize:"},
	"KustomizeOutside": {Kustomize, "-- kustomization.yaml --\nresources: [../../../etc/passwd]\n", ErrMalformed, "kustomize:"},
	"KustomizeExec":    {Kustomize, "-- kustomization.yaml --\ntransformers: [\"apiVersion: x/v1\\nkind: X\\nmetadata:\\n  name: x\\n  annotations:\\n    config.kubernetes.io/function: |\\n      exec: {path: /bin/true}\\n\"]\nresources: [a.yaml]\n-- a.yaml --\n" + configMap("a"), ErrMalformed, "kustomize:"},
}

// TestHostile gives each case to the child process that renders what nobody vouches for.
func TestHostile(t *testing.T) {
	t.Parallel()
	child := isolated(t, IsolatedOptions{Timeout: hostileTimeout, Memory: hostileMemory})
	for name, tc := range hostile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := request(tc.kind, tc.files)
			r.Tree.Trusted = false
			start := time.Now()
			b, err := child.Render(context.Background(), r)
			if took := time.Since(start); took > hostileTimeout+hostileSlack {
				t.Errorf("it took %s", took)
			}
			if b != nil || err == nil {
				t.Fatalf("rendered to %v", b)
			}
			if tc.err == nil {
				tc.err = sentinelOf(err) // which of the bounds is hit first depends on the machine
			}
			wantError(t, err, tc.err, tc.want)
			wantError(t, err, tc.err, `module "demo": `)
			if len(err.Error()) > 16<<10 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

// TestHundredMegabytes is what a source refuses long before; the renderer holds without.
func TestHundredMegabytes(t *testing.T) {
	t.Parallel()
	r := request(Manifests, "-- a.yaml --\n"+configMap("a"))
	big := []byte("a: " + strings.Repeat("x", 100<<20) + "\n")
	r.Tree.Files = append(r.Tree.Files, source.File{Path: "b.yaml", Data: big})
	start := time.Now()
	_, err := isolated(t, IsolatedOptions{Timeout: 20 * time.Second}).Render(context.Background(), r)
	if !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), "bytes") {
		wantError(t, err, sentinelOf(err), "more than 512 MiB of memory") // which of the bounds is hit first depends on the machine
	}
	if took := time.Since(start); took > hostileSlack {
		t.Errorf("it took %s", took)
	}
}
