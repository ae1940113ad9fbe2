package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

func decodeOne(name, data string) ([]object, error) {
	return decode([]text{{origin: name, data: []byte(data)}}, Limits{}.withDefaults())
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("{a: ", 101) + "1" + strings.Repeat("}", 101)
	for name, tc := range map[string]struct{ file, data, want string }{
		"DuplicateKey":        {"a.yaml", "a: 1\nb: 2\na: 3\n", `a.yaml, document 1, line 3: key "a" is set twice`},
		"NestedDuplicateKey":  {"a.yaml", "m:\n  x: 1\n  x: 1\n", `line 3: key "x" is set twice`},
		"SecondDocument":      {"a.yaml", "a: 1\n---\nb: 1\nb: 2\n", `a.yaml, document 2, line 4: key "b" is set twice`},
		"SecretDuplicateKey":  {"a.yaml", "kind: Secret\nstringData:\n  hunter2: x\n  hunter2: y\n", `line 4: a key is set twice`},
		"JSONDuplicateKey":    {"a.json", `{"a": 1, "a": 2}`, `duplicate field "a": it is set twice`},
		"SecretJSONDuplicate": {"a.json", `{"kind": "Secret", "hunter2": 1, "hunter2": 2}`, `a key is set twice`},
		"MergedDuplicateKey":  {"a.yaml", "x: &x {a: 1}\ny:\n  <<: *x\n  b: 1\n  b: 2\n", `line 5: key "b" is set twice`},
		"TabIndentation":      {"a.yaml", "a:\n\tb: 1\n", "line 2: a tab is used for indentation"},
		"NotUTF8":             {"a.yaml", "a: 1\nb: \xff\n", "a.yaml, line 2: not UTF-8"},
		"UTF16":               {"a.yaml", "\xff\xfea\x00:\x00", "not UTF-8"},
		"ControlCharacter":    {"a.yaml", "a: \x01\n", "control characters are not allowed"},
		"BadIndentation":      {"a.yaml", "a:\n  b: 1\n c: 2\n", "line 3: not valid YAML: did not find expected key"},
		"UnclosedQuote":       {"a.yaml", "a: \"b\nc: 1\n", "not valid YAML"},
		"UnclosedFlow":        {"a.yaml", "a: [1, 2\nb: 1\n", "not valid YAML"},
		"MappingInValue":      {"a.yaml", "a: b: c\n", "document 1, line 1: not valid YAML: mapping values are not allowed"},
		"UnknownAnchor":       {"a.yaml", "a: *nope\n", "unknown anchor"},
		"BillionLaughs":       {"a.yaml", billionLaughs, "aliases expand to too much"},
		"LongStringAliased":   {"a.yaml", "s: &s " + strings.Repeat("x", 1<<20) + "\nl: [" + strings.Repeat("*s, ", 90) + "*s]\n", "aliases expand to too much"},
		"TooDeep":             {"a.yaml", deep, "nested too deeply"},
		"TooDeepJSON":         {"a.json", strings.Repeat(`{"a": `, 101) + "1" + strings.Repeat("}", 101), "nested too deeply"},
		"TooLarge":            {"a.yaml", "a: " + strings.Repeat("x", 4<<20), "more than 4194304 are not accepted"},
		"List":                {"a.yaml", "- a\n- b\n", "not an object but a list"},
		"String":              {"a.yaml", "hello\n", "not an object but a string"},
		"Number":              {"a.yaml", "--- 5\n", "not an object but a number"},
		"ItemIsNoObject":      {"a.yaml", "kind: List\nitems: [{}, a]\n", "item 2 of the List is not an object but a string"},
		"Infinity":            {"a.yaml", "a: .inf\n", "infinity and NaN"},
		"Directive":           {"a.yaml", "%TAG ! tag:example.com,2000:\n---\na: 1\n", "directive"},
		"JSONSyntax":          {"a.json", "{\"a\": 1,\n\"b\" 2}", "a.json, document 1, line 2: not valid JSON"},
		"JSONUnfinished":      {"a.json", `{"a": 1`, "not valid JSON"},
		"HiddenDocument":      {"a.yaml", "a: 1\u2028---\u2028b: 2\n", "second document"},
		"NullKey":             {"a.yaml", "~: 1\n", "quote it"},
		"KeysEqualAsStrings":  {"a.yaml", "1: a\n\"1\": b\n", "two keys of a map are equal"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := decodeOne(tc.file, tc.data)
			wantError(t, err, ErrMalformed, tc.want)
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error quotes a Secret: %v", err)
			}
		})
	}
}

const billionLaughs = `
a: &a ["lol","lol","lol","lol","lol","lol","lol","lol","lol"]
b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]
c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]
d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]
e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]
f: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]
g: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]
h: &h [*g,*g,*g,*g,*g,*g,*g,*g,*g]
i: &i [*h,*h,*h,*h,*h,*h,*h,*h,*h]
`

func TestDecodeAccepts(t *testing.T) {
	t.Parallel()
	type m = map[string]any
	for name, tc := range map[string]struct {
		file, data string
		want       []m
	}{
		"MarkerInBlockScalar":   {"a.yaml", "a: |\n  x\n  ---\n  y\n---\nb: 1\n", []m{{"a": "x\n---\ny\n"}, {"b": int64(1)}}},
		"DashesInValue":         {"a.yaml", "a: ---x\nb: |\n  ----\n", []m{{"a": "---x", "b": "----\n"}}},
		"CRLF":                  {"a.yaml", "a: 1\r\n---\r\nb: 2\r\n", []m{{"a": int64(1)}, {"b": int64(2)}}},
		"BOM":                   {"a.yaml", "\ufeffa: 1\n---\n\ufeffb: 2\n", []m{{"a": int64(1)}, {"b": int64(2)}}},
		"BOMBeforeMarker":       {"a.yaml", "\ufeff---\na: 1\n", []m{{"a": int64(1)}}},
		"CommentsOnly":          {"a.yaml", "# a\n---\n  # b\n\n---\n", nil},
		"Null":                  {"a.yaml", "null\n---\n~\n", nil},
		"ContentAfterMarker":    {"a.yaml", "--- {a: 1}\n--- # comment\nb: 2\n", []m{{"a": int64(1)}, {"b": int64(2)}}},
		"DocumentEnd":           {"a.yaml", "a: 1\n...\n---\nb: 2\n", []m{{"a": int64(1)}, {"b": int64(2)}}},
		"NoFinalNewline":        {"a.yaml", "a: 1\n---\nb: 2", []m{{"a": int64(1)}, {"b": int64(2)}}},
		"YAML11Booleans":        {"a.yaml", "a: yes\nb: off\nc: \"yes\"\non: 1\n", []m{{"a": true, "b": false, "c": "yes", "true": int64(1)}}},
		"Octal":                 {"a.yaml", "a: 0644\nb: 0o644\n", []m{{"a": int64(420), "b": int64(420)}}},
		"FloatThatIsWhole":      {"a.yaml", "a: 1.0\nb: 1e3\nc: 1.5\n", []m{{"a": int64(1), "b": int64(1000), "c": 1.5}}},
		"MergeKeyOverride":      {"a.yaml", "x: &x {a: 1, b: 1}\nz:\n  <<: *x\n  b: 2\n", []m{{"x": m{"a": int64(1), "b": int64(1)}, "z": m{"a": int64(1), "b": int64(2)}}}},
		"NotAMergeKey":          {"a.yaml", "a: x << y\n", []m{{"a": "x << y"}}},
		"Timestamp":             {"a.yaml", "a: 2020-01-01\n", []m{{"a": "2020-01-01"}}},
		"FlowThatLooksLikeJSON": {"a.yaml", "{a: 1}\n", []m{{"a": int64(1)}}},
		"JSONInYAML":            {"a.yaml", "{\"a\": 1,\n\t\"b\": 2}\n", []m{{"a": int64(1), "b": int64(2)}}},
		"NestedLists":           {"a.yaml", "kind: List\nitems:\n- kind: FooList\n  apiVersion: v9\n  items: [{x: 1}]\n", []m{{"kind": "Foo", "apiVersion": "v9", "x": int64(1)}}},
		"ItemsOfNoList":         {"a.yaml", "kind: Menu\nitems: [a]\n", []m{{"kind": "Menu", "items": []any{"a"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects, err := decodeOne(tc.file, tc.data)
			if err != nil {
				t.Fatal(err)
			}
			var got []m
			for _, o := range objects {
				got = append(got, o.fields)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDecodeReportsEverything(t *testing.T) {
	t.Parallel()
	_, err := decode([]text{
		{origin: "a.yaml", data: []byte("x: 1\nx: 2\n---\nfine: 1\n---\n- list\n")},
		{origin: "b.yaml", data: []byte("\xff")},
		{origin: "c.yaml", data: []byte("good: 1\n")},
	}, Limits{}.withDefaults())
	wantError(t, err, ErrMalformed, "b.yaml")
	_, err = decode([]text{{origin: "a.yaml", data: []byte("x: 1\nx: 2\n---\nfine: 1\n---\n- list\n")}}, Limits{}.withDefaults())
	wantError(t, err, ErrMalformed, "a.yaml, document 1, line 2")
	wantError(t, err, ErrMalformed, "a.yaml, document 3")
	many := strings.Repeat("- x\n---\n", 50)
	_, err = decodeOne("a.yaml", many)
	wantError(t, err, ErrMalformed, "and 30 more problems")
}

func TestDecodeLimits(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		limits Limits
		data   string
		want   string
	}{
		"Objects":      {Limits{Objects: 2}, "a: 1\n---\na: 1\n---\na: 1\n", "more than 2 documents"},
		"ObjectsLists": {Limits{Objects: 2}, "kind: List\nitems: [{}, {}, {}]\n", "more than 2 are not accepted"},
		"ObjectsJSON":  {Limits{Objects: 2}, `{"kind": "List", "items": [{}, {}, {}]}`, "more than 2"},
		"Total":        {Limits{Total: 10}, "a: 1\n---\na: 1\n", "more than 10 bytes"},
		"Document":     {Limits{Document: 10}, "a: 1\n---\nabcdefgh: 123456\n", "document 2: the document has"},
		"Depth":        {Limits{Depth: 2}, "a: {b: {c: 1}}\n", "more than 2 levels"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := decode([]text{{origin: "a.yaml", data: []byte(tc.data)}}, tc.limits.withDefaults())
			wantError(t, err, ErrMalformed, tc.want)
		})
	}
}

// kubectlDecode is what kubectl and controllers make of one document.
func kubectlDecode(data []byte) (any, error) {
	raw, err := yaml.YAMLToJSON(data)
	if err != nil {
		return nil, err
	}
	var v any
	err = kjson.UnmarshalCaseSensitivePreserveInts(raw, &v)
	return v, err
}

func TestDecodeCertManagerLikeKubectl(t *testing.T) {
	t.Parallel()
	r := certManager(t)
	n := 0
	for _, txt := range chartTexts(t, &r) {
		for _, d := range splitText(&txt) {
			objects, err := decodeDocument(&d, Limits{}.withDefaults())
			if err != nil {
				t.Fatal(err)
			}
			want, err := kubectlDecode(d.data)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, any(objects[0].fields)); diff != "" {
				t.Errorf("%s: %s", d.place(), diff)
			}
			n++
		}
	}
	if n < 40 {
		t.Errorf("only %d documents", n)
	}
}

// FuzzDecodeYAML checks that decoding neither panics nor differs from kubectl's, and that what it accepts is JSON
// within the limits.
func FuzzDecodeYAML(f *testing.F) {
	for _, seed := range []string{
		"a: 1\n---\nb: [1, 2.5, yes, ~, \"x\"]\n", "{\"a\": 1}\n{\"b\": 2}", "x: &x {a: 1}\ny: {<<: *x, a: 2}\n", billionLaughs,
		"a: |\n  ---\n  b\n", "\ufeff---\r\na: 1\r\n...\r\n", "kind: List\nitems: [{kind: A}]", "a:\n\t- b", "? [a]\n: b", "!!binary aGk=",
		"1.0: a\n0x1F: b\n", "a: 1e400\nb: 18446744073709551615\nc: -0.0\n", "%YAML 1.1\n---\na: 1\n", "a: !foo b\n", "a: 0b11\nb: 1_000\nc: 190:20:30\n",
	} {
		f.Add(seed)
	}
	limits := Limits{Document: 1 << 16, Total: 1 << 18, Objects: 100, Depth: 20}
	f.Fuzz(func(t *testing.T, data string) {
		txt := text{origin: "fuzz.yaml", data: []byte(data)}
		objects, err := decode([]text{txt}, limits)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || !errors.Is(err, ErrMalformed) {
				t.Fatalf("not an *Error: %v", err)
			}
			return
		}
		for _, o := range objects {
			if _, err := json.Marshal(o.fields); err != nil {
				t.Fatalf("not JSON: %v", err)
			}
			compareWithKubectl(t, &o)
		}
	})
}

// compareWithKubectl compares a document of one object with what kubectl makes of it.
func compareWithKubectl(t *testing.T, o *object) {
	t.Helper()
	if k, _ := o.fields["kind"].(string); k != "" || strings.Contains(string(o.data), "List") || isJSON(o.document) {
		return // it may be an item of a list
	}
	want, err := kubectlDecode(o.data)
	if err != nil {
		t.Fatalf("kubectl refuses what is accepted: %v", err)
	}
	if diff := cmp.Diff(want, any(o.fields)); diff != "" {
		t.Fatal(fmt.Sprintf("%q: ", o.data) + diff)
	}
}
