package local

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// tryControllers starts kube-controller-manager on a free port and waits until it is healthy.
func (s *Server) tryControllers(ctx context.Context) error {
	port, err := choosePort(0)
	if err != nil {
		return err
	}
	args, err := s.controllersArgs(port)
	if err != nil {
		return err
	}
	s.controllers, err = startProcess(command{
		assets: s.options.Assets, name: binControllerManager, args: args, env: s.options.env(),
		dir: s.folder.path, workDir: s.folder.path,
	})
	if err != nil {
		return err
	}
	health := probe{s.anonymous(), fmt.Sprintf("https://127.0.0.1:%d/healthz", port)}
	err = await(ctx, health, answeredOK, s.controllers, s.apiserver, s.etcd.process)
	return portConflict(err, port, s.controllers)
}

// controllersArgs are the arguments of kube-controller-manager, which gets the administrator's kubeconfig as a file.
func (s *Server) controllersArgs(port int) ([]string, error) {
	kubeconfig, err := s.Kubeconfig()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(s.folder.path, binControllerManager+".kubeconfig")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		return nil, fmt.Errorf("writing the kubeconfig of %s: %w", binControllerManager, err)
	}
	return []string{
		"--kubeconfig=" + file, "--leader-elect=false",
		"--controllers=" + strings.Join(s.options.Controllers, ","),
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
		"--tls-cert-file=" + s.pki.path(fileServing), "--tls-private-key-file=" + s.pki.path(fileServingKey),
		"--service-account-private-key-file=" + s.pki.path(fileAccountKey), "--root-ca-file=" + s.pki.path(fileCA),
		"--kube-api-qps=500", "--kube-api-burst=1000", // of one machine's own
	}, nil
}
