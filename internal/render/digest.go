package render

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"

	"github.com/kyma-project/mothership/internal/render/post"
)

// rendererVersion is part of every input digest: change it with every change of what a request renders to, including
// new versions of Helm and kustomize.
const rendererVersion = "1 helm/v4.3.1 kustomize/v0.21.1"

// InputDigest names what a request renders to, without rendering it: "hmac-sha256:<hex>" under key over the source, the
// merged values, the module's identity, the class of capabilities, the renderer's version, and everything else in the
// request. Because it is keyed, it may be stored where values may not. Equal digests mean equal bundles; a request that
// cannot be rendered has a digest, too.
func InputDigest(key []byte, r Request) string {
	mac := hmac.New(sha256.New, key)
	writeSized(mac, rendererVersion)
	if r.Tree != nil {
		writeSized(mac, r.Tree.Digest)
		writeSized(mac, cmp.Or(r.Tree.Root, "."))
	}
	writeSized(mac, string(r.Kind))
	writeSized(mac, r.Module)
	writeSized(mac, r.Namespace)
	class, err := r.Capabilities.normalise()
	if err != nil {
		class = r.Capabilities
	}
	writeSized(mac, class.KubeVersion)
	for _, api := range class.APIVersions {
		writeSized(mac, api)
	}
	writeSized(mac, "end of APIs")
	writeSized(mac, r.PerRuntime)
	if r.PerRuntime != "" {
		writeSized(mac, string(r.Secret))
	}
	writeSized(mac, r.ScopeDigest)
	writeSized(mac, string(encodeValues(r.Values)))
	if r.Kind == Kustomize && r.Tree != nil && mayHaveBases(r.Tree) {
		writeSized(mac, r.SourceHost) // whether a base may be fetched depends on it
	}
	if !post.IsZero(r.PostRender) {
		options, _ := json.Marshal(r.PostRender) // strings and maps of them, which JSON sorts
		writeSized(mac, string(options))
	}
	return "hmac-sha256:" + hex.EncodeToString(mac.Sum(nil))
}

// writeSized writes a string with its length, so that no two sequences of strings are written alike.
func writeSized(w io.Writer, s string) {
	_ = binary.Write(w, binary.BigEndian, uint64(len(s))) // hashes and buffers do not fail
	_, _ = io.WriteString(w, s)
}

// encodeValues writes values in one form only: keys sorted, each value with its type, because templates can tell the
// integer 1 from the float 1.0. (JSON cannot.) Values of types that Render refuses are written somehow.
func encodeValues(values map[string]any) []byte {
	var b bytes.Buffer
	if values == nil {
		values = map[string]any{}
	}
	encodeValue(&b, values, 0)
	return b.Bytes()
}

func encodeValue(b *bytes.Buffer, v any, depth int) {
	if depth > maxValueDepth {
		b.WriteByte('?')
		return
	}
	switch v := v.(type) {
	case nil:
		b.WriteByte('n')
	case bool:
		b.WriteByte('b')
		_ = binary.Write(b, binary.BigEndian, v)
	case int:
		encodeValue(b, int64(v), depth)
	case int32:
		encodeValue(b, int64(v), depth)
	case int64:
		b.WriteByte('i')
		_ = binary.Write(b, binary.BigEndian, v)
	case float64:
		b.WriteByte('f')
		_ = binary.Write(b, binary.BigEndian, math.Float64bits(v))
	case string:
		b.WriteByte('s')
		writeSized(b, v)
	case []any:
		b.WriteByte('l')
		_ = binary.Write(b, binary.BigEndian, uint64(len(v)))
		for _, item := range v {
			encodeValue(b, item, depth+1)
		}
	case map[string]any:
		b.WriteByte('m')
		_ = binary.Write(b, binary.BigEndian, uint64(len(v)))
		for _, k := range sortedKeysOf(v) {
			writeSized(b, k)
			encodeValue(b, v[k], depth+1)
		}
	default:
		if clone, err := cloneValue(v, depth); err == nil {
			encodeValue(b, clone, depth)
			return
		}
		b.WriteByte('?')
		writeSized(b, fmt.Sprintf("%T %#v", v, v))
	}
}

// decodeValues reads what encodeValues wrote.
func decodeValues(data []byte) (map[string]any, error) {
	d := valueDecoder{bytes.NewReader(data)}
	v, err := d.value(0)
	if err != nil {
		return nil, fmt.Errorf("reading values: %w", err)
	}
	values, ok := v.(map[string]any)
	if !ok || d.r.Len() > 0 {
		return nil, fmt.Errorf("reading values: not one map")
	}
	return values, nil
}

type valueDecoder struct{ r *bytes.Reader }

func (d valueDecoder) value(depth int) (any, error) {
	tag, err := d.r.ReadByte()
	if err != nil || depth > maxValueDepth {
		return nil, io.ErrUnexpectedEOF
	}
	switch tag {
	case 'n':
		return nil, nil
	case 'b':
		b, err := d.r.ReadByte()
		return b == 1, err
	case 'i':
		n, err := d.number()
		return int64(n), err
	case 'f':
		n, err := d.number()
		return math.Float64frombits(n), err
	case 's':
		return d.text()
	case 'l':
		return d.list(depth)
	case 'm':
		return d.table(depth)
	}
	return nil, fmt.Errorf("unknown type %q", tag)
}

func (d valueDecoder) number() (n uint64, err error) {
	err = binary.Read(d.r, binary.BigEndian, &n)
	return n, err
}

func (d valueDecoder) text() (string, error) {
	n, err := d.number()
	if err != nil || n > uint64(d.r.Len()) {
		return "", io.ErrUnexpectedEOF
	}
	b := make([]byte, n)
	_, err = io.ReadFull(d.r, b)
	return string(b), err
}

func (d valueDecoder) list(depth int) ([]any, error) {
	n, err := d.number()
	if err != nil || n > uint64(d.r.Len()) {
		return nil, io.ErrUnexpectedEOF
	}
	out := make([]any, n)
	for i := range out {
		if out[i], err = d.value(depth + 1); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (d valueDecoder) table(depth int) (map[string]any, error) {
	n, err := d.number()
	if err != nil || n > uint64(d.r.Len()) {
		return nil, io.ErrUnexpectedEOF
	}
	out := make(map[string]any, n)
	for range n {
		key, err := d.text()
		if err != nil {
			return nil, err
		}
		if out[key], err = d.value(depth + 1); err != nil {
			return nil, err
		}
	}
	return out, nil
}
