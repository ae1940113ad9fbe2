package sim

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kyma-project/mothership/sim/state"
	"github.com/kyma-project/mothership/sim/wire"
)

// Config says what to start. The zero value listens on free ports of 127.0.0.1.
type Config struct {
	// Listen is the address of the clusters, Admin that of the administration, which has no authentication: keep it on the
	// loopback interface. Default: 127.0.0.1:0.
	Listen, Admin string
	// Dir keeps certificates and the secret of the tokens, so that kubeconfigs stay good. Empty: nothing is kept.
	Dir string
	// World are the bounds and delays of what clusters do by themselves.
	World state.Options
}

// Server is a running simulator. Its methods are safe for concurrent use.
type Server struct {
	keys  *keys
	fleet *fleet

	listener, adminListener net.Listener
	api, admin              *http.Server
	connections             atomic.Int64

	stop context.CancelFunc
	done chan struct{}
	wg   sync.WaitGroup
	once sync.Once
	err  atomic.Pointer[error]
}

// Start starts a simulator without clusters. It ends with the context, or by Close.
func Start(ctx context.Context, c Config) (*Server, error) {
	k, err := newKeys(c.Dir)
	if err != nil {
		return nil, err
	}
	s := &Server{keys: k, done: make(chan struct{}), fleet: &fleet{world: state.NewWorld(c.World), runtimes: map[string]*runtime{}}}
	if s.listener, err = listen(c.Listen); err != nil {
		return nil, err
	}
	if s.adminListener, err = listen(c.Admin); err != nil {
		s.listener.Close()
		return nil, err
	}
	ctx, s.stop = context.WithCancel(ctx)
	s.serve(ctx)
	return s, nil
}

func listen(address string) (net.Listener, error) {
	if address == "" {
		address = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("starting the simulator: %w", err)
	}
	return l, nil
}

// readHeaders bounds how long a connection may take to say what it wants.
const readHeaders = 30 * time.Second

func (s *Server) serve(ctx context.Context) {
	quiet := log.New(io.Discard, "", 0) // handshakes that fail are what dials are for
	base := func(net.Listener) context.Context { return ctx }
	s.api = &http.Server{
		Handler: http.HandlerFunc(s.handle), ReadHeaderTimeout: readHeaders, IdleTimeout: 5 * time.Minute, ErrorLog: quiet, BaseContext: base,
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: s.greet, Certificates: []tls.Certificate{s.keys.cert}},
		ConnState: s.count,
	}
	s.admin = &http.Server{Handler: s.adminHandler(), ReadHeaderTimeout: readHeaders, ErrorLog: quiet, BaseContext: base}
	s.wg.Go(func() { s.fleet.world.Run(ctx) })
	s.wg.Go(func() { s.ended(s.api.ServeTLS(s.listener, "", "")) })
	s.wg.Go(func() { s.ended(s.admin.Serve(s.adminListener)) })
	s.wg.Go(func() {
		<-ctx.Done()
		_ = s.api.Close() // what it would say, Serve says
		_ = s.admin.Close()
	})
	go func() {
		s.wg.Wait()
		close(s.done)
	}()
}

// ended takes the end of a listener, and ends the rest.
func (s *Server) ended(err error) {
	if !errors.Is(err, http.ErrServerClosed) {
		s.err.CompareAndSwap(nil, &err)
	}
	s.stop()
}

func (s *Server) count(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.connections.Add(1)
	case http.StateClosed, http.StateHijacked:
		s.connections.Add(-1)
	}
}

// Done is closed when the simulator has ended.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err is why it ended by itself, or nil.
func (s *Server) Err() error {
	if e := s.err.Load(); e != nil {
		return *e
	}
	return nil
}

// Close ends the simulator and waits until it has. It may be called more than once.
func (s *Server) Close() {
	s.once.Do(s.stop)
	<-s.done
}

// Address is host:port of the clusters' listener.
func (s *Server) Address() string { return s.listener.Addr().String() }

// AdminURL is where it is administered.
func (s *Server) AdminURL() string { return "http://" + s.adminListener.Addr().String() }

// greet applies the dials of a cluster that a connection names.
func (s *Server) greet(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	r := s.fleet.get(strings.TrimSuffix(hello.ServerName, domain))
	if r == nil {
		return nil, nil
	}
	d := r.dials.Load()
	switch {
	case d.Refuse:
		r.counters.AddConnection()
		hello.Conn.Close()
		return nil, errRefused
	case d.BlackHole:
		r.counters.AddConnection()
		t := time.NewTimer(readHeaders)
		defer t.Stop()
		select {
		case <-hello.Context().Done():
		case <-t.C:
		}
		return nil, errRefused
	case d.OtherCertificate:
		c := s.api.TLSConfig.Clone()
		c.GetConfigForClient, c.Certificates = nil, []tls.Certificate{s.keys.other}
		return c, nil
	}
	return nil, nil
}

var errRefused = errors.New("the dial of this cluster refuses connections")

// handle finds the cluster of a request, lets its dials act, and serves.
func (s *Server) handle(w http.ResponseWriter, q *http.Request) {
	name, r := s.route(q)
	if r == nil {
		http.Error(w, "404 page not found", http.StatusNotFound)
		return
	}
	r.counters.Add(q)
	d := r.dials.Load()
	if !d.Gate(w, q) {
		return
	}
	token, _ := strings.CutPrefix(q.Header.Get("Authorization"), "Bearer ")
	if subtle.ConstantTimeCompare([]byte(token), []byte(s.keys.token(name))) != 1 {
		wire.WriteStatus(w, q, metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusUnauthorized, Reason: metav1.StatusReasonUnauthorized, Message: "Unauthorized",
		})
		return
	}
	wire.Serve(w, q, r.cluster, wire.Options{HalfDiscovery: d.HalfDiscovery, Slow: d.SlowWatch()})
}

// route finds the cluster by path or name, and leaves the path as an API server knows it.
func (s *Server) route(q *http.Request) (string, *runtime) {
	if rest, ok := strings.CutPrefix(q.URL.Path, "/r/"); ok {
		name, path, _ := strings.Cut(rest, "/")
		q.URL.Path = "/" + path
		return name, s.fleet.get(name)
	}
	host := q.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if name, ok := strings.CutSuffix(host, domain); ok {
		return name, s.fleet.get(name)
	}
	if q.TLS == nil {
		return "", nil
	}
	name := strings.TrimSuffix(q.TLS.ServerName, domain)
	return name, s.fleet.get(name)
}
