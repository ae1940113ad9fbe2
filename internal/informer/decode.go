package informer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// options decode as the API server encodes: what it sends was valid once, and is not ours to judge.
var options = json.JoinOptions(
	jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true),
	json.WithUnmarshalers(json.JoinUnmarshalers(
		json.UnmarshalFromFunc(func(dec *jsontext.Decoder, _ *[]metav1.ManagedFieldsEntry) error { return dec.SkipValue() }),
		json.UnmarshalFromFunc(decodeTime),
	)),
)

// decodeTime is metav1.Time's UnmarshalJSON, which decodes the string with another decoder.
func decodeTime(dec *jsontext.Decoder, t *metav1.Time) error {
	token, err := dec.ReadToken()
	if err != nil {
		return err
	}
	switch token.Kind() {
	case 'n':
		t.Time = time.Time{}
		return nil
	case '"':
		at, err := time.Parse(time.RFC3339, token.String())
		t.Time = at.Local()
		return err
	}
	return errNoTime
}

var errNoTime = errors.New("a time is no string")

// stream is a watch that is under way.
type stream[T any, O object[T]] struct {
	body   io.ReadCloser
	cancel context.CancelFunc
	out    chan watch.Event
	stop   chan struct{}
	once   sync.Once
}

// start decodes a body until it ends or Stop is called.
func start[T any, O object[T]](body io.ReadCloser, cancel context.CancelFunc) watch.Interface {
	s := &stream[T, O]{body: body, cancel: cancel, out: make(chan watch.Event), stop: make(chan struct{})}
	go s.run() // ends with the body, which Stop closes
	return s
}

// Stop ends the watch. It may be called more than once.
func (s *stream[T, O]) Stop() {
	s.once.Do(func() {
		close(s.stop)
		s.cancel()
	})
}

// ResultChan is where events come from. It is closed when the watch has ended.
func (s *stream[T, O]) ResultChan() <-chan watch.Event { return s.out }

// readAhead is how much is read at once: for each read of a few KiB, HTTP/2 tells the server that it may send as much again.
const readAhead = 32 << 10

func (s *stream[T, O]) run() {
	defer close(s.out)
	defer s.cancel()
	defer s.body.Close()
	dec := jsontext.NewDecoder(bufio.NewReaderSize(s.body, readAhead), options)
	for {
		e, err := next[T, O](dec)
		if err != nil {
			if failed := failure(err); failed != nil {
				s.send(*failed)
			}
			return
		}
		if !s.send(e) {
			return
		}
	}
}

func (s *stream[T, O]) send(e watch.Event) bool {
	select {
	case s.out <- e:
		return true
	case <-s.stop:
		return false
	}
}

// failure is what the end of a watch is reported as: nothing where it simply ended, which watches do.
func failure(err error) *watch.Event {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	status := apierrors.NewInternalError(fmt.Errorf("reading a watch: %w", err)).Status()
	return &watch.Event{Type: watch.Error, Object: &status}
}

var errNoEvent = errors.New("it is no event of a watch")

// next decodes one event: {"type": …, "object": …}, in that order or the other.
func next[T any, O object[T]](dec *jsontext.Decoder) (watch.Event, error) {
	var e watch.Event
	token, err := dec.ReadToken()
	if err != nil {
		return e, err
	}
	if token.Kind() != '{' {
		return e, errNoEvent
	}
	var early jsontext.Value // the object, where it comes before the type
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return e, err
		}
		switch field := name.String(); {
		case field == "type":
			err = json.UnmarshalDecode(dec, &e.Type, options)
		case field == "object" && e.Type == "":
			early, err = dec.ReadValue()
			early = early.Clone()
		case field == "object":
			err = decodeObject[T, O](&e, func(into any) error { return json.UnmarshalDecode(dec, into, options) })
		default:
			err = dec.SkipValue()
		}
		if err != nil {
			return e, err
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return e, err
	}
	if early != nil {
		err = decodeObject[T, O](&e, func(into any) error { return json.Unmarshal(early, into, options) })
	}
	if err == nil && e.Object == nil {
		err = errNoEvent
	}
	return e, err
}

// decodeObject decodes what an event is about: a Status for errors.
func decodeObject[T any, O object[T]](e *watch.Event, decode func(any) error) error {
	switch e.Type {
	case watch.Error:
		var status metav1.Status
		e.Object = &status
		return decode(&status)
	case watch.Added, watch.Modified, watch.Deleted, watch.Bookmark:
		obj := O(new(T))
		e.Object = obj
		if err := decode(obj); err != nil {
			return err
		}
		share(obj)
		return nil
	}
	return fmt.Errorf("%w: its type is %q", errNoEvent, e.Type)
}
