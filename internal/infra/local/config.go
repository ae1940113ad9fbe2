package local

import (
	"fmt"
	"net"
	"strconv"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// Config returns a new client configuration of the administrator (system:masters), without a client-side rate limit.
// The server's certificate is verified.
func (s *Server) Config() *rest.Config {
	config := s.anonymous()
	config.BearerToken = s.pki.token
	return config
}

// UserConfig returns a new client configuration of a user in groups, who proves it by a client certificate and may do
// what the server's RBAC objects allow: nothing at first.
func (s *Server) UserConfig(name string, groups ...string) (*rest.Config, error) {
	cert, key, err := s.pki.userCertificate(name, groups)
	if err != nil {
		return nil, fmt.Errorf("making a certificate for user %q: %w", name, err)
	}
	config := s.anonymous()
	config.CertData, config.KeyData = cert, key
	return config, nil
}

// anonymous is a configuration without a user.
func (s *Server) anonymous() *rest.Config {
	return &rest.Config{
		Host:            "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)),
		TLSClientConfig: rest.TLSClientConfig{CAData: s.pki.caPEM},
		QPS:             -1,
	}
}

// Kubeconfig returns the administrator's kubeconfig. It refers to no files and keeps working when the server is
// started again from the same state folder, unless somebody else has taken its port meanwhile.
func (s *Server) Kubeconfig() ([]byte, error) { return Kubeconfig(s.Config()) }

// Kubeconfig writes a configuration that Config or UserConfig returned as a kubeconfig that refers to no files.
func Kubeconfig(config *rest.Config) ([]byte, error) {
	const name = "local"
	out, err := clientcmd.Write(api.Config{
		Clusters: map[string]*api.Cluster{name: {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos: map[string]*api.AuthInfo{name: {
			Token: config.BearerToken, ClientCertificateData: config.CertData, ClientKeyData: config.KeyData,
		}},
		Contexts:       map[string]*api.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	})
	if err != nil {
		return nil, fmt.Errorf("writing a kubeconfig: %w", err)
	}
	return out, nil
}
