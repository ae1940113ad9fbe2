package render

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"helm.sh/helm/v4/pkg/chart/common"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kyma-project/mothership/internal/kind"
)

// DefaultKubeVersion is the version of Kubernetes that charts see if the request names none.
const DefaultKubeVersion = "v1.36.0"

// Capabilities are what a chart sees of a runtime.
type Capabilities struct {
	// KubeVersion of the runtimes, "v1.36.3"; charts see its minor only, as "v1.36.0". Empty: DefaultKubeVersion.
	KubeVersion string
	// APIVersions are declared in addition to the stable built-in ones, as group/version or group/version/Kind:
	// "monitoring.coreos.com/v1".
	APIVersions []string
}

var kubeVersionForm = regexp.MustCompile(`^v?(\d{1,3})\.(\d{1,4})(\.\d+)?([-+].*)?$`)

// normalise reduces capabilities to their class: the minor version, and sorted APIs without duplicates.
func (c Capabilities) normalise() (Capabilities, error) {
	version := c.KubeVersion
	if version == "" {
		version = DefaultKubeVersion
	}
	m := kubeVersionForm.FindStringSubmatch(version)
	if m == nil {
		return c, &Error{Problem: fmt.Sprintf("%q is no version of Kubernetes: it has the form v1.36.3", version), Err: ErrMalformed}
	}
	apis := slices.Clone(c.APIVersions)
	slices.Sort(apis)
	return Capabilities{KubeVersion: "v" + m[1] + "." + m[2] + ".0", APIVersions: slices.Compact(apis)}, nil
}

// helm makes Helm's form of normalised capabilities.
func (c Capabilities) helm() (*common.Capabilities, error) {
	version, err := common.ParseKubeVersion(c.KubeVersion)
	if err != nil {
		return nil, fmt.Errorf("parsing the version of Kubernetes: %w", err)
	}
	caps := common.DefaultCapabilities.Copy()
	caps.KubeVersion = *version
	caps.APIVersions = slices.Concat(stableAPIs(), c.APIVersions)
	return caps, nil
}

// stableAPIs are the built-in API versions that every runtime serves, each alone and with its kinds, as Helm's own
// discovery lists them. Alpha and beta versions are left out: a runtime may not serve them, and a chart that asks for
// one wants to know whether it does.
var stableAPIs = sync.OnceValue(func() common.VersionSet {
	seen := map[string]bool{"apiregistration.k8s.io/v1": true, "apiregistration.k8s.io/v1/APIService": true}
	for gvk := range scheme.Scheme.AllKnownTypes() {
		if _, served := kind.Lookup(gvk); !served || strings.Contains(gvk.Version, "alpha") || strings.Contains(gvk.Version, "beta") {
			continue
		}
		gv := gvk.GroupVersion().String()
		seen[gv], seen[gv+"/"+gvk.Kind] = true, true
	}
	var out common.VersionSet
	for v := range seen {
		out = append(out, v)
	}
	slices.Sort(out)
	return out
})
