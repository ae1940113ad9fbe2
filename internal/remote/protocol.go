package remote

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/kyma-project/mothership/internal/cluster"
)

// protocols sends many requests at the same time over one connection of HTTP/2, and those of cluster.InTurn one after the other over one of
// HTTP/1.1, which needs neither a goroutine for each request nor half of the frames, records and system calls, here and at the other end.
type protocols struct {
	many   *http.Transport
	inTurn turns
	// never says that there is nobody to speak HTTP/1.1 to.
	never atomic.Bool
}

var _ http.RoundTripper = (*protocols)(nil)

func newProtocols(many *http.Transport, dial dialer) *protocols {
	return &protocols{many: many, inTurn: turns{of: many, dial: dial}}
}

// mostInTurn is how many bytes a request in turn may have. It is written before its answer is read, and a server that refuses it may not
// read on.
const mostInTurn = 64 << 10

// RoundTrip sends a request.
func (p *protocols) RoundTrip(req *http.Request) (*http.Response, error) {
	unknown := req.ContentLength < 0 || req.ContentLength == 0 && req.Body != nil && req.Body != http.NoBody
	if !cluster.IsInTurn(req.Context()) || unknown || req.ContentLength > mostInTurn || p.never.Load() {
		return p.many.RoundTrip(req)
	}
	c, err := p.inTurn.take(req)
	switch {
	case errors.Is(err, errNotInTurn) || refusesProtocol(err):
		p.never.Store(true) // nothing of the request was sent
		return p.many.RoundTrip(req)
	case err != nil:
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	return p.inTurn.ask(c, req)
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
	p.inTurn.closeIdle()
}

// dialer makes connections, as net.Dialer's DialContext does.
type dialer = func(ctx context.Context, network, address string) (net.Conn, error)
