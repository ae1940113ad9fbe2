package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	kjson "sigs.k8s.io/json"
)

// converter makes JSON types of what the YAML library decodes, exactly as sigs.k8s.io/yaml followed by the decoder of
// unstructured objects does, but without the JSON in between.
type converter struct {
	depth int // allowed nesting
	bytes int // of keys and strings left: aliases to a long string multiply it
}

var (
	errDepth   = errors.New("nested too deeply")
	errExpands = errors.New("aliases expand to too much")
)

func (c *converter) convert(v any, depth int) (any, error) {
	if depth > c.depth {
		return nil, fmt.Errorf("%w: more than %d levels", errDepth, c.depth)
	}
	switch v := v.(type) {
	case map[any]any:
		return c.convertMap(v, depth)
	case []any:
		for i := range v {
			item, err := c.convert(v[i], depth+1)
			if err != nil {
				return nil, err
			}
			v[i] = item
		}
		return v, c.spend(len(v))
	case string:
		return v, c.spend(len(v))
	case int:
		return int64(v), nil
	case float64:
		return convertFloat(v)
	case uint64: // beyond int64: JSON decoding makes a float of it
		return float64(v), nil
	case nil, bool, int64:
		return v, nil
	}
	return nil, fmt.Errorf("a value of type %T is not accepted", v)
}

func (c *converter) spend(n int) error {
	if c.bytes -= n; c.bytes < 0 {
		return errExpands
	}
	return nil
}

func (c *converter) convertMap(m map[any]any, depth int) (map[string]any, error) {
	out := make(map[string]any, len(m))
	for k, v := range m {
		key, err := keyString(k)
		if err != nil {
			return nil, err
		}
		if _, ok := out[key]; ok {
			return nil, errors.New("two keys of a map are equal once written as strings")
		}
		if err := c.spend(len(key) + 1); err != nil {
			return nil, err
		}
		if out[key], err = c.convert(v, depth+1); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// keyString writes a map's key as a string. Booleans and numbers are keys in YAML 1.1: "on:" is "true:".
func keyString(k any) (string, error) {
	switch k := k.(type) {
	case string:
		return k, nil
	case int:
		return strconv.Itoa(k), nil
	case int64:
		return strconv.FormatInt(k, 10), nil
	case bool:
		return strconv.FormatBool(k), nil
	case float64:
		return floatKey(k), nil
	}
	return "", fmt.Errorf("a map's key of type %T is not accepted: quote it", k)
}

func floatKey(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return ".inf"
	case math.IsInf(f, -1):
		return "-.inf"
	case math.IsNaN(f):
		return ".nan"
	}
	return strconv.FormatFloat(f, 'g', -1, 32)
}

// convertFloat makes an integer of a float that JSON writes without fraction and exponent, as a JSON round trip does.
func convertFloat(f float64) (any, error) {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return nil, errors.New("infinity and NaN are not accepted")
	}
	if f != math.Trunc(f) || math.Abs(f) >= 1e21 {
		return f, nil
	}
	if i, err := strconv.ParseInt(strconv.FormatFloat(f, 'f', -1, 64), 10, 64); err == nil {
		return i, nil
	}
	return f, nil
}

// isJSON says whether a document is to be read as JSON: in a .json file, or because it starts like it and is valid.
func isJSON(d *document) bool {
	if path.Ext(d.origin) == ".json" && !d.rendered {
		return true
	}
	trimmed := bytes.TrimLeft(d.data, " \t\r\n")
	return bytes.HasPrefix(trimmed, []byte("{")) && json.Valid(trimmed)
}

// decodeJSON reads one or more JSON values, strictly.
func decodeJSON(d *document, limits Limits) ([]object, error) {
	var out []object
	dec := json.NewDecoder(bytes.NewReader(d.data))
	for {
		var raw json.RawMessage
		if err := dec.Decode(&raw); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, d.at(lineAt(d.data, jsonOffset(err, dec)), "not valid JSON: %s", jsonProblem(err))
		}
		start := int(dec.InputOffset()) - len(raw)
		value, err := strictJSON(raw, limits)
		if err != nil {
			return nil, d.at(lineAt(d.data, start), "%s", err)
		}
		objects, err := toObjects(d, value)
		if err != nil {
			return nil, err
		}
		if out = append(out, objects...); len(out) > limits.Objects {
			return nil, d.at(0, "more than %d objects are not accepted", limits.Objects)
		}
	}
}

// jsonOffset is where a JSON error is.
func jsonOffset(err error, dec *json.Decoder) int {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return int(syntax.Offset)
	}
	return int(dec.InputOffset())
}

func strictJSON(raw []byte, limits Limits) (any, error) {
	var value any
	strict, err := kjson.UnmarshalStrict(raw, &value)
	if err != nil {
		return nil, fmt.Errorf("not valid JSON: %s", jsonProblem(err))
	}
	if len(strict) > 0 {
		if secretKind.Match(raw) {
			return nil, errors.New("a key is set twice")
		}
		return nil, fmt.Errorf("%s: it is set twice", strings.TrimPrefix(strict[0].Error(), "json: "))
	}
	c := converter{depth: limits.Depth, bytes: 4 * limits.Document}
	return value, c.checkDepth(value, 0)
}

// checkDepth bounds the nesting of a decoded JSON value.
func (c *converter) checkDepth(v any, depth int) error {
	if depth > c.depth {
		return fmt.Errorf("%w: more than %d levels", errDepth, c.depth)
	}
	switch v := v.(type) {
	case map[string]any:
		for _, item := range v {
			if err := c.checkDepth(item, depth+1); err != nil {
				return err
			}
		}
	case []any:
		for _, item := range v {
			if err := c.checkDepth(item, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// jsonProblem is the message of a JSON error without any content of the document.
func jsonProblem(err error) string {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) || errors.Is(err, io.ErrUnexpectedEOF) {
		return strings.TrimPrefix(err.Error(), "json: ")
	}
	return "a value has the wrong type"
}

// lineAt is the line, from 1, of an offset.
func lineAt(data []byte, offset int) int {
	return 1 + bytes.Count(data[:min(max(offset, 0), len(data))], []byte("\n"))
}

// refuseDuplicateKeys reports keys that are set twice in a document with merge keys ("<<"), which may be overridden.
func refuseDuplicateKeys(d *document) error {
	var root yamlv3.Node
	if err := yamlv3.Unmarshal(d.data, &root); err != nil {
		return yamlError(d, err)
	}
	secret := secretKind.Match(d.data)
	var errs []error
	visitMappings(&root, func(n *yamlv3.Node) {
		seen := map[string]bool{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if key.Kind == yamlv3.ScalarNode && key.Tag != "!!merge" && seen[key.Value] {
				errs = append(errs, d.at(key.Line, "%s", duplicateKey(strconv.Quote(key.Value), secret)))
			}
			seen[key.Value] = true
		}
	})
	return join(errs)
}

// visitMappings calls f for each mapping node. Aliases are not followed, so it ends.
func visitMappings(n *yamlv3.Node, f func(*yamlv3.Node)) {
	if n.Kind == yamlv3.MappingNode {
		f(n)
	}
	for _, child := range n.Content {
		visitMappings(child, f)
	}
}
