package catalog

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// FuzzResolve resolves Kymas over catalogues that are drawn from a few names, so that all of them meet: it must not panic, must come
// to the same whatever the order of what goes in, must change nothing, and must name each module once.
func FuzzResolve(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed, seed*7)
	}
	f.Fuzz(func(t *testing.T, a, b uint64) {
		r := rand.New(rand.NewPCG(a, b)) //nolint:gosec // what is drawn is to be repeatable
		objects := drawCatalogue(r)
		k := drawKyma(r)
		before := k.DeepCopy()
		got := Resolve(k, store(objects...).In(space1))
		if diff := cmp.Diff(before, k); diff != "" {
			t.Errorf("the Kyma was changed:\n%s", diff)
		}
		r.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
		var names []string
		for _, m := range got {
			names = append(names, m.Name)
		}
		if !slices.Equal(names, Names(k, store(objects...).In(space1))) {
			t.Errorf("Names says others than %q", names)
		}
		if diff := cmp.Diff(got, Resolve(k, store(objects...).In(space1))); diff != "" {
			t.Errorf("in another order:\n%s", diff)
		}
		sane(t, k, got, store(objects...).In(space1))
	})
}

// sane checks what holds of every result.
func sane(t *testing.T, k *v1beta2.Kyma, got []Module, c Catalog) {
	t.Helper()
	if !slices.IsSortedFunc(got, func(a, b Module) int {
		if a.Name < b.Name {
			return -1
		}
		return 1 // also where they are equal
	}) {
		t.Errorf("names are not sorted, or not unique: %v", got)
	}
	for _, m := range got {
		one, ok := ResolveOne(k, m.Name, c)
		if diff := cmp.Diff(m, one); !ok || diff != "" {
			t.Errorf("alone it is another:\n%s", diff)
		}
		if can := m.Template != nil; can == (m.Deleting || m.Problem != nil) {
			t.Errorf("neither something to do nor a reason not to, or both: %+v", m)
		}
		if m.Namespace == "" || m.Deleting && m.Spec != nil {
			t.Errorf("%+v", m)
		}
		if was := statusOf(k, m.Name); isApplied(was) && m.Template != nil && compareVersions(m.Version, was.Version) < 0 {
			t.Errorf("%s is downgraded from %s to %s", m.Name, was.Version, m.Version)
		}
	}
}

var (
	someModules  = []string{"a", "b", "c", "d"}
	someVersions = []string{"1.0.0", "2.0.0", "2.0.0-rc.1", "x"}
	someChannels = []string{"regular", "fast"}
	someSpaces   = []string{"", "here", "there"}
)

func one[T any](r *rand.Rand, of []T) T { return of[r.IntN(len(of))] }

func drawCatalogue(r *rand.Rand) []any {
	var out []any
	for _, module := range someModules {
		for _, v := range someVersions {
			if r.IntN(3) == 0 {
				continue
			}
			var needs []string
			for range r.IntN(3) {
				needs = append(needs, one(r, someModules))
			}
			out = append(out, template(module, v, needing(needs...), in(one(r, someSpaces))))
		}
		switch r.IntN(4) {
		case 0:
		case 1:
			out = append(out, mandatory(module, one(r, someVersions), drawLabels(r)))
		default:
			m := release(module, one(r, someChannels)+" "+one(r, someVersions))
			if labels := drawLabels(r); labels != nil {
				m.Spec.KymaSelector = &metav1.LabelSelector{MatchLabels: labels}
			}
			out = append(out, m)
		}
	}
	return out
}

func drawLabels(r *rand.Rand) map[string]string {
	if r.IntN(2) == 0 {
		return nil
	}
	return map[string]string{"plan": one(r, someChannels)}
}

func drawKyma(r *rand.Rand) *v1beta2.Kyma {
	k := kyma()
	k.Labels = drawLabels(r)
	for _, module := range someModules {
		if r.IntN(3) > 0 {
			m := named(module)
			m.Version, m.Channel = one(r, append(someVersions, "", "", "")), one(r, append(someChannels, "", ""))
			if r.IntN(4) == 0 {
				m.Managed = new(bool)
			}
			k.Spec.Modules = append(k.Spec.Modules, m)
		}
		if r.IntN(2) == 0 {
			installed(k, module, one(r, someVersions), at(one(r, someSpaces)), func(m *v1beta2.ModuleStatus) {
				m.BundleDigest = one(r, []string{"", "sha256:it"})
			})
		}
	}
	if r.IntN(8) == 0 {
		deleted(k)
	}
	return k
}
