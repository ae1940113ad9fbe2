package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kyma-project/mothership/internal/cluster"
)

// mostAhead is how many requests are under way over one connection of HTTP/1.1, whose server takes up one at a time. All of them together
// have no more bytes than mostInTurn: they are written before the first answer is read.
const mostAhead = 8

// ApplyEach implements cluster.Client. In turn, requests are sent before those before them are answered (RFC 9112, 9.3.2).
//
// What is left unanswered when a connection ends may still be carried out, one request after the other. So each says how long the server
// may take for it: together no longer than one request may. Nothing is repeated before that time is over.
func (c *Client) ApplyEach(ctx context.Context, objects []cluster.Application, answered cluster.Answered) {
	for first := 0; first < len(objects); {
		n, on := c.applyAhead(ctx, objects[first:], func(i int, answer *metav1.PartialObjectMetadata, err error) bool {
			return answered(first+i, answer, err)
		})
		if n == 0 { // the first is by itself, or cannot be sent ahead
			var answer metav1.PartialObjectMetadata
			o := &objects[first]
			n, on = 1, answered(first, &answer, c.Apply(ctx, o.Resource, o.Namespace, o.Name, o.Body, o.Options, &answer))
		}
		if !on {
			return
		}
		first += n
	}
}

// applyAhead applies the first of some objects, as many as can be sent ahead at once and n at least, which may be 0. on is what answered
// has said.
func (c *Client) applyAhead(ctx context.Context, objects []cluster.Application, answered cluster.Answered) (n int, on bool) {
	b := c.batchOf(ctx, objects)
	if len(b) < 2 {
		return 0, true
	}
	n, over := c.sendAhead(ctx, b)
	if delay := time.Until(over); n > 0 && delay > 0 {
		_ = c.rest(ctx, delay) // where that is the end of the context, so is all that follows
	}
	for i := range b[:n] {
		a := &b[i]
		if err := c.repeat(ctx, a.request, a.decode, a.failed); !answered(i, &a.answer, err) {
			return n, false
		}
	}
	return n, true
}

// ahead is a request that is sent ahead, and what became of its first attempt.
type ahead struct {
	*request
	decode decoder
	answer metav1.PartialObjectMetadata
	failed *Error
}

// batchOf are requests for the first of some objects, as many as may be sent ahead.
func (c *Client) batchOf(ctx context.Context, objects []cluster.Application) []ahead {
	if !cluster.IsInTurn(ctx) || !c.gate.sendsAhead() {
		return nil
	}
	b := make([]ahead, 0, min(len(objects), mostAhead))
	for i := range objects[:cap(b)] {
		q, err := applyRequest(&objects[i], acceptMetadata)
		if err != nil {
			break
		}
		b = append(b, ahead{request: q})
		b[i].decode = ofObject(&objects[i], &b[i].answer)
	}
	return b
}

// ofObject decodes the answer to a request, which must be of its object: else something has mixed up answers.
func ofObject(o *cluster.Application, into *metav1.PartialObjectMetadata) decoder {
	decode := object(into, o.Resource.GVK())
	return func(resp *http.Response) error {
		if err := decode(resp); err != nil {
			return err
		}
		if into.Name != o.Name || into.Namespace != o.Namespace {
			return fmt.Errorf("%w: it is of another object", errUndecodable)
		}
		return nil
	}
}

// sendsAhead says whether requests can be sent before those before them are answered.
func (g *gate) sendsAhead() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.current.ahead() != nil
}

// ahead sends requests ahead; nil where that cannot be.
func (gen *generation) ahead() *protocols {
	p, ok := gen.transport.(*protocols)
	if !ok || p.never.Load() || p.inTurn.single.Load() {
		return nil
	}
	return p
}

// sendAhead sends requests over one connection before the first is answered. They take one slot, since the server takes up one at a time.
// done is how many have an outcome, the first ones: none where requests cannot be sent like that, or may not be sent at all. Before over,
// others may still be carried out.
func (c *Client) sendAhead(caller context.Context, b []ahead) (done int, over time.Time) {
	g := c.gate
	t := &aheadTurn{c: c, answered: g.ask(caller, false)}
	defer func() { t.answered(false) }()
	if g.enter(caller) != nil {
		return 0, over
	}
	defer func() { <-g.slots }()
	t.gen = g.acquire()
	defer g.release(t.gen)
	p := t.gen.ahead()
	if p == nil {
		return 0, over
	}
	timeout, cause := g.patience()
	ctx, end := context.WithCancelCause(caller)
	defer end(nil)
	t.end, t.cause = end, func() error { return context.Cause(ctx) }
	t.timer = time.AfterFunc(timeout, func() { end(cause) })
	defer func() { t.timer.Stop() }()

	text := texts.Get().(*bytes.Buffer)
	defer texts.Put(text)
	text.Reset()
	reqs := t.write(ctx, text, b, timeout/mostAhead)
	if len(reqs) == 0 {
		return 0, over
	}
	conn, err := p.inTurn.take(reqs[0])
	switch {
	case errors.Is(err, errNotInTurn) || refusesProtocol(err):
		p.never.Store(true)
		return 0, over
	case err != nil:
		g.counter.add(VerbApply, 1)
		t.failed(caller, &b[0], err)
		return 1, over
	}
	g.counter.add(VerbApply, len(reqs))
	over = time.Now().Add(timeout)
	stop := context.AfterFunc(ctx, conn.interrupt)
	how := turnLost // if something panics
	defer func() { p.inTurn.leave(conn, stop() && how == turnWhole) }()
	done, how = t.converse(caller, conn, text.Bytes(), reqs, b)
	if how == turnClosed || how == turnFailed || done == len(reqs) { // a server cancels what it is doing when the connection ends, but not what comes behind that
		over = time.Time{}
	}
	if done < len(reqs) && (how == turnClosed || how == turnLost) && caller.Err() == nil {
		p.inTurn.single.Store(true)
	}
	return done, over
}

// texts are for the requests of a turn.
var texts = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// aheadTurn is a connection's turn of sendAhead.
type aheadTurn struct {
	c   *Client
	gen *generation
	// end ends the context of the requests, which timer does when the answer that is waited for does not come in time. cause is why it
	// has ended.
	end   context.CancelCauseFunc
	cause func() error
	timer *time.Timer
	// answered tells the end of the wait for that answer.
	answered func(ok bool)
}

// turnEnd is how a turn ends.
type turnEnd int

const (
	// turnWhole: all is answered, and the connection can be used again.
	turnWhole turnEnd = iota
	// turnClosed: the server has said that it takes up no more (RFC 9112, 9.6), turnFailed: because it has failed.
	turnClosed
	turnFailed
	// turnLost: an answer did not come.
	turnLost
	// turnLeft: an answer is not what it should be, or was not read to its end, or took too long to be decoded.
	turnLeft
)

// write writes the requests that may be sent now, and returns them. The server may take so long for each.
func (t *aheadTurn) write(ctx context.Context, text *bytes.Buffer, b []ahead, each time.Duration) []*http.Request {
	g := t.c.gate
	reqs := make([]*http.Request, 0, len(b))
	bound := "&timeout=" + strconv.FormatInt(max(each.Milliseconds(), 1), 10) + "ms"
	for i := range b {
		if text.Len()+len(b[i].body) > mostInTurn || i > 0 && !g.limiter.Allow() || g.admit() != nil {
			break
		}
		req, err := t.c.httpRequest(ctx, b[i].request)
		if err != nil {
			break
		}
		req.URL.RawQuery += bound
		before := text.Len()
		if err := t.gen.address(req).Write(text); err != nil || text.Len() > mostInTurn {
			text.Truncate(before)
			break
		}
		reqs = append(reqs, req)
	}
	return reqs
}

// failed is told that a request got no answer.
func (t *aheadTurn) failed(ctx context.Context, a *ahead, err error) {
	a.failed = t.c.outcome(ctx, a.request, a.decode, nil, err, t.cause)
}

// converse sends what was written and takes the answers. done is how many have an outcome.
func (t *aheadTurn) converse(ctx context.Context, conn *turnConn, text []byte, reqs []*http.Request, b []ahead) (done int, how turnEnd) {
	if _, err := conn.conn.Write(text); err != nil {
		t.failed(ctx, &b[0], err)
		return 1, turnLost
	}
	for i, req := range reqs {
		if i > 0 && !t.next(ctx) {
			return i, turnLeft
		}
		resp, err := conn.answer(req)
		if err != nil {
			if i > 0 && !isOfTransport(err) {
				err = errMalformed
			}
			t.failed(ctx, &b[i], err)
			return i + 1, turnLost
		}
		t.c.gate.heard.Store(time.Now().UnixNano())
		t.answered(works(resp.StatusCode))
		content := &wholeBody{Reader: resp.Body, ended: resp.Body == http.NoBody}
		bounded := &body{ReadCloser: content, left: boundOf(VerbApply), gate: t.c.gate, gen: t.gen}
		bounded.ended.Store(true) // what ends with a request, ends with all of them
		closes := resp.Close
		resp.Body = bounded
		b[i].failed = t.c.outcome(ctx, b[i].request, b[i].decode, resp, nil, t.cause)
		switch {
		case closes && resp.StatusCode >= http.StatusInternalServerError:
			return i + 1, turnFailed
		case closes:
			return i + 1, turnClosed
		case !content.ended || b[i].failed != nil && b[i].failed.Code/100 == 2:
			return i + 1, turnLeft
		}
	}
	return len(reqs), turnWhole
}

// next begins the wait for the next answer, unless the last one took too long.
func (t *aheadTurn) next(ctx context.Context) bool {
	if !t.timer.Stop() {
		return false
	}
	t.timer = time.AfterFunc(t.c.gate.timeout, func() { t.end(errDeadline) })
	t.answered = t.c.gate.ask(ctx, true)
	return true
}

// errMalformed stands for errors that quote what was received: behind an answer of a wrong length, that may be the rest of a Secret.
var errMalformed = errors.New("what follows the last answer is no answer")

// isOfTransport says whether an error is not about what was received.
func isOfTransport(err error) bool {
	return errors.As(err, new(net.Error)) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, errHeaderTooLarge) || errors.Is(err, errEarly)
}

// wholeBody knows whether it was read to its end, and is not when it is closed.
type wholeBody struct {
	io.Reader
	ended bool
}

// Read reads on.
func (b *wholeBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.ended = b.ended || err == io.EOF //nolint:errorlint // nothing wraps it where the body is at its end
	return n, err
}

// Close does nothing: what is left is not waited for.
func (b *wholeBody) Close() error { return nil }
