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

// wire is one end of a conversation. It describes each type once, in the first frame that has one of it, so that not every request
// pays for that: a frame that was received must be decoded before the next is.
type wire struct {
	r       io.Reader
	w       io.Writer
	in, out bytes.Buffer
	enc     *gob.Encoder
	dec     *gob.Decoder
	most    int // bytes of the largest frame
}

// keepBuffer is how large a buffer may be that is kept for the next frame, in bytes.
const keepBuffer = 1 << 20

func newWire(r io.Reader, w io.Writer) *wire {
	c := &wire{r: r, w: w}
	c.enc, c.dec = gob.NewEncoder(&c.out), gob.NewDecoder(&c.in)
	return c
}

// send sends one frame.
func (c *wire) send(frame byte, v any) error {
	if c.out.Cap() > keepBuffer {
		c.out = bytes.Buffer{}
	}
	c.out.Reset()
	c.out.Write([]byte{frame, 0, 0, 0, 0})
	if err := c.enc.Encode(v); err != nil {
		return fmt.Errorf("encoding a frame: %w", err)
	}
	size := c.out.Len() - 5
	c.most = max(c.most, size)
	if size > maxFrame {
		return fmt.Errorf("encoding a frame: %d bytes are more than %d", size, maxFrame)
	}
	binary.BigEndian.PutUint32(c.out.Bytes()[1:], uint32(size))
	_, err := c.w.Write(c.out.Bytes())
	return err
}

// receive receives one frame's type and content, which decode decodes. The error is io.EOF if there is none.
func (c *wire) receive() (byte, error) {
	if c.in.Cap() > keepBuffer {
		c.in = bytes.Buffer{}
	}
	c.in.Reset()
	var head [5]byte
	if _, err := io.ReadFull(c.r, head[:]); err != nil {
		return 0, err
	}
	size := binary.BigEndian.Uint32(head[1:])
	if size > maxFrame {
		return 0, fmt.Errorf("reading a frame: %d bytes are more than %d", size, maxFrame)
	}
	c.most = max(c.most, int(size))
	if _, err := io.CopyN(&c.in, c.r, int64(size)); err != nil { // grows with what arrives, whatever the head promises
		return 0, io.ErrUnexpectedEOF
	}
	return head[0], nil
}

// decode decodes the content of the frame that was received. v must be new: what a frame leaves out stays.
func (c *wire) decode(v any) error {
	if err := c.dec.Decode(v); err != nil {
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
