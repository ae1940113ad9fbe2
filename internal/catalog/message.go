package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/kyma-project/mothership/api/v1beta2"
)

func problemf(format string, args ...any) *Problem {
	return &Problem{State: v1beta2.StateError, Message: fmt.Sprintf(format, args...)}
}

// unknown says that a module does not exist, and which ones do.
func (r *resolution) unknown(name string) *Problem {
	if versions := r.catalog.Versions(name); len(versions) > 0 {
		return problemf("module %q has no ModuleReleaseMeta, so no channel has it: name one of its versions (%s)", name, some(versions))
	}
	return problemf("module %q is not in the catalogue: it has %s", name, some(r.catalog.Modules()))
}

// maxSome bounds how many names a message lists.
const maxSome = 10

func some(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	out := strings.Join(names[:min(len(names), maxSome)], ", ")
	if more := len(names) - maxSome; more > 0 {
		out += fmt.Sprintf(" and %d more", more)
	}
	return out
}

func channels(release *v1beta2.ModuleReleaseMeta) string {
	var names []string
	for _, c := range release.Spec.Channels {
		names = append(names, c.Channel+" ("+c.Version+")")
	}
	slices.Sort(names)
	return some(names)
}

// compareVersions compares by the rules of Semantic Versioning 2.0.0; what is no version is compared as text.
func compareVersions(a, b string) int {
	if a == b { // of most modules that are looked at
		return 0
	}
	va, errA := parseVersion(a)
	vb, errB := parseVersion(b)
	if errA != nil || errB != nil {
		return strings.Compare(a, b)
	}
	return va.Compare(vb)
}

// parseVersion reads a version, most of which are whole ones: those need no regular expression.
func parseVersion(v string) (*semver.Version, error) {
	if exact, err := semver.StrictNewVersion(v); err == nil {
		return exact, nil
	}
	return semver.NewVersion(v)
}
