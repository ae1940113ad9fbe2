package render

import (
	"bytes"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// What a schema refuses must not depend on the name that its definitions were compiled under.
func TestNamedDefinitions(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		schema  string
		renamed bool
		accepts string
		refuses string
	}{
		"Draft7": {`{"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"a": {"$ref": "#/$defs/n"}},
			"$defs": {"n": {"type": "array", "items": {"$ref": "#/$defs/i"}}, "i": {"type": "integer"}}}`, true, `{"a": [1]}`, `{"a": ["x"]}`},
		"Whole": {`{"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/$defs/r",
			"$defs": {"r": {"type": "object", "allOf": [{"$ref": "#/$defs/q"}]}, "q": {"required": ["a"]}}}`, true, `{"a": 1}`, `{}`},
		"Data": {`{"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"a": {"const": {"$ref": "#/$defs/n"}}},
			"$defs": {"n": {}}}`, true, `{"a": {"$ref": "#/$defs/n"}}`, `{"a": {"$ref": "#/definitions/n"}}`},
		"PropertyLikeAKeyword": {`{"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"default": {"$ref": "#/$defs/n"}},
			"$defs": {"n": {"type": "string"}}}`, true, `{"default": "x"}`, `{"default": 1}`},
		"Identified": {`{"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"a": {"$ref": "#/$defs/n"}},
			"$defs": {"n": {"$id": "#n", "type": "string"}}}`, false, `{"a": "x"}`, `{"a": 1}`},
		"Both": {`{"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"a": {"$ref": "#/$defs/n"}, "b": {"$ref": "#/definitions/n"}},
			"$defs": {"n": {"type": "string"}}, "definitions": {"n": {"type": "integer"}}}`, false, `{"a": "x", "b": 1}`, `{"a": "x", "b": "x"}`},
		"Newer": {`{"$schema": "https://json-schema.org/draft/2020-12/schema", "properties": {"a": {"$ref": "#/$defs/n"}},
			"$defs": {"n": {"type": "string"}}}`, false, `{"a": "x"}`, `{"a": 1}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc := decoded(t, tc.schema)
			if _, renamed := namedDefinitions(doc); renamed != tc.renamed {
				t.Errorf("renamed: %v, want %v", renamed, tc.renamed)
			}
			schema, err := compileSchema(doc)
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(decoded(t, tc.accepts)); err != nil {
				t.Errorf("refuses %s: %v", tc.accepts, err)
			}
			if schema.Validate(decoded(t, tc.refuses)) == nil {
				t.Errorf("accepts %s", tc.refuses)
			}
		})
	}
}

func decoded(t *testing.T, text string) any {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(text)))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}
