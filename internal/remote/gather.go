package remote

import (
	"context"
	"errors"
	"net"
	"os"
	"runtime"
	"sync"
	"time"
)

const (
	// mostGathered is how many bytes may wait to be sent when somebody adds to them; who comes when there are more waits.
	mostGathered = 128 << 10
	// lastWords bounds sending what waits when a connection is closed.
	lastWords = time.Second
)

// gathered has the connections that dial makes send in few system calls what many write at the same time. HTTP/2 flushes after the
// headers and after the body of each request: without it, the objects of a stage are two records and two system calls each, here and
// at the other end. The idea is that of the writer of gRPC for Go: before it flushes, it lets others who are ready to write do so
// (google.golang.org/grpc/internal/transport/controlbuf.go, loopyWriter.run).
func gathered(dial func(ctx context.Context, network, address string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return newGatherer(conn), nil
	}
}

// gatherer is a connection whose Write returns before what it was given is sent: that is done by a goroutine that there is only while
// something waits. An error of sending is that of all later writes, and closes the connection, so that its reader hears of it.
type gatherer struct {
	net.Conn

	mu      sync.Mutex
	room    sync.Cond // told when what waited was sent
	waiting []byte
	sending bool // there is a goroutine that sends
	closed  bool
	late    bool // the deadline of writes was set to a time that is over
	err     error
}

func newGatherer(conn net.Conn) *gatherer {
	g := &gatherer{Conn: conn}
	g.room.L = &g.mu
	return g
}

// buffers of what waits: a connection that nobody writes to has none.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// Write keeps p to be sent. It waits while too much does.
func (g *gatherer) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.err == nil && !g.closed && len(g.waiting) >= mostGathered {
		g.room.Wait()
	}
	switch {
	case g.err != nil:
		return 0, g.err
	case g.closed:
		return 0, net.ErrClosed
	case g.late:
		return 0, os.ErrDeadlineExceeded
	}
	if g.waiting == nil {
		g.waiting = (*buffers.Get().(*[]byte))[:0]
	}
	g.waiting = append(g.waiting, p...)
	if !g.sending {
		g.sending = true
		go g.send()
	}
	return len(p), nil
}

// send sends until nothing waits.
func (g *gatherer) send() {
	for {
		runtime.Gosched()
		batch := g.take()
		if batch == nil {
			return
		}
		_, err := g.Conn.Write(batch)
		if cap(batch) <= 2*mostGathered {
			buffers.Put(&batch)
		}
		g.sent(err)
	}
}

// take is what waits; nil if nothing does, and then sending is over.
func (g *gatherer) take() []byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	batch := g.waiting
	g.waiting = nil
	if batch == nil {
		g.sending = false
		if g.closed {
			_ = g.Conn.Close() // nobody is left to be told
		}
	}
	return batch
}

func (g *gatherer) sent(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil {
		g.err, g.waiting = err, nil
		_ = g.Conn.Close() // nobody is left to be told but its reader
	}
	g.room.Broadcast()
}

// SetWriteDeadline is that of the connection. One that is over, with which TLS ends all writing after its last words, leaves what was
// written before to be sent.
func (g *gatherer) SetWriteDeadline(t time.Time) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.late = !t.IsZero() && !t.After(time.Now())
	if g.late && g.sending {
		return nil
	}
	return g.Conn.SetWriteDeadline(t)
}

// SetDeadline sets both deadlines.
func (g *gatherer) SetDeadline(t time.Time) error {
	return errors.Join(g.SetReadDeadline(t), g.SetWriteDeadline(t))
}

// Close sends what waits, for a moment at most, and closes the connection.
func (g *gatherer) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	closed := g.closed
	g.closed = true
	g.room.Broadcast()
	if !g.sending || closed {
		return g.Conn.Close()
	}
	if err := g.Conn.SetDeadline(time.Now().Add(lastWords)); err != nil { // nothing bounds what is being sent
		return g.Conn.Close()
	}
	return nil // send closes it
}
