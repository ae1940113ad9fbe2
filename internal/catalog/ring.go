package catalog

import (
	"slices"
	"strings"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// judged is a module, and its part in a ring of needs a problem.
func (r *resolution) judged(m *Module) Module {
	out := *m
	if ring := r.ringThrough(m.Name); ring != nil {
		out.Problem = problemf("a ring of needs: %s: none of them can ever be installed", strings.Join(ring, " → "))
		out.Template = nil
	}
	return out
}

// ringThrough is the shortest way along needs from a module back to itself, nil if there is none. Breadth first.
func (r *resolution) ringThrough(start string) []string {
	from := map[string]string{}
	for queue := []string{start}; len(queue) > 0; queue = queue[1:] {
		for _, next := range r.neededBy(queue[0]) {
			if next == start {
				return path(from, start, queue[0])
			}
			if _, seen := from[next]; !seen {
				from[next] = queue[0]
				queue = append(queue, next)
			}
		}
	}
	return nil
}

// path is start → … → last → start.
func path(from map[string]string, start, last string) []string {
	out := []string{start}
	for at := last; at != start; at = from[at] {
		out = append(out, at)
	}
	out = append(out, start)
	slices.Reverse(out)
	return out
}

// neededBy are the modules of this runtime that a module needs, sorted.
func (r *resolution) neededBy(name string) []string {
	m := r.module(name)
	if m == nil || m.Template == nil {
		return nil
	}
	var out []string
	for _, need := range m.Template.Spec.Needs {
		if module, ok := strings.CutPrefix(need, v1beta2.FactModulePrefix); ok && r.module(module) != nil {
			out = append(out, module)
		}
	}
	slices.Sort(out)
	return out
}
