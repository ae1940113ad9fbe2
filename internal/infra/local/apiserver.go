package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// startAPIServer starts kube-apiserver and waits until it answers, on another port when somebody took the one that was
// free a moment ago.
func (s *Server) startAPIServer(ctx context.Context) (err error) {
	for _, port := range s.ports() {
		if err = s.tryAPIServer(ctx, port); !errors.Is(err, ErrPortTaken) {
			break
		}
	}
	if err == nil && s.options.Port == 0 {
		err = rememberPort(s.folder.path, s.port)
	}
	return err
}

// ports are those to try, one after the other; zero is any that is free.
func (s *Server) ports() []int {
	if s.options.Port != 0 {
		return []int{s.options.Port}
	}
	return append([]int{rememberedPort(s.folder.path)}, make([]int, startAttempts-1)...)
}

func (s *Server) tryAPIServer(ctx context.Context, port int) (err error) {
	c := command{assets: s.options.Assets, name: binAPIServer, dir: s.folder.path, workDir: s.etcd.Dir()}
	if err := c.reap(); err != nil { // before its port is looked at, which a leftover would still have
		return err
	}
	if s.port, err = choosePort(port); err != nil {
		return err
	}
	c.args, c.env = s.apiserverArgs(), s.options.env()
	if s.apiserver, err = startProcess(c); err != nil {
		return err
	}
	err = await(ctx, s.readyz(), answered, s.apiserver, s.etcd.process)
	return portConflict(err, s.port, s.apiserver)
}

// awaitReady waits until the API server is ready, about a second and a half after it answers: it looks once a second
// whether its roles and priority classes can be written.
func (s *Server) awaitReady(ctx context.Context) error {
	return await(ctx, s.readyz(), answeredOK, s.apiserver, s.etcd.process)
}

func (s *Server) readyz() probe { return probe{s.Config(), s.Config().Host + "/readyz"} }

// apiserverArgs are the arguments of kube-apiserver; the last of a name wins.
func (s *Server) apiserverArgs() []string {
	args := []string{
		"--etcd-servers=unix://" + socket, "--etcd-prefix=" + s.options.Prefix,
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", s.port),
		"--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none", // no pod will ever call it, and a laptop may have no route
		"--tls-cert-file=" + s.pki.path(fileServing), "--tls-private-key-file=" + s.pki.path(fileServingKey),
		"--client-ca-file=" + s.pki.path(fileCA), "--token-auth-file=" + s.pki.path(fileTokens),
		"--service-account-key-file=" + s.pki.path(fileAccountKey),
		"--service-account-signing-key-file=" + s.pki.path(fileAccountKey),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--authorization-mode=RBAC", "--allow-privileged=true",
		"--service-cluster-ip-range=10.0.0.0/16",
	}
	if idle := s.options.idleAdmission(); len(idle) > 0 {
		args = append(args, "--disable-admission-plugins="+strings.Join(idle, ","))
	}
	return slices.Concat(args, s.options.APIServerArgs)
}

// startControllers starts kube-controller-manager, if there is anything for it to run, and waits until it is healthy. It is started
// again where it gave up: it waits no more than ten seconds for an API server that has much else to do.
func (s *Server) startControllers(ctx context.Context) error {
	if len(s.options.Controllers) == 0 {
		return nil
	}
	for range startAttempts - 1 {
		err := s.tryControllers(ctx)
		exit := (*ExitError)(nil)
		if gaveUp := errors.As(err, &exit) && exit.Name == binControllerManager; !gaveUp || ctx.Err() != nil {
			return err
		}
	}
	return s.tryControllers(ctx)
}
