package apply

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"sort"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kyma-project/mothership/internal/bundle"
)

// fields is a decoded fieldsV1 tree (KEP-555, structured-merge-diff's serialisation): "f:<name>" is a field,
// "k:{...}" an item of a list by its keys, "v:<json>" an item of a set, "i:<n>" one by index, "." the element itself.
type fields map[string]fields

// leaf says that the element is owned as a whole: it is atomic, a scalar, or empty.
func (f fields) leaf() bool { return len(f) == 0 }

// step is one step of a path into an object.
type step struct {
	// token of a JSON pointer: a key, or the index of a list item.
	token string
	// item is the list item that the step leads to, nil for a field.
	item any
	// list says that the step is an item of a list.
	list bool
}

// fieldPath leads from the root of an object to a field.
type fieldPath []step

// pointer is the path as a JSON pointer (RFC 6901), list items as "*": the form in which fields are learnt and yielded.
func (p fieldPath) pointer() string {
	var b strings.Builder
	for _, s := range p {
		b.WriteByte('/')
		if s.list {
			b.WriteByte('*')
			continue
		}
		b.WriteString(strings.ReplaceAll(strings.ReplaceAll(s.token, "~", "~0"), "/", "~1"))
	}
	return b.String()
}

// String is the path for people: .spec.containers[name=app].image.
func (p fieldPath) String() string {
	var b strings.Builder
	for _, s := range p {
		switch {
		case s.list:
			b.WriteString("[" + itemLabel(s) + "]")
		case strings.ContainsAny(s.token, "./"):
			b.WriteString("[" + s.token + "]")
		default:
			b.WriteString("." + s.token)
		}
	}
	return b.String()
}

func itemLabel(s step) string {
	if m, ok := s.item.(map[string]any); ok {
		for _, key := range []string{"name", "key", "containerPort", "port", "type", "mountPath", "uid", "ip"} {
			if v, ok := m[key]; ok {
				return fmt.Sprintf("%s=%v", key, v)
			}
		}
	}
	return s.token
}

func (p fieldPath) with(s step) fieldPath { return append(p[:len(p):len(p)], s) }

// coverage finds the leaves of a value that a fieldsV1 tree does not own.
type coverage struct{ missing []fieldPath }

// uncovered returns the paths in obj, an object as it is sent, that owned does not cover. Fields that are the object's
// identity are left out, and so are nulls, which own nothing.
func uncovered(obj map[string]any, owned fields) []fieldPath {
	var c coverage
	for _, key := range sortedKeys(obj) {
		switch key {
		case "apiVersion", "kind":
		case "metadata":
			c.metadata(obj[key], owned["f:metadata"])
		default:
			c.field(obj, key, owned, nil)
		}
	}
	return c.missing
}

// leaves are the paths of all leaves of an object as it is sent, but for its identity.
func leaves(obj map[string]any) []fieldPath {
	var out []fieldPath
	var walk func(v any, at fieldPath)
	walk = func(v any, at fieldPath) {
		switch v := v.(type) {
		case map[string]any:
			for _, key := range sortedKeys(v) {
				walk(v[key], at.with(step{token: key}))
			}
		case []any:
			for i, item := range v {
				walk(item, at.with(step{token: strconv.Itoa(i), item: item, list: true}))
			}
		default:
			out = append(out, at)
		}
	}
	walk(obj, nil)
	return out
}

func (c *coverage) metadata(v any, owned fields) {
	meta, _ := v.(map[string]any)
	at := fieldPath{{token: "metadata"}}
	for _, key := range sortedKeys(meta) {
		if key != "name" && key != "namespace" {
			c.field(meta, key, owned, at)
		}
	}
}

func (c *coverage) field(obj map[string]any, key string, owned fields, at fieldPath) {
	child, ok := owned["f:"+key]
	c.walk(obj[key], child, ok, at.with(step{token: key}))
}

func (c *coverage) walk(v any, owned fields, ok bool, at fieldPath) {
	switch v := v.(type) {
	case nil:
		return
	case map[string]any:
		if len(v) == 0 || (ok && owned.leaf()) {
			c.whole(v, ok, at)
			return
		}
		for _, key := range sortedKeys(v) {
			c.field(v, key, owned, at)
		}
	case []any:
		if !ok || owned.leaf() || len(v) == 0 {
			c.whole(v, ok, at)
			return
		}
		c.list(v, owned, at)
	default:
		if !ok {
			c.missing = append(c.missing, at)
		}
	}
}

// whole reports an element that is owned entirely or not at all. Values that are nothing but nulls own nothing.
func (c *coverage) whole(v any, ok bool, at fieldPath) {
	if ok || isVoid(v) {
		return
	}
	c.missing = append(c.missing, at)
}

func isVoid(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		for _, e := range v {
			if !isVoid(e) {
				return false
			}
		}
		return len(v) > 0
	}
	return false
}

func (c *coverage) list(items []any, owned fields, at fieldPath) {
	children := matchItems(items, owned)
	for i, item := range items {
		child, ok := children[i]
		c.walk(item, child, ok, at.with(step{token: strconv.Itoa(i), item: item, list: true}))
	}
}

// matchItems finds each item's node. Items whose keys are all present go first: a missing key has been defaulted by
// the server, and any value of it will do that no other item claims.
func matchItems(items []any, owned fields) map[int]fields {
	keyed := parseKeys(owned)
	matched := map[int]fields{}
	used := map[string]bool{}
	for _, exact := range []bool{true, false} {
		for i, item := range items {
			if _, done := matched[i]; done {
				continue
			}
			if name, ok := findItem(item, i, keyed, used, exact); ok {
				used[name] = true
				matched[i] = owned[name]
			}
		}
	}
	return matched
}

// itemKey is a parsed "k:", "v:" or "i:" element.
type itemKey struct {
	name  string
	keys  map[string]any // of k:
	value any            // of v:
	kind  byte
}

func parseKeys(owned fields) []itemKey {
	var out []itemKey
	for _, name := range sortedKeys(owned) {
		if len(name) < 2 || name[1] != ':' {
			continue
		}
		k := itemKey{name: name, kind: name[0]}
		var err error
		switch k.kind {
		case 'k':
			err = json.Unmarshal([]byte(name[2:]), &k.keys)
		case 'v', 'i':
			err = json.Unmarshal([]byte(name[2:]), &k.value)
		default:
			continue
		}
		if err == nil {
			out = append(out, k)
		}
	}
	return out
}

func findItem(item any, index int, keyed []itemKey, used map[string]bool, exact bool) (string, bool) {
	for _, k := range keyed {
		if used[k.name] && k.kind == 'k' {
			continue
		}
		switch k.kind {
		case 'k':
			if m, ok := item.(map[string]any); ok && keysMatch(m, k.keys, exact) {
				return k.name, true
			}
		case 'v':
			if sameScalar(item, k.value) {
				return k.name, true
			}
		case 'i':
			if sameScalar(float64(index), k.value) {
				return k.name, true
			}
		}
	}
	return "", false
}

func keysMatch(item, keys map[string]any, exact bool) bool {
	for key, want := range keys {
		got, ok := item[key]
		if !ok {
			if exact {
				return false
			}
			continue
		}
		if !sameScalar(got, want) {
			return false
		}
	}
	return true
}

func sameScalar(a, b any) bool {
	switch a.(type) {
	case map[string]any, []any:
		return false
	}
	switch b.(type) {
	case map[string]any, []any:
		return false
	}
	return a == b
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// owns says whether a tree owns the element at a path, or something above it as a whole.
func (f fields) owns(p fieldPath) bool {
	node := f
	for i, s := range p {
		if i > 0 && node.leaf() {
			return true
		}
		var child fields
		var ok bool
		if s.list {
			var name string
			index, _ := strconv.Atoi(s.token)
			keyed := parseKeys(node)
			if name, ok = findItem(s.item, index, keyed, nil, true); !ok {
				name, ok = findItem(s.item, index, keyed, nil, false)
			}
			child = node[name]
		} else {
			child, ok = node["f:"+s.token]
		}
		if !ok {
			return false
		}
		node = child
	}
	return true
}

func parseFields(f *metav1.FieldsV1) (fields, error) {
	if f == nil {
		return fields{}, nil
	}
	var tree fields
	if err := json.Unmarshal(f.GetRawBytes(), &tree); err != nil {
		return nil, fmt.Errorf("reading managedFields: %w", err)
	}
	return tree, nil
}

// ownEntry is our Apply entry of an object, nil if there is none. The manager is that of the bundle's object.
func ownEntry(meta *metav1.PartialObjectMetadata, manager string) *metav1.ManagedFieldsEntry {
	for i := range meta.ManagedFields {
		e := &meta.ManagedFields[i]
		if e.Manager == manager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == "" {
			return e
		}
	}
	return nil
}

// coverageMemo remembers the outcome of coverage checks by (bytes, fieldsV1): in a fleet most objects have the same
// two. It is bounded and safe for concurrent use.
type coverageMemo struct {
	seed maphash.Seed
	mu   sync.Mutex
	done map[memoKey][]fieldPath
}

type memoKey struct {
	digest string
	fields uint64
}

// maxMemo bounds the memo; it is emptied when full, which costs one check per object.
const maxMemo = 1 << 16

func newCoverageMemo() *coverageMemo {
	return &coverageMemo{seed: maphash.MakeSeed(), done: map[memoKey][]fieldPath{}}
}

// uncovered is uncovered of the object's bytes and an entry, remembered.
func (m *coverageMemo) uncovered(o *bundle.Object, e *metav1.ManagedFieldsEntry) ([]fieldPath, error) {
	var raw []byte
	if e.FieldsV1 != nil {
		raw = e.FieldsV1.GetRawBytes()
	}
	key := memoKey{digest: o.Digest, fields: maphash.Bytes(m.seed, raw)}
	m.mu.Lock()
	missing, ok := m.done[key]
	m.mu.Unlock()
	if ok {
		return missing, nil
	}
	owned, err := parseFields(e.FieldsV1)
	if err != nil {
		return nil, err
	}
	obj, err := decode(o.Bytes)
	if err != nil {
		return nil, err
	}
	missing = uncovered(obj, owned)
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.done) >= maxMemo {
		clear(m.done)
	}
	m.done[key] = missing
	return missing, nil
}

func decode(raw []byte) (map[string]any, error) {
	var obj map[string]any
	if err := json.Unmarshal(raw, &obj); err != nil {
		return nil, fmt.Errorf("decoding object: %w", err)
	}
	return obj, nil
}
