package remote

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	fastjson "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "k8s.io/apimachinery/pkg/util/json"
)

// checkJSON refuses an answer of another content type, such as a proxy's page.
func checkJSON(resp *http.Response) error {
	if isJSON(resp) {
		return nil
	}
	return fmt.Errorf("%w: its content type is %q, not JSON", errUndecodable, printable(resp.Header.Get("Content-Type")))
}

// discard reads the answer to its end, so that its connection can be used again and a broken one is noticed.
func discard(resp *http.Response) error {
	if !isProtobuf(resp) {
		if err := checkJSON(resp); err != nil {
			return err
		}
	}
	_, err := io.Copy(io.Discard, resp.Body)
	return err
}

// decodeInto decodes an answer into any JSON type, which is overwritten. One of metadata may be protobuf.
func decodeInto(into any) decoder {
	meta, _ := into.(*metav1.PartialObjectMetadata)
	return func(resp *http.Response) error {
		isProto := meta != nil && isProtobuf(resp)
		if !isProto {
			if err := checkJSON(resp); err != nil {
				return err
			}
		}
		b := bodies.Get().(*bytes.Buffer)
		defer func() {
			if b.Cap() <= maxPooledBody {
				b.Reset()
				bodies.Put(b)
			}
		}()
		if n := resp.ContentLength; n > 0 && n <= maxObjectBody {
			b.Grow(int(n) + bytes.MinRead)
		}
		if isProto { // of which a few bytes may decode to many
			if _, err := b.ReadFrom(io.LimitReader(resp.Body, maxWatchEvent+1)); err != nil {
				return err
			}
			if b.Len() > maxWatchEvent {
				return errBodyTooLarge
			}
			return unmarshalProtobuf(b.Bytes(), "PartialObjectMetadata", meta)
		}
		if _, err := b.ReadFrom(resp.Body); err != nil {
			return err
		}
		return unmarshal(b.Bytes(), into)
	}
}

// bodies are buffers for answers, which no decoded object refers to.
var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// maxPooledBody bounds what is kept for the next answer.
const maxPooledBody = 64 << 10

// unmarshal decodes JSON. Unstructured objects keep integers, as apimachinery's do.
func unmarshal(b []byte, into any) error {
	u, ok := into.(*unstructured.Unstructured)
	if !ok {
		if m, isMeta := into.(*metav1.PartialObjectMetadata); isMeta {
			*m = metav1.PartialObjectMetadata{}
			return undecodable(fastjson.Unmarshal(b, m, fast))
		}
		return truncated(json.Unmarshal(b, into), b)
	}
	var content map[string]any
	if err := kjson.Unmarshal(b, &content); err != nil {
		return truncated(err, b)
	}
	if content == nil {
		return fmt.Errorf("%w: it is null", errUndecodable)
	}
	u.Object = content
	return nil
}

// truncated tells JSON that ends early, which the decoders report as a syntax error at its end, from JSON that is wrong.
func truncated(err error, b []byte) error {
	if err == nil {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	var whole json.RawMessage
	if e := dec.Decode(&whole); e == io.EOF || e == io.ErrUnexpectedEOF {
		return io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%w: %w", errUndecodable, err)
}

// object decodes one object of a resource for the forms that Get, Create, Apply and Patch take.
func object(into any, gvk schema.GroupVersionKind) decoder {
	switch o := into.(type) {
	case nil:
		return discard
	case *metav1.PartialObjectMetadata:
		return func(resp *http.Response) error {
			if err := decodeInto(o)(resp); err != nil {
				return err
			}
			o.SetGroupVersionKind(gvk)
			return named(o.Name)
		}
	case *unstructured.Unstructured:
		return func(resp *http.Response) error {
			if err := decodeInto(o)(resp); err != nil {
				return err
			}
			return named(o.GetName())
		}
	}
	return decodeInto(into)
}

// named refuses an answer that is no object.
func named(name string) error {
	if name == "" {
		return fmt.Errorf("%w: it is no object", errUndecodable)
	}
	return nil
}

// acceptFor is the form to ask for.
func acceptFor(into any) string {
	switch into.(type) {
	case nil, *metav1.PartialObjectMetadata:
		return acceptMetadata
	}
	return acceptJSON
}

// page is what is kept of one page of a list, apart from its items.
type page struct {
	metav1.ListMeta
	hasItems bool
}

// fast decodes as API servers encode: twice as fast as encoding/json, and no stricter.
var fast = fastjson.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// decodePage decodes a list item by item: item is called for each one and must decode it. A list that ends early, or
// has no items field, is io.ErrUnexpectedEOF.
func decodePage(r io.Reader, item func(*jsontext.Decoder) error) (page, error) {
	var p page
	dec := jsontext.NewDecoder(r, fast)
	if err := expect(dec, '{'); err != nil {
		return p, err
	}
	for dec.PeekKind() == '"' {
		key, err := dec.ReadToken()
		if err != nil {
			return p, undecodable(err)
		}
		if err := p.field(dec, key.String(), item); err != nil {
			return p, err
		}
	}
	if err := expect(dec, '}'); err != nil {
		return p, err
	}
	if !p.hasItems {
		return p, io.ErrUnexpectedEOF
	}
	return p, atEnd(dec)
}

func (p *page) field(dec *jsontext.Decoder, key string, item func(*jsontext.Decoder) error) error {
	switch key {
	case "metadata":
		return undecodable(fastjson.UnmarshalDecode(dec, &p.ListMeta))
	case "items":
		p.hasItems = true
		return decodeItems(dec, item)
	}
	return undecodable(dec.SkipValue())
}

func decodeItems(dec *jsontext.Decoder, item func(*jsontext.Decoder) error) error {
	start, err := dec.ReadToken()
	if err != nil {
		return undecodable(err)
	}
	switch start.Kind() {
	case 'n':
		return nil // "items": null is how an empty list may look
	case '[':
	default:
		return fmt.Errorf("%w: items is no list", errUndecodable)
	}
	for kind := dec.PeekKind(); kind != ']' && kind != 0; kind = dec.PeekKind() {
		if err := item(dec); err != nil {
			return undecodable(err)
		}
	}
	return expect(dec, ']')
}

func expect(dec *jsontext.Decoder, kind jsontext.Kind) error {
	token, err := dec.ReadToken()
	if err != nil {
		return undecodable(err)
	}
	if token.Kind() != kind {
		return fmt.Errorf("%w: it is no list", errUndecodable)
	}
	return nil
}

// undecodable tells the end of the input in the middle of a value, which is io.ErrUnexpectedEOF, and JSON that is wrong from errors
// of reading, which are left as they are.
func undecodable(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return io.ErrUnexpectedEOF
	case errors.As(err, new(*jsontext.SyntacticError)), errors.As(err, new(*fastjson.SemanticError)):
		return fmt.Errorf("%w: %w", errUndecodable, err)
	}
	return err
}

// nextValue decodes the next of several values; false at the end of the input after one.
func nextValue(dec *json.Decoder, into any) (bool, error) {
	err := dec.Decode(into)
	if err == io.EOF {
		return false, nil
	}
	return err == nil, err
}

// atEnd reads on to the end of the answer: only there does the connection say whether it was whole.
func atEnd(dec *jsontext.Decoder) error {
	_, err := dec.ReadToken()
	switch {
	case err == io.EOF: //nolint:errorlint // nothing wraps it where nothing was wrong
		return nil
	case err == nil, errors.As(err, new(*jsontext.SyntacticError)) && !errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: something follows the list", errUndecodable)
	}
	return err
}
