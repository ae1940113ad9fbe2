package render

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/bundle"
	"github.com/kyma-project/mothership/internal/kind"
	"github.com/kyma-project/mothership/internal/source"
)

// Parent and child speak in frames over the child's standard input and output: one byte for the type, four for the
// length, then a gob. The parent sends a request. The child answers with a bundle or with errors; before, if the
// request has a catalogue, it asks once for the scopes of the kinds that it found. After the answer it says how much memory
// it holds, and waits for the next request, or for the end of its input.
const (
	frameRequest byte = 'Q'
	frameKinds   byte = 'K'
	frameScopes  byte = 'S'
	frameBundle  byte = 'B'
	frameErrors  byte = 'E'
	frameDone    byte = 'D'
)

// maxFrame bounds one frame in either direction, in bytes.
const maxFrame = 256 << 20

// wireRequest is a Request without its function, and with values in a form that keeps their types.
type wireRequest struct {
	Tree       source.Tree
	Kind       Kind
	Module     string
	Namespace  string
	Values     []byte
	Caps       Capabilities
	PerRuntime string
	Secret     []byte
	HasScopes  bool
	PostRender v1beta2.PostRender
	Limits     Limits
	Memory     int64
}

// wireError is one error of a bundle, flat.
type wireError struct {
	Module, Origin string
	Document, Line int
	Rendered       bool
	Problem        string
	Kind           int // index in sentinels
	Violations     []Violation
}

func newWireRequest(r *Request, limits Limits, memory int64) (*wireRequest, error) {
	values, err := cloneValues(r.Values)
	if err != nil {
		return nil, err
	}
	return &wireRequest{
		Tree: *r.Tree, Kind: r.Kind, Module: r.Module, Namespace: r.Namespace, Values: encodeValues(values),
		Caps: r.Capabilities, PerRuntime: r.PerRuntime, Secret: r.Secret, HasScopes: r.ScopeOf != nil,
		PostRender: r.PostRender, Limits: limits, Memory: memory,
	}, nil
}

func (w *wireRequest) request() (*Request, error) {
	values, err := decodeValues(w.Values)
	if err != nil {
		return nil, err
	}
	return &Request{
		Tree: &w.Tree, Kind: w.Kind, Module: w.Module, Namespace: w.Namespace, Values: values,
		Capabilities: w.Caps, PerRuntime: w.PerRuntime, Secret: w.Secret, PostRender: w.PostRender,
	}, nil
}

// writeFrame writes one frame.
func writeFrame(w io.Writer, frame byte, v any) error {
	var b bytes.Buffer
	b.Write([]byte{frame, 0, 0, 0, 0})
	if err := gob.NewEncoder(&b).Encode(v); err != nil {
		return fmt.Errorf("encoding a frame: %w", err)
	}
	if b.Len()-5 > maxFrame {
		return fmt.Errorf("encoding a frame: %d bytes are more than %d", b.Len(), maxFrame)
	}
	binary.BigEndian.PutUint32(b.Bytes()[1:], uint32(b.Len()-5))
	_, err := w.Write(b.Bytes())
	return err
}

// readFrame reads one frame's type and content.
func readFrame(r io.Reader) (byte, []byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	size := binary.BigEndian.Uint32(head[1:])
	if size > maxFrame {
		return 0, nil, fmt.Errorf("reading a frame: %d bytes are more than %d", size, maxFrame)
	}
	var b bytes.Buffer // grows with what arrives, whatever the head promises
	if _, err := io.CopyN(&b, r, int64(size)); err != nil {
		return 0, nil, io.ErrUnexpectedEOF
	}
	return head[0], b.Bytes(), nil
}

// decodeFrame reads the content of a frame.
func decodeFrame(data []byte, v any) error {
	if err := gob.NewDecoder(bytes.NewReader(data)).Decode(v); err != nil {
		return fmt.Errorf("decoding a frame: %w", err)
	}
	return nil
}

// flatten takes errors apart for the wire.
func flatten(err error) []wireError {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var out []wireError
		for _, e := range joined.Unwrap() {
			out = append(out, flatten(e)...)
		}
		return out
	}
	w := wireError{Problem: err.Error()}
	kindOf := sentinelOf(err)
	var e *Error
	var v *ValuesError
	switch {
	case errors.As(err, &e):
		w = wireError{Module: e.Module, Origin: e.Origin, Document: e.Document, Line: e.Line, Rendered: e.Rendered, Problem: e.Problem}
	case errors.As(err, &v):
		w = wireError{Module: v.Module, Violations: v.Violations}
	}
	for i, s := range sentinels {
		if s == kindOf { //nolint:errorlint // an identity
			w.Kind = i
		}
	}
	return []wireError{w}
}

// unflatten is the opposite of flatten.
func unflatten(errs []wireError) error {
	var out []error
	for _, w := range errs {
		if len(w.Violations) > 0 {
			out = append(out, &ValuesError{Module: w.Module, Violations: w.Violations})
			continue
		}
		e := &Error{Module: w.Module, Origin: w.Origin, Document: w.Document, Line: w.Line, Rendered: w.Rendered, Problem: w.Problem, Err: ErrMalformed}
		if w.Kind >= 0 && w.Kind < len(sentinels) {
			e.Err = sentinels[w.Kind]
		}
		out = append(out, e)
	}
	if len(out) == 0 {
		return &Error{Problem: "the rendering process gave neither a bundle nor an error", Err: ErrCrash}
	}
	if len(out) == 1 {
		return out[0]
	}
	return errors.Join(out...)
}

// scopes answers a child's question.
func scopes(kinds []schema.GroupKind, of func(schema.GroupKind) kind.Scope) []kind.Scope {
	out := make([]kind.Scope, len(kinds))
	for i, gk := range kinds {
		out[i] = of(gk)
	}
	return out
}

// bundle frames carry the bundle as it is.
type wireBundle = bundle.Bundle
