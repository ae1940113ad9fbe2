package infra

import (
	"encoding/json"
	"fmt"
)

// State is how a cluster is. Printing or marshalling it never shows the kubeconfig.
type State struct {
	// Ready says that the cluster can be worked on.
	Ready bool
	// Message says in a few words why it is not ready, for people. It has no secrets.
	Message string
	// Kubeconfig is set when the cluster is ready and its provider makes the kubeconfig. It is confidential.
	Kubeconfig []byte
	// KubeconfigVersion changes when the kubeconfig does. It is not confidential, and nothing can be told from it.
	KubeconfigVersion string
	// Facts about the cluster by key, as in v1beta2.FactEndpoint. Nothing confidential.
	Facts map[string]string
}

// shown is what of a State may be seen.
type shown struct {
	Ready             bool              `json:"ready"`
	Message           string            `json:"message,omitempty"`
	HasKubeconfig     bool              `json:"hasKubeconfig"`
	KubeconfigVersion string            `json:"kubeconfigVersion,omitempty"`
	Facts             map[string]string `json:"facts,omitempty"`
}

func (s State) shown() shown {
	return shown{s.Ready, s.Message, len(s.Kubeconfig) > 0, s.KubeconfigVersion, s.Facts}
}

// String describes the state without its kubeconfig.
func (s State) String() string { return fmt.Sprintf("%+v", s.shown()) }

// GoString is String, for %#v.
func (s State) GoString() string { return s.String() }

// Format prints String whatever the verb is: %x of a struct would print the kubeconfig.
func (s State) Format(f fmt.State, _ rune) { fmt.Fprint(f, s.String()) }

// MarshalJSON writes the state without its kubeconfig, which makes it good for logs and for nothing else.
func (s State) MarshalJSON() ([]byte, error) { return json.Marshal(s.shown()) }
