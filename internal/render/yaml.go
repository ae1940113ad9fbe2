package render

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v2"
)

// Limits bound what a source may render to. The zero value of a field is its default.
type Limits struct {
	// Document is the size of one document in bytes, default 4 MiB.
	Document int
	// Total is the size of all documents in bytes, default 64 MiB.
	Total int
	// Objects is their number, default 10,000.
	Objects int
	// Depth of nesting, default 100.
	Depth int
}

func (l Limits) withDefaults() Limits {
	l.Document = cmp.Or(l.Document, 4<<20)
	l.Total = cmp.Or(l.Total, 64<<20)
	l.Objects = cmp.Or(l.Objects, 10_000)
	l.Depth = cmp.Or(l.Depth, 100)
	return l
}

// text is one file of YAML or JSON, before decoding.
type text struct {
	origin   string
	data     []byte
	rendered bool // lines are those of a template's output
	once     bool // its Secrets and ConfigMaps are created once
	values   bool // not objects of Kubernetes but any map
	template bool // the output of a Helm template, cut as Helm cuts it: at "---" whatever follows it on the line
}

// document is one document of a text.
type document struct {
	*text
	number int // from 1
	line   int // of the text, of the document's first line, from 1
	data   []byte
}

// at makes an error of a document at a line of it, 0 if unknown.
func (d *document) at(line int, format string, args ...any) *Error {
	e := &Error{Origin: d.origin, Document: d.number, Rendered: d.rendered, Problem: fmt.Sprintf(format, args...), Err: ErrMalformed}
	if line > 0 {
		e.Line = d.line + line - 1
	}
	return e
}

// object is one decoded object.
type object struct {
	*document
	fields map[string]any
}

// decode reads all texts, in parallel, and returns their objects in order. Every problem of every document is
// reported; with any problem nothing is returned.
func decode(texts []text, limits Limits) ([]object, error) {
	docs, err := split(texts, limits)
	if err != nil {
		return nil, err
	}
	results := make([][]object, len(docs))
	errs := make([]error, len(docs))
	largestFirst(docs, func(i int) {
		defer func() {
			if recover() != nil { // of a worker: nobody else would
				errs[i] = docs[i].at(0, "the document cannot be read")
			}
		}()
		results[i], errs[i] = decodeDocument(&docs[i], limits)
	})
	if err := join(errs); err != nil {
		return nil, err
	}
	objects := slices.Concat(results...)
	if len(objects) > limits.Objects {
		return nil, &Error{Problem: fmt.Sprintf("%d objects: more than %d are not accepted", len(objects), limits.Objects), Err: ErrMalformed}
	}
	return objects, nil
}

// largestFirst calls f for each document on GOMAXPROCS goroutines and returns when all are done.
func largestFirst(docs []document, f func(int)) {
	order := make([]int, len(docs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(docs[b].data), len(docs[a].data)) })
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(docs)) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(order)); i = next.Add(1) - 1 {
				f(order[i])
			}
		})
	}
	wg.Wait()
}

// split cuts texts into documents and leaves out those without content.
func split(texts []text, limits Limits) ([]document, error) {
	var docs []document
	var errs []error
	total := 0
	for i := range texts {
		t := &texts[i]
		if total += len(t.data); total > limits.Total {
			return nil, &Error{Origin: t.origin, Problem: fmt.Sprintf("the documents have more than %d bytes together", limits.Total), Err: ErrMalformed}
		}
		if !utf8.Valid(t.data) {
			errs = append(errs, &Error{Origin: t.origin, Line: invalidLine(t.data), Rendered: t.rendered, Problem: "not UTF-8", Err: ErrMalformed})
			continue
		}
		for _, d := range splitText(t) {
			if len(d.data) > limits.Document {
				errs = append(errs, d.at(0, "the document has %d bytes: more than %d are not accepted", len(d.data), limits.Document))
				continue
			}
			if docs = append(docs, d); len(docs) > limits.Objects {
				return nil, &Error{Origin: t.origin, Problem: fmt.Sprintf("more than %d documents are not accepted", limits.Objects), Err: ErrMalformed}
			}
		}
	}
	return docs, join(errs)
}

// invalidLine is the line of the first byte that is not UTF-8.
func invalidLine(data []byte) int {
	line := 1
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return line
		}
		if r == '\n' {
			line++
		}
		i += n
	}
	return line
}

var bom = []byte("\uFEFF")

// splitText cuts one text at its document markers: a line that starts with "---" or "..." and a white space or its
// end. YAML allows such a line nowhere inside a document, not even in a block scalar, where it would be indented.
func splitText(t *text) []document {
	var docs []document
	rest, line, number := t.data, 1, 0
	doc := document{text: t, line: 1}
	start := rest
	size := 0
	flush := func() {
		doc.data = withoutBOM(start[:size])
		if hasContent(doc.data) {
			number++
			doc.number = number
			docs = append(docs, doc)
		}
	}
	for len(rest) > 0 {
		l := rest
		if i := bytes.IndexByte(rest, '\n'); i >= 0 {
			l = rest[:i+1]
		}
		rest = rest[len(l):]
		if skip := markerLen(bytes.TrimPrefix(l, bom), t.template); skip > 0 {
			flush()
			skip += len(l) - len(bytes.TrimPrefix(l, bom))
			doc, start, size = document{text: t, line: line}, t.data[len(t.data)-len(rest)-len(l)+skip:], len(l)-skip
		} else {
			size += len(l)
		}
		line++
	}
	flush()
	return docs
}

// withoutBOM removes a byte order mark from the start of a document, after white space.
func withoutBOM(data []byte) []byte {
	text := bytes.TrimLeft(data, " \t\r\n")
	if !bytes.HasPrefix(text, bom) {
		return data
	}
	return slices.Concat(data[:len(data)-len(text)], text[len(bom):])
}

// markerLen is the length of the document marker that a line starts with, 0 if it does not. Templates that trim white
// space leave "---# comment" and "---apiVersion: v1" behind, which Helm cuts, too.
func markerLen(line []byte, template bool) int {
	if template && bytes.HasPrefix(line, []byte("---")) {
		return 3
	}
	if !bytes.HasPrefix(line, []byte("---")) && !bytes.HasPrefix(line, []byte("...")) {
		return 0
	}
	if len(line) == 3 || line[3] == ' ' || line[3] == '\t' || line[3] == '\r' || line[3] == '\n' {
		return 3
	}
	return 0
}

// hasContent says whether a document is more than comments and white space.
func hasContent(data []byte) bool {
	for line := range bytes.Lines(data) {
		if l := bytes.TrimSpace(line); len(l) > 0 && l[0] != '#' {
			return true
		}
	}
	return false
}

// decodeDocument reads one document: no object if it is null, several if it is a List.
func decodeDocument(d *document, limits Limits) ([]object, error) {
	if isJSON(d) {
		return decodeJSON(d, limits)
	}
	value, err := parseYAML(d)
	if err != nil {
		return nil, err
	}
	c := converter{depth: limits.Depth, bytes: 4 * limits.Document}
	value, err = c.convert(value, 0)
	if err != nil {
		return nil, d.at(0, "%s", err)
	}
	return toObjects(d, value)
}

// parseYAML parses one document strictly, with the library and the semantics of kubectl (YAML 1.1).
func parseYAML(d *document) (any, error) {
	var value any
	dec := yaml.NewDecoder(bytes.NewReader(d.data))
	dec.SetStrict(!bytes.Contains(d.data, []byte("<<")))
	if err := dec.Decode(&value); err != nil {
		return nil, yamlError(d, err)
	}
	if bytes.Contains(d.data, []byte("<<")) {
		// A key that overrides a merged one is no duplicate, but the strict decoder takes it for one.
		if err := refuseDuplicateKeys(d); err != nil {
			return nil, err
		}
	}
	var more any
	if err := dec.Decode(&more); err == nil {
		return nil, d.at(0, "a second document follows after an unusual line break: use line feeds")
	}
	return value, nil
}

var (
	yamlLine      = regexp.MustCompile(`line (\d+): `)
	yamlDuplicate = regexp.MustCompile(`^key (.*) already set in map$`)
	scannerForm   = regexp.MustCompile(`^(found|could not find|mapping values|mapping keys|block|control characters)`)
	secretKind    = regexp.MustCompile(`(?m)["']?kind["']?[ \t]*:[ \t]*["']?Secret(List)?\b`)
)

// yamlError makes an error of the YAML library's: each line of it that names a place is a problem of its own.
func yamlError(d *document, err error) error {
	var typed *yaml.TypeError
	messages := []string{strings.TrimPrefix(err.Error(), "yaml: ")}
	if errors.As(err, &typed) {
		messages = typed.Errors
	}
	secret := secretKind.Match(d.data)
	lines := 1 + bytes.Count(bytes.TrimRight(d.data, "\n"), []byte("\n"))
	var errs []error
	for _, m := range messages[:min(len(messages), maxErrors)] {
		line := 0
		if at := yamlLine.FindStringSubmatchIndex(m); at != nil && at[0] == 0 {
			line, _ = strconv.Atoi(m[at[2]:at[3]])
			m = m[at[1]:]
		}
		if strings.HasPrefix(m, "did not find expected") || line == 0 && scannerForm.MatchString(m) {
			line++ // the library counts these from 0, and leaves 0 out
		}
		errs = append(errs, d.at(min(line, lines), "%s", explainYAML(d, m, secret)))
	}
	return join(errs)
}

// explainYAML says in words what the YAML library means, and quotes nothing of a Secret.
func explainYAML(d *document, message string, secret bool) string {
	if m := yamlDuplicate.FindStringSubmatch(message); m != nil {
		return duplicateKey(m[1], secret)
	}
	switch {
	case strings.Contains(message, "cannot start any token") && hasTabIndent(d.data):
		return "a tab is used for indentation: use spaces"
	case strings.HasPrefix(message, "invalid map key"):
		return "a map's key is a map or a list"
	case strings.HasPrefix(message, "unknown anchor") && secret:
		return "not valid YAML: unknown anchor"
	case strings.Contains(message, "excessive aliasing"):
		return "aliases expand to too much"
	case strings.Contains(message, "did not find expected <document start>") && bytes.HasPrefix(d.data, []byte("%")):
		return "a directive (%) is not accepted: remove it"
	}
	return "not valid YAML: " + message
}

func duplicateKey(quoted string, secret bool) string {
	if secret {
		return "a key is set twice"
	}
	return "key " + quoted + " is set twice"
}

func hasTabIndent(data []byte) bool {
	for line := range bytes.Lines(data) {
		if bytes.HasPrefix(bytes.TrimLeft(line, " "), []byte("\t")) {
			return true
		}
	}
	return false
}

// toObjects takes Lists apart, as kubectl does, and checks that everything is an object.
func toObjects(d *document, value any) ([]object, error) {
	if value == nil {
		return nil, nil
	}
	fields, ok := value.(map[string]any)
	if !ok {
		return nil, d.at(0, "not an object but %s", typeName(value))
	}
	k, _ := fields["kind"].(string)
	items, ok := fields["items"].([]any)
	if !ok || !strings.HasSuffix(k, "List") || d.values {
		return []object{{d, fields}}, nil
	}
	var out []object
	for i, item := range items {
		child, ok := item.(map[string]any)
		if !ok {
			return nil, d.at(0, "item %d of the %s is not an object but %s", i+1, k, typeName(item))
		}
		inheritKind(fields, child, strings.TrimSuffix(k, "List"))
		objects, err := toObjects(d, child)
		if err != nil {
			return nil, err
		}
		out = append(out, objects...)
	}
	return out, nil
}

// inheritKind gives an item of a typed list (ConfigMapList) the kind that it may leave out.
func inheritKind(list, item map[string]any, k string) {
	if _, ok := item["kind"]; ok || k == "" {
		return
	}
	item["kind"] = k
	if _, ok := item["apiVersion"]; !ok {
		item["apiVersion"] = list["apiVersion"]
	}
}

func typeName(v any) string {
	switch v.(type) {
	case []any:
		return "a list"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case nil:
		return "null"
	case map[string]any:
		return "a map"
	}
	return "a number"
}
