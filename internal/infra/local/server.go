package local

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/kyma-project/mothership/internal/infra/local/node"
)

const (
	// startTimeout bounds a start where the caller's context does not: a loaded machine takes ten times as long.
	startTimeout = 2 * time.Minute
	// startAttempts bounds how often another port is tried when somebody else took the one that was free.
	startAttempts = 3
)

// Server is a running API server with its etcd and controllers. It is safe for concurrent use.
type Server struct {
	options Options
	folder  *folder
	etcd    *Etcd // ours, or shared
	pki     *pki
	port    int

	apiserver, controllers *process   // controllers is nil where none are asked for
	node                   *node.Node // nil likewise

	done    chan struct{}
	err     error // why it ended by itself; read after done
	closing chan struct{}
	close   func() error
}

// Start starts the processes and returns when the API server says that it is ready, and the controller manager that it
// is healthy. The context bounds the start only. When a child ends before, the error is an ExitError that quotes its
// log; everything that was started is stopped then.
func Start(ctx context.Context, o Options) (*Server, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("starting a local API server: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	s := &Server{options: o, etcd: o.Etcd, done: make(chan struct{}), closing: make(chan struct{})}
	s.close = sync.OnceValue(s.stop)
	if err := s.start(ctx); err != nil {
		close(s.done)
		return nil, errors.Join(fmt.Errorf("starting a local API server: %w", err), s.Close())
	}
	go s.watch()
	return s, nil
}

// start starts everything in the order that is fastest: etcd comes up while the keys are made and the API server loads,
// and the controller manager while the API server, which answers already, waits for its own roles.
func (s *Server) start(ctx context.Context) (err error) {
	if s.folder, err = openFolder(s.options.Dir); err != nil {
		return err
	}
	if s.etcd == nil {
		if s.etcd, err = s.startOwnEtcd(); err != nil {
			return err
		}
	}
	if err := firstEnd([]*process{s.etcd.process}); err != nil { // of a shared one: nothing would come of a start
		return err
	}
	if s.pki, err = openPKI(filepath.Join(s.folder.path, "pki")); err != nil {
		return err
	}
	if err := s.startAPIServer(ctx); err != nil {
		return err
	}
	if err := s.startControllers(ctx); err != nil {
		return err
	}
	if err := s.awaitReady(ctx); err != nil {
		return err
	}
	if s.options.Nodes {
		s.node, err = node.Start(ctx, s.Config())
	}
	return err
}

// startOwnEtcd starts an etcd in a folder within ours.
func (s *Server) startOwnEtcd() (*Etcd, error) {
	f, err := openFolder(filepath.Join(s.folder.path, "etcd"))
	if err != nil {
		return nil, err
	}
	f.temporary = s.folder.temporary
	e, err := startEtcd(s.options.Assets, f)
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	return e, nil
}

// watch records the first child that ends by itself.
func (s *Server) watch() {
	defer close(s.done)
	var controllers <-chan struct{} // nil never receives
	if s.controllers != nil {
		controllers = s.controllers.done
	}
	ended := s.apiserver
	select {
	case <-s.closing:
		return
	case <-s.etcd.process.done:
		ended = s.etcd.process
	case <-s.apiserver.done:
	case <-controllers:
		ended = s.controllers
	}
	select {
	case <-s.closing: // both happened: it was us
	default:
		s.err = ended.exitError()
	}
}

// Done is closed when the server no longer serves: after Close, or when a child ended by itself, which Err tells.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err returns nil while the server runs and after Close, and an ExitError after a child ended by itself.
func (s *Server) Err() error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}

// Dir returns the state folder, in which the logs are (<name>.log).
func (s *Server) Dir() string { return s.folder.path }

// Kill ends the API server as a crash would, and returns at once: Done is closed soon, and Err is an ExitError. Close is
// still the caller's to call. It is for those who want to see what happens then, and for ends in a hurry.
func (s *Server) Kill() error { return s.apiserver.kill() }

// Close stops the controllers and the API server, then etcd if it is the server's own, waits until they are gone and
// removes a temporary state folder. A child that does not end within 15 s is killed. It may be called again and
// concurrently, and returns the same error then.
func (s *Server) Close() error { return s.close() }

func (s *Server) stop() error {
	close(s.closing)
	if s.node != nil {
		s.node.Close()
	}
	errs := s.stopProcesses()
	if s.options.Etcd == nil && s.etcd != nil {
		errs = append(errs, s.etcd.Close())
	}
	if s.folder != nil {
		errs = append(errs, s.folder.close())
	}
	<-s.done
	return errors.Join(errs...)
}

// stopProcesses stops the controller manager and the API server at once.
func (s *Server) stopProcesses() []error {
	sig := syscall.SIGTERM
	if s.hopeless() {
		sig = syscall.SIGKILL
	}
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i, p := range []*process{s.controllers, s.apiserver} {
		wg.Go(func() { errs[i] = p.stop(sig) })
	}
	wg.Wait()
	return errs
}

// hopeless says that an orderly end is of no use: nothing will be read again, or etcd is gone, without which an API
// server does not end for a long time.
func (s *Server) hopeless() bool {
	if s.etcd != nil {
		select {
		case <-s.etcd.process.done:
			return true
		default:
		}
	}
	return s.options.Etcd == nil && s.folder != nil && s.folder.temporary
}
