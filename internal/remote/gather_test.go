package remote

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// slowConn is a connection whose Write waits until it may go on.
type slowConn struct {
	net.Conn
	gate chan error // what the next Write returns

	noDeadline error // of setting one

	mu       sync.Mutex
	sent     [][]byte
	closed   bool
	deadline time.Time
}

func (c *slowConn) Write(p []byte) (int, error) {
	if err := <-c.gate; err != nil {
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = append(c.sent, bytes.Clone(p))
	return len(p), nil
}

func (c *slowConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return nil
}

func (c *slowConn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
	return c.noDeadline
}

func (c *slowConn) SetWriteDeadline(t time.Time) error { return c.SetDeadline(t) }

func (c *slowConn) is(t *testing.T, closed bool, sent ...string) {
	t.Helper()
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if got, want := fmt.Sprintf("%q", c.sent), fmt.Sprintf("%q", sent); got != want || c.closed != closed {
		t.Fatalf("sent %s, closed %v; want %s, %v", got, c.closed, want, closed)
	}
}

func mustWrite(t *testing.T, g *gatherer, text string) {
	t.Helper()
	if n, err := g.Write([]byte(text)); n != len(text) || err != nil {
		t.Fatalf("writing: %d, %v", n, err)
	}
}

// full is a connection that is sending, with as much waiting as there is room for, and somebody who waits for room: told is what that ends with.
func full(t *testing.T) (_ *gatherer, _ *slowConn, told <-chan error) {
	t.Helper()
	conn := &slowConn{gate: make(chan error)}
	g := newGatherer(conn)
	mustWrite(t, g, "a")
	conn.is(t, false)
	mustWrite(t, g, string(make([]byte, mostGathered)))
	ended := make(chan error, 1)
	go func() {
		_, err := g.Write([]byte("b"))
		ended <- err
	}()
	synctest.Wait()
	select {
	case err := <-ended:
		t.Fatalf("there was room for more than the bound: %v", err)
	default:
	}
	return g, conn, ended
}

// What is written while something is being sent is sent together, in its order.
func TestGathers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := &slowConn{gate: make(chan error)}
		g := newGatherer(conn)
		mustWrite(t, g, "a")
		conn.is(t, false) // being sent
		for _, text := range []string{"b", "c", "d"} {
			mustWrite(t, g, text)
		}
		conn.gate <- nil
		conn.is(t, false, "a")
		conn.gate <- nil
		conn.is(t, false, "a", "bcd")
		mustWrite(t, g, "e") // after it fell idle
		conn.gate <- nil
		conn.is(t, false, "a", "bcd", "e")
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		conn.is(t, true, "a", "bcd", "e")
		if _, err := g.Write([]byte("f")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("writing to a closed connection: %v", err)
		}
	})
}

// What waits when a connection is closed is sent before, for a moment at most.
func TestGathererSendsBeforeClosing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := &slowConn{gate: make(chan error)}
		g := newGatherer(conn)
		mustWrite(t, g, "a")
		conn.is(t, false)
		mustWrite(t, g, "b")
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		conn.is(t, false)
		if got, want := conn.deadline, time.Now().Add(lastWords); !got.Equal(want) {
			t.Errorf("the last words have until %v, want %v", got, want)
		}
		conn.gate <- nil
		conn.gate <- nil
		conn.is(t, true, "a", "b")
	})
}

// An error of sending is that of later writes, and whoever waits for room is told.
func TestGathererFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, conn, told := full(t)
		broken := errors.New("broken pipe")
		conn.gate <- broken
		if err := <-told; !errors.Is(err, broken) {
			t.Errorf("who waited was told %v", err)
		}
		if _, err := g.Write([]byte("c")); !errors.Is(err, broken) {
			t.Errorf("a later write: %v", err)
		}
		synctest.Wait()
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		conn.is(t, true)
	})
}

// Closing ends the waiting for room.
func TestGathererClosedWhileFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, conn, told := full(t)
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-told; !errors.Is(err, net.ErrClosed) {
			t.Errorf("who waited was told %v", err)
		}
		conn.gate <- errors.New("too late")
		conn.is(t, true)
	})
}

// TLS says goodbye and then sets a deadline that is over: the peer hears all that was written before, and that it was the end.
func TestGathererUnderTLS(t *testing.T) {
	srv := httptest.NewUnstartedServer(nil)
	srv.StartTLS() // for its certificate
	defer srv.Close()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", srv.TLS)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for range 50 {
		heard := make(chan error, 1)
		go func() {
			conn, err := listener.Accept()
			if err != nil {
				heard <- err
				return
			}
			defer conn.Close()
			text, err := io.ReadAll(conn) // an end without goodbye is io.ErrUnexpectedEOF
			if err == nil && string(text) != "last words" {
				err = fmt.Errorf("heard %q", text)
			}
			heard <- err
		}()
		dial := gathered((&net.Dialer{}).DialContext)
		raw, err := dial(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		conn := tls.Client(raw, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // it is about how a connection ends
		if _, err := io.WriteString(conn, "last words"); err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-heard; err != nil {
			t.Fatal(err)
		}
	}
}

// A deadline that is over refuses what is written later, and not what was before; another one allows it again.
func TestGathererDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := &slowConn{gate: make(chan error)}
		g := newGatherer(conn)
		mustWrite(t, g, "a")
		if err := g.SetWriteDeadline(time.Now()); err != nil {
			t.Fatal(err)
		}
		if _, err := g.Write([]byte("b")); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("writing too late: %v", err)
		}
		if err := g.SetWriteDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		mustWrite(t, g, "c")
		conn.gate <- nil
		conn.is(t, false, "ac")
	})
}

// A connection that has no deadlines is closed at once.
func TestGathererWithoutDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := &slowConn{gate: make(chan error), noDeadline: errors.New("not supported")}
		g := newGatherer(conn)
		mustWrite(t, g, "a")
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		conn.is(t, true)
		conn.gate <- net.ErrClosed
	})
}

// Many writers over a real connection: nothing is lost, torn or changed.
func TestGathererConcurrently(t *testing.T) {
	const writers, each = 16, 500
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	g := newGatherer(conn)
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for i := range each {
				if _, err := fmt.Fprintf(g, "%04d %04d\n", w, i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	go func() {
		writing.Wait()
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}()
	other, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	all, err := io.ReadAll(other)
	if err != nil {
		t.Fatal(err)
	}
	next := map[int]int{}
	for line := range bytes.Lines(all) {
		var w, i int
		if _, err := fmt.Sscanf(string(line), "%04d %04d\n", &w, &i); err != nil || next[w] != i {
			t.Fatalf("line %q: the next of this writer is %d", line, next[w])
		}
		next[w]++
	}
	if len(next) != writers || next[0] != each {
		t.Errorf("%d writers, %d lines of the first", len(next), next[0])
	}
}
