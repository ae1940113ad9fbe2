package source

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// guard keeps one download from being sent into places that only we can reach, by a redirect or by a name that
// resolves to another address than before. The host of the reference itself is exempt as long as it is not seen at a
// public address: whoever wrote the reference chose it. Addresses are checked when they are dialled, after names were
// resolved. Behind a proxy the proxy resolves names, so only literal addresses can be checked there.
type guard struct {
	origin       string
	allowPrivate bool
	// private are the places that are allowed although they are private.
	private allowed
	// mirrors are chosen by whoever runs us, so they may be private.
	mirrors mirrors
	// proxies chooses the proxy of a request, or none.
	proxies func(*http.Request) (*url.URL, error)
	// public says that the origin was seen at a public address.
	public atomic.Bool
	// proxy is the host:port of the proxy in use, or nil.
	proxy atomic.Pointer[string]
}

// transport is the http.Transport of one download.
func (g *guard) transport(roots *x509.CertPool) *http.Transport {
	return &http.Transport{
		Proxy:                  g.chooseProxy,
		DialContext:            g.dial,
		TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    10 * time.Second,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // the digest is of the bytes as they are
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// chooseProxy is the proxy of a request, if there is one. What it would be asked for is checked before.
func (g *guard) chooseProxy(req *http.Request) (*url.URL, error) {
	proxy, err := g.proxies(req)
	if err != nil {
		return nil, refuse(ErrInvalid, "", "the proxy's address in the environment is malformed")
	}
	if proxy == nil {
		return nil, nil
	}
	if addr, err := netip.ParseAddr(req.URL.Hostname()); err == nil {
		if err := g.allow(req.URL.Hostname(), addr); err != nil {
			return nil, err
		}
	}
	target := canonicalAddr(proxy)
	g.proxy.Store(&target)
	return proxy, nil
}

// canonicalAddr is the host:port that the transport dials for a proxy.
func canonicalAddr(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// dial connects, if the address that a name resolves to is allowed.
func (g *guard) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: 10 * time.Second}
	if p := g.proxy.Load(); p == nil || *p != addr {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		d.ControlContext = func(_ context.Context, _, resolved string, _ syscall.RawConn) error {
			ip, err := netip.ParseAddrPort(resolved)
			if err != nil {
				return err
			}
			return g.allow(host, ip.Addr())
		}
	}
	return d.DialContext(ctx, network, addr)
}

// allow says whether a host may be reached at an address.
func (g *guard) allow(host string, addr netip.Addr) error {
	private := isPrivate(addr)
	own := strings.EqualFold(host, g.origin)
	if own && !private {
		g.public.Store(true)
	}
	switch {
	case !private || g.allowPrivate || g.mirrors.holds(host) || g.private.has(host, addr):
		return nil
	case own && isMetadata(addr):
		return refuse(ErrUnsafe, "", "%s is a link-local or metadata address: refused", addr)
	case own && !g.public.Load():
		return nil
	}
	return refuse(ErrUnsafe, "", "server redirects to %s, a private address: refused", addr)
}

// allowed are names, addresses and networks.
type allowed struct {
	names    map[string]bool
	networks []netip.Prefix
}

func newAllowed(hosts []string) allowed {
	a := allowed{names: map[string]bool{}}
	for _, h := range hosts {
		if p, err := netip.ParsePrefix(h); err == nil {
			a.networks = append(a.networks, p)
			continue
		}
		a.names[strings.ToLower(h)] = true
	}
	return a
}

// has says whether a host, or the address that it has, is allowed.
func (a allowed) has(host string, addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	return a.names[strings.ToLower(host)] || a.names[addr.String()] ||
		slices.ContainsFunc(a.networks, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// metadata are the addresses of clouds' metadata that are not link-local.
var metadata = []netip.Addr{
	netip.MustParseAddr("168.63.129.16"), netip.MustParseAddr("192.0.0.192"), netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("fd00:ec2::254"),
}

// isMetadata says whether an address is one at which a cloud tells a machine its secrets.
func isMetadata(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	return addr.IsLinkLocalUnicast() || slices.Contains(metadata, addr)
}

// reserved are networks, besides those that netip knows, that are not the public internet or lead back into ours.
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),        // "this" network (RFC 1122)
	netip.MustParsePrefix("100.64.0.0/10"),    // carrier-grade NAT (RFC 6598), some clouds' metadata
	netip.MustParsePrefix("168.63.129.16/32"), // Azure's host
	netip.MustParsePrefix("192.0.0.0/24"),     // protocol assignments (RFC 6890), some clouds' metadata
	netip.MustParsePrefix("198.18.0.0/15"),    // benchmarking (RFC 2544)
	netip.MustParsePrefix("240.0.0.0/4"),      // reserved, broadcast
	netip.MustParsePrefix("64:ff9b::/96"),     // NAT64 (RFC 6052): any IPv4 address in disguise
	netip.MustParsePrefix("64:ff9b:1::/48"),   // local NAT64 (RFC 8215)
	netip.MustParsePrefix("2002::/16"),        // 6to4 (RFC 3056): the same
}

// isPrivate says whether an address is not on the public internet.
func isPrivate(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	if addr.IsLoopback() || addr.IsPrivate() || addr.IsLinkLocalUnicast() || addr.IsMulticast() || addr.IsUnspecified() {
		return true
	}
	for _, p := range reserved {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}
