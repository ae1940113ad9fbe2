package remote

import (
	"context"
	"crypto/tls"
	"errors"
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
	// never says that the server does not speak HTTP/1.1.
	never atomic.Bool
}

var _ http.RoundTripper = (*protocols)(nil)

// inTurn is another transport's twin without HTTP/2.
func inTurn(of *http.Transport, dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Transport {
	t := of.Clone()
	t.DialContext, t.ForceAttemptHTTP2 = dial, false
	t.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{} // empty, not nil: net/http would add HTTP/2 otherwise
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	if t.TLSClientConfig != nil {
		t.TLSClientConfig.NextProtos = []string{"http/1.1"}
	}
	return t
}

// RoundTrip sends a request.
func (p *protocols) RoundTrip(req *http.Request) (*http.Response, error) {
	if !cluster.IsInTurn(req.Context()) || p.never.Load() {
		return p.many.RoundTrip(req)
	}
	p.turns.Store(true)
	resp, err := p.inTurn().RoundTrip(req)
	if !refusesProtocol(err) {
		return resp, err
	}
	p.never.Store(true) // nothing of the request was sent
	again := req.Clone(req.Context())
	if req.GetBody != nil {
		if again.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
	return p.many.RoundTrip(again)
}

// refusesProtocol says whether a server speaks none of the protocols that it was offered: the alert no_application_protocol (RFC 7301, 3.2),
// which crypto/tls has no exported type for.
func refusesProtocol(err error) bool {
	var alert *net.OpError
	return errors.As(err, &alert) && alert.Op == "remote error" && alert.Err.Error() == "tls: no application protocol"
}

// CloseIdleConnections closes those on which nothing is under way.
func (p *protocols) CloseIdleConnections() {
	p.many.CloseIdleConnections()
	if p.turns.Load() {
		p.inTurn().CloseIdleConnections()
	}
}
