package lint

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"sigs.k8s.io/yaml"

	"github.com/kyma-project/mothership/api/crd"
	"github.com/kyma-project/mothership/internal/catalog/artifact"
)

// schema is the part of a definition's schema that the API server checks objects by.
type schema struct {
	Type       string             `json:"type"`
	Properties map[string]*schema `json:"properties"`
	Items      *schema            `json:"items"`
	Required   []string           `json:"required"`
	Enum       []any              `json:"enum"`
	Pattern    string             `json:"pattern"`
	MinLength  int                `json:"minLength"`
	MaxLength  *int               `json:"maxLength"`
	MinItems   int                `json:"minItems"`
	MaxItems   *int               `json:"maxItems"`
	Rules      []rule             `json:"x-kubernetes-validations"`
	MapKeys    []string           `json:"x-kubernetes-list-map-keys"`
}

// rule is one of a schema's rules in CEL.
type rule struct {
	Rule              string `json:"rule"`
	Message           string `json:"message"`
	MessageExpression string `json:"messageExpression"`
	FieldPath         string `json:"fieldPath"`
}

// schemas are those of the control plane's kinds, by kind.
var schemas = sync.OnceValues(func() (map[string]*schema, error) {
	out := map[string]*schema{}
	for _, data := range crd.All() {
		var def struct {
			Spec struct {
				Names    struct{ Kind string }
				Versions []struct {
					Schema struct{ OpenAPIV3Schema *schema }
				}
			}
		}
		if err := yaml.Unmarshal(data, &def); err != nil {
			return nil, fmt.Errorf("reading the definitions: %w", err)
		}
		for _, v := range def.Spec.Versions {
			out[def.Spec.Names.Kind] = v.Schema.OpenAPIV3Schema
		}
	}
	return out, nil
})

// schema checks an object by what its definition says, as the API server does when it is applied.
func (l *linter) schema(e *artifact.Entry) {
	all, err := schemas()
	var content any
	if err == nil {
		err = yaml.Unmarshal(e.Raw, &content)
	}
	if err != nil {
		l.addf(e, Error, "%v", err)
		return
	}
	check(all[e.Kind()], "", content, func(path, problem string) {
		l.refused[e] = true
		l.addf(e, Error, "%s", strings.TrimPrefix(strings.TrimPrefix(path, ".")+": "+problem, ": "))
	})
}

// check reports what is wrong with a value, and with what is in it.
func check(s *schema, path string, v any, report func(path, problem string)) {
	if s == nil || v == nil {
		return
	}
	s.bounds(path, v, report)
	switch v := v.(type) {
	case map[string]any:
		for _, name := range s.Required {
			if _, ok := v[name]; !ok {
				report(path+"."+name, "is missing")
			}
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			check(s.Properties[name], path+"."+name, v[name], report)
		}
	case []any:
		for i, item := range v {
			check(s.Items, fmt.Sprintf("%s[%d]", path, i), item, report)
		}
		s.keys(path, v, report)
	}
	for _, r := range s.Rules {
		if problem := r.problem(v); problem != "" {
			report(path+r.FieldPath, problem)
		}
	}
}

// bounds checks what can be said without CEL.
func (s *schema) bounds(path string, v any, report func(path, problem string)) {
	switch v := v.(type) {
	case string:
		n := utf8.RuneCountInString(v)
		switch {
		case n < s.MinLength:
			report(path, fmt.Sprintf("has %d characters, at least %d are needed", n, s.MinLength))
		case s.MaxLength != nil && n > *s.MaxLength:
			report(path, fmt.Sprintf("has %d characters, at most %d are allowed", n, *s.MaxLength))
		case s.Pattern != "" && !regexp.MustCompile(s.Pattern).MatchString(v): // ours
			report(path, fmt.Sprintf("%q does not match %s", v, s.Pattern))
		}
	case []any:
		switch {
		case len(v) < s.MinItems:
			report(path, "is empty")
		case s.MaxItems != nil && len(v) > *s.MaxItems:
			report(path, fmt.Sprintf("has %d items, at most %d are allowed", len(v), *s.MaxItems))
		}
	}
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, v) {
		report(path, fmt.Sprintf("%q is not one of %v", v, s.Enum))
	}
}

// keys reports items of a list that have the same key.
func (s *schema) keys(path string, items []any, report func(path, problem string)) {
	seen := map[string]bool{}
	for i, item := range items {
		m, ok := item.(map[string]any)
		if !ok || len(s.MapKeys) == 0 {
			return
		}
		var parts []string
		for _, key := range s.MapKeys {
			parts = append(parts, fmt.Sprint(m[key]))
		}
		key := strings.Join(parts, "/")
		if seen[key] {
			report(fmt.Sprintf("%s[%d]", path, i), fmt.Sprintf("%s %q is there twice", strings.Join(s.MapKeys, "/"), key))
		}
		seen[key] = true
	}
}

// celEnv knows a value as self, of whatever type.
var celEnv = sync.OnceValues(func() (*cel.Env, error) { return cel.NewEnv(cel.Variable("self", cel.DynType)) })

// problem is the rule's message if a value breaks it. Rules about changes have nothing to say here.
func (r *rule) problem(v any) string {
	if strings.Contains(r.Rule, "oldSelf") {
		return ""
	}
	out, err := evaluate(r.Rule, v)
	if err != nil {
		return fmt.Sprintf("rule %q cannot be evaluated: %v", r.Rule, err)
	}
	if out == true {
		return ""
	}
	if r.MessageExpression != "" {
		if text, err := evaluate(r.MessageExpression, v); err == nil {
			return fmt.Sprint(text)
		}
	}
	if r.Message == "" {
		return "breaks the rule " + r.Rule
	}
	return r.Message
}

// evaluate runs one of our own expressions over a value.
func evaluate(expression string, self any) (any, error) {
	env, err := celEnv()
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		return nil, issues.Err()
	}
	program, err := env.Program(ast)
	if err != nil {
		return nil, err
	}
	out, _, err := program.Eval(map[string]any{"self": self})
	if err != nil {
		return nil, err
	}
	return out.Value(), nil
}
