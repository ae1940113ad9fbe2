package sim

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/kyma-project/mothership/sim/dial"
	"github.com/kyma-project/mothership/sim/state"
)

// Add makes a cluster as it is after its installation.
func (s *Server) Add(name string) error { return s.fleet.add(name, "") }

// Clone makes a cluster that has what another one has.
func (s *Server) Clone(from, name string) error { return s.fleet.add(name, from) }

// Remove ends a cluster.
func (s *Server) Remove(name string) error { return s.fleet.remove(name) }

// Cluster gives the state of a cluster, or ErrNotFound.
func (s *Server) Cluster(name string) (*state.Cluster, error) {
	r := s.fleet.get(name)
	if r == nil {
		return nil, fmt.Errorf("%s: %w", name, ErrNotFound)
	}
	return r.cluster, nil
}

// Dial sets what is wrong with a cluster.
func (s *Server) Dial(name string, d dial.Dials) error {
	r := s.fleet.get(name)
	if r == nil {
		return fmt.Errorf("%s: %w", name, ErrNotFound)
	}
	if err := d.Validate(); err != nil {
		return fmt.Errorf("dials of %s: %w", name, err)
	}
	r.dials.Store(&d)
	return nil
}

// Config is the access to a cluster. It is not checked that there is one.
func (s *Server) Config(name string) *rest.Config {
	return &rest.Config{
		Host: s.url(name), BearerToken: s.keys.token(name),
		TLSClientConfig: rest.TLSClientConfig{CAData: s.keys.ca, ServerName: name + domain},
	}
}

func (s *Server) url(name string) string { return "https://" + s.Address() + "/r/" + name }

// Kubeconfig is a kubeconfig of a cluster. It is not checked that there is one.
func (s *Server) Kubeconfig(name string) ([]byte, error) {
	c := api.NewConfig()
	c.Clusters[name] = &api.Cluster{Server: s.url(name), TLSServerName: name + domain, CertificateAuthorityData: s.keys.ca}
	c.AuthInfos["admin"] = &api.AuthInfo{Token: s.keys.token(name)}
	c.Contexts[name] = &api.Context{Cluster: name, AuthInfo: "admin"}
	c.CurrentContext = name
	out, err := clientcmd.Write(*c)
	if err != nil {
		return nil, fmt.Errorf("writing a kubeconfig: %w", err)
	}
	return out, nil
}
