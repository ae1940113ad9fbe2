package render

import (
	"slices"
	"strings"
)

// namedDefinitions returns a copy of a schema of draft 4, 6 or 7 with its "$defs" under the name that these drafts know,
// "definitions", and its references following; ok says whether there was something to rename. To these drafts "$defs" is an
// unknown keyword, and the compiler copies the whole document for each reference into one: a tenth of the time of a render of
// cert-manager's chart.
//
// A schema in which the two names could mean something different (both are there, or a definition has an identifier, which
// an unknown keyword would hide) is left alone. References that are missed, because they are under a property that is named
// like a keyword with data, make the copy fail to compile; the caller then takes the original.
func namedDefinitions(doc any) (renamed any, ok bool) {
	root, isMap := doc.(map[string]any)
	if !isMap {
		return nil, false
	}
	dialect, _ := root["$schema"].(string)
	defs, has := root["$defs"].(map[string]any)
	_, both := root["definitions"]
	if !has || both || !oldDialects[strings.TrimRight(strings.TrimPrefix(strings.TrimPrefix(dialect, "https"), "http"), "#")] || identified(defs) {
		return nil, false
	}
	out := make(map[string]any, len(root))
	for key, value := range root {
		if key == "$defs" {
			key = "definitions"
		}
		out[key] = followed(key, value)
	}
	return out, true
}

var oldDialects = map[string]bool{
	"://json-schema.org/draft-04/schema": true,
	"://json-schema.org/draft-06/schema": true,
	"://json-schema.org/draft-07/schema": true,
}

// dataKeywords hold data and not schemas.
var dataKeywords = []string{"const", "default", "enum", "examples"}

// followed is a copy of the value of a keyword with references to "$defs" renamed.
func followed(key string, value any) any {
	if slices.Contains(dataKeywords, key) {
		return value
	}
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, nested := range v {
			out[k] = followed(k, nested)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, nested := range v {
			out[i] = followed("", nested)
		}
		return out
	case string:
		if rest, is := strings.CutPrefix(v, "#/$defs/"); is && key == "$ref" {
			return "#/definitions/" + rest
		}
	}
	return value
}

// identified says whether there is an identifier anywhere in a value.
func identified(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for key, nested := range v {
			if key == "$id" || key == "id" || identified(nested) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, identified)
	}
	return false
}
