package remote

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/kyma-project/mothership/internal/cluster"
)

// protocols sends many requests at the same time over one connection of HTTP/2, and those of cluster.InTurn over one of HTTP/1.1, which
// needs neither a goroutine for each request nor half of the frames, records and system calls, here and at the other end.
type protocols struct {
	many   *http.Transport
	inTurn func() *http.Transport // made when it is first asked for
	turns  atomic.Bool            // that it was
}

var _ http.RoundTripper = (*protocols)(nil)

// inTurn is another transport's twin without HTTP/2.
func inTurn(of *http.Transport, dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Transport {
	t := of.Clone()
	t.DialContext, t.ForceAttemptHTTP2 = dial, false
	t.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{} // empty, not nil: net/http would add HTTP/2 otherwise
	if t.TLSClientConfig != nil {
		t.TLSClientConfig.NextProtos = []string{"http/1.1"}
	}
	return t
}

// RoundTrip sends a request.
func (p *protocols) RoundTrip(req *http.Request) (*http.Response, error) {
	if cluster.IsInTurn(req.Context()) {
		p.turns.Store(true)
		return p.inTurn().RoundTrip(req)
	}
	return p.many.RoundTrip(req)
}

// CloseIdleConnections closes those on which nothing is under way.
func (p *protocols) CloseIdleConnections() {
	p.many.CloseIdleConnections()
	if p.turns.Load() {
		p.inTurn().CloseIdleConnections()
	}
}
