package render

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	schemakind "github.com/santhosh-tekuri/jsonschema/v6/kind"
	chart "helm.sh/helm/v4/pkg/chart/v2"
)

// checkSchemas checks the merged values against the schemas of a chart and its subcharts, as Helm does, but without
// fetching anything, and without showing values.
func checkSchemas(ch *chart.Chart, values map[string]any) error {
	violations, err := violationsOf(ch, values, "")
	if err != nil {
		return err
	}
	if len(violations) == 0 {
		return nil
	}
	slices.SortFunc(violations, func(a, b Violation) int {
		return strings.Compare(a.Path+"\x00"+a.Message, b.Path+"\x00"+b.Message)
	})
	return &ValuesError{Violations: slices.Compact(violations)}
}

func violationsOf(ch *chart.Chart, values map[string]any, prefix string) ([]Violation, error) {
	var out []Violation
	if ch.Schema != nil {
		found, err := validateValues(ch, values, prefix)
		if err != nil {
			return nil, err
		}
		out = found
	}
	for _, sub := range ch.Dependencies() {
		given, ok := values[sub.Name()]
		if !ok || given == nil {
			continue
		}
		path := prefix + "/" + escapePointer(sub.Name())
		table, ok := given.(map[string]any)
		if !ok {
			out = append(out, Violation{path, "expected a map, got " + typeName(given)})
			continue
		}
		found, err := violationsOf(sub, table, path)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

const schemaURL = "file:///values.schema.json"

func validateValues(ch *chart.Chart, values map[string]any, prefix string) (found []Violation, err error) {
	problem := func(err error) error {
		e := &Error{Origin: ch.ChartFullPath() + "/values.schema.json", Problem: "the schema cannot be used: " + err.Error(), Err: ErrMalformed}
		var load *jsonschema.LoadURLError
		if errors.As(err, &load) && errors.Is(load.Err, ErrRemote) {
			e.Err, e.Problem = ErrRemote, fmt.Sprintf("the schema refers to %s, which is not fetched: put it into the schema itself, under $defs", load.URL)
		}
		return e
	}
	defer func() {
		if recover() != nil { // of the compiler, on schemas that it does not foresee
			err = problem(errors.New("it is not understood"))
		}
	}()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(ch.Schema))
	if err != nil {
		return nil, problem(err)
	}
	schema, err := compileSchema(doc)
	if err != nil {
		return nil, problem(err)
	}
	err = schema.Validate(values)
	var invalid *jsonschema.ValidationError
	if errors.As(err, &invalid) {
		return leaves(invalid, prefix), nil
	}
	return nil, err
}

// compileSchema compiles a schema, by way of an equal one that the compiler is quick with, where there is one.
func compileSchema(doc any) (*jsonschema.Schema, error) {
	if quick, ok := namedDefinitions(doc); ok {
		if schema, err := compileDocument(quick); err == nil {
			return schema, nil
		}
	}
	return compileDocument(doc)
}

func compileDocument(doc any) (*jsonschema.Schema, error) {
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(localLoader{})
	if err := compiler.AddResource(schemaURL, doc); err != nil {
		return nil, err
	}
	return compiler.Compile(schemaURL)
}

// localLoader loads nothing. As with Helm, a "urn:" reference accepts everything.
type localLoader struct{}

func (localLoader) Load(url string) (any, error) {
	if strings.HasPrefix(url, "urn:") {
		return true, nil
	}
	return nil, ErrRemote
}

// leaves are the violations at the ends of the tree of causes.
func leaves(e *jsonschema.ValidationError, prefix string) []Violation {
	if len(e.Causes) == 0 {
		return []Violation{{prefix + pointer(e.InstanceLocation), meaning(e.ErrorKind)}}
	}
	var out []Violation
	for _, c := range e.Causes {
		out = append(out, leaves(c, prefix)...)
	}
	return out
}

func pointer(location []string) string {
	if len(location) == 0 {
		return "/"
	}
	var b strings.Builder
	for _, l := range location {
		b.WriteString("/" + escapePointer(l))
	}
	return b.String()
}

// escapePointer escapes a token of a JSON pointer (RFC 6901).
func escapePointer(token string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(token)
}

// meaning says what was expected, from the schema alone; the library's own messages quote the value.
func meaning(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *schemakind.Type:
		return fmt.Sprintf("expected %s, got %s", strings.Join(k.Want, " or "), k.Got)
	case *schemakind.Required:
		return "missing: " + strings.Join(k.Missing, ", ")
	case *schemakind.AdditionalProperties:
		return "not known to the chart: " + strings.Join(k.Properties, ", ")
	case *schemakind.Enum:
		return fmt.Sprintf("must be one of %v", k.Want)
	case *schemakind.Const:
		return fmt.Sprintf("must be %v", k.Want)
	case *schemakind.Pattern:
		return "must match the pattern " + k.Want
	case *schemakind.Format:
		return "must have the format " + k.Want
	case *schemakind.MinLength:
		return fmt.Sprintf("must have at least %d characters", k.Want)
	case *schemakind.MaxLength:
		return fmt.Sprintf("must have at most %d characters", k.Want)
	case *schemakind.Minimum:
		return "must be at least " + k.Want.RatString()
	case *schemakind.Maximum:
		return "must be at most " + k.Want.RatString()
	case *schemakind.ExclusiveMinimum:
		return "must be above " + k.Want.RatString()
	case *schemakind.ExclusiveMaximum:
		return "must be below " + k.Want.RatString()
	case *schemakind.MinItems:
		return fmt.Sprintf("must have at least %d items", k.Want)
	case *schemakind.MaxItems:
		return fmt.Sprintf("must have at most %d items", k.Want)
	case *schemakind.FalseSchema:
		return "not accepted by the chart"
	}
	return "does not satisfy " + strings.Join(k.KeywordPath(), "/")
}
