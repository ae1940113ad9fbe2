package render

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/strvals"
)

// NamedBytes is the content of a file, with the name that errors give it.
type NamedBytes struct {
	Name string
	Data []byte
}

// Sets are values in the syntax of Helm's flags, applied in the order of the fields.
type Sets struct {
	// JSON are --set-json: key=<JSON>, or an object.
	JSON []string
	// Values are --set: key=value, numbers and booleans recognised.
	Values []string
	// Strings are --set-string: key=value, always strings.
	Strings []string
	// Files are --set-file: key=name, the value being the content of the file, which ReadFile reads.
	Files []string
	// Literals are --set-literal: key=value, the value taken as it is.
	Literals []string
	// ReadFile reads the files of Files; nil refuses them.
	ReadFile func(name string) ([]byte, error)
}

// MergeValues merges values as Helm merges them: files in order, a later one over an earlier one, then sets. Files are
// read strictly. An error names the file and the line, or the set by its flag and key (never its value), and is
// ErrValues. Numbers are float64 if they come from files and int64 if they come from sets, as templates are used to.
func MergeValues(files []NamedBytes, sets Sets) (map[string]any, error) {
	base := map[string]any{}
	for _, f := range files {
		values, err := readValues(f)
		if err != nil {
			return nil, err
		}
		base = loader.MergeMaps(base, values)
	}
	for _, s := range sets.JSON {
		var err error
		if base, err = setJSON(base, s); err != nil {
			return nil, err
		}
	}
	readFile := func(name []rune) (any, error) {
		if sets.ReadFile == nil {
			return nil, fmt.Errorf("files cannot be read here")
		}
		data, err := sets.ReadFile(string(name))
		return string(data), err
	}
	for _, flag := range []struct {
		name string
		sets []string
		into func(string, map[string]any) error
	}{
		{"--set", sets.Values, strvals.ParseInto},
		{"--set-string", sets.Strings, strvals.ParseIntoString},
		{"--set-file", sets.Files, func(s string, m map[string]any) error { return strvals.ParseIntoFile(s, m, readFile) }},
		{"--set-literal", sets.Literals, strvals.ParseLiteralInto},
	} {
		for _, s := range flag.sets {
			if err := guard(func() error { return flag.into(s, base) }); err != nil {
				return nil, setError(flag.name, s, err)
			}
		}
	}
	return base, nil
}

// guard makes an error of a panic: Helm's parsers index deep into what they are given.
func guard(f func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("it does not fit what is set already")
		}
	}()
	return f()
}

// readValues reads one file strictly, then as Helm does, whose types templates expect.
func readValues(f NamedBytes) (map[string]any, error) {
	objects, err := decode([]text{{origin: f.Name, data: f.Data, values: true}}, Limits{}.withDefaults())
	if err != nil {
		return nil, valuesError(err)
	}
	values, err := loader.LoadValues(strings.NewReader(string(f.Data)))
	if err != nil { // also where there is nothing but a tab
		return nil, &Error{Origin: f.Name, Problem: "not a map of values", Err: ErrValues}
	}
	if len(objects) == 0 {
		return map[string]any{}, nil
	}
	return values, nil
}

// valuesError makes ErrValues of the problems of a values file.
func valuesError(err error) error {
	if e, ok := err.(*Error); ok { //nolint:errorlint // joined ones are ErrMalformed and stay so
		e.Err = ErrValues
		return e
	}
	return fmt.Errorf("%w:\n%w", ErrValues, err)
}

func setJSON(base map[string]any, s string) (map[string]any, error) {
	trimmed := strings.TrimSpace(s)
	if !strings.HasPrefix(trimmed, "{") {
		if err := guard(func() error { return strvals.ParseJSON(s, base) }); err != nil {
			return nil, setError("--set-json", s, err)
		}
		return base, nil
	}
	var values map[string]any
	if err := json.Unmarshal([]byte(trimmed), &values); err != nil {
		return nil, &Error{Problem: "--set-json: " + jsonProblem(err), Err: ErrValues}
	}
	return loader.MergeMaps(base, values), nil
}

// setError names a set by its key: its value may be a secret, and so may be what the parser says of it.
func setError(flag, set string, err error) error {
	key, value, hasValue := strings.Cut(set, "=")
	if !hasValue {
		return &Error{Problem: fmt.Sprintf("%s %q: has no value: write key=value", flag, set), Err: ErrValues}
	}
	problem := err.Error()
	if len(value) >= 4 {
		problem = strings.ReplaceAll(problem, value, mask)
	}
	return &Error{Problem: fmt.Sprintf("%s %s: %s", flag, key, problem), Err: ErrValues}
}

// maxValueDepth bounds the nesting of values.
const maxValueDepth = 100

// cloneValues copies values deeply, because Helm changes them, and brings numbers to the types that they may have.
func cloneValues(values map[string]any) (map[string]any, error) {
	if values == nil {
		return map[string]any{}, nil
	}
	clone, err := cloneValue(maps.Clone(values), 0)
	if err != nil {
		return nil, &Error{Problem: "values: " + err.Error(), Err: ErrValues}
	}
	return clone.(map[string]any), nil
}

func cloneValue(v any, depth int) (any, error) {
	if depth > maxValueDepth {
		return nil, fmt.Errorf("%w: more than %d levels", errDepth, maxValueDepth)
	}
	var err error
	switch v := v.(type) {
	case common.Values:
		return cloneValue(map[string]any(v), depth)
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, item := range v {
			if out[k], err = cloneValue(item, depth+1); err != nil {
				return nil, err
			}
		}
		return out, nil
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			if out[i], err = cloneValue(item, depth+1); err != nil {
				return nil, err
			}
		}
		return out, nil
	case nil, bool, string, int64, float64:
		return v, nil
	case int:
		return int64(v), nil
	case int32:
		return int64(v), nil
	case float32:
		return float64(v), nil
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i, nil
		}
		return v.Float64()
	}
	return nil, fmt.Errorf("a value of type %T is not accepted", v)
}
