package catalog

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kyma-project/mothership/api/v1beta2"
)

func called(name string, r *v1beta2.ModuleReleaseMeta) *v1beta2.ModuleReleaseMeta {
	r.Name = name
	return r
}

// Of two releases for one module the first by name counts, in whatever order they come, and the other when it goes.
func TestTwoReleasesOfOneModule(t *testing.T) {
	t.Parallel()
	first, second := called("a", release("istio", "regular 1.0.0")), called("b", release("istio", "regular 2.0.0"))
	for name, s := range map[string]*Store{"FirstThenSecond": store(first, second), "SecondThenFirst": store(second, first), "Again": store(first, second, first)} {
		if got := s.In(space1).Release("istio"); got != first {
			t.Errorf("%s: %v", name, got)
		}
		s.DropRelease(first)
		if got := s.In(space1).Release("istio"); got != second {
			t.Errorf("%s: after the first went: %v", name, got)
		}
		s.DropRelease(second)
		if got := s.In(space1).Release("istio"); got != nil || len(s.In(space1).Modules()) > 0 {
			t.Errorf("%s: after both went: %v", name, got)
		}
	}
}

func TestReleaseMovesToAnotherModule(t *testing.T) {
	t.Parallel()
	s := store(called("mine", release("istio", "regular 1.0.0")), called("a", release("kiali", "regular 1.0.0")))
	s.PutRelease(called("mine", release("kiali", "regular 2.0.0")))
	c := s.In(space1)
	if c.Release("istio") != nil || c.Release("kiali").Name != "a" {
		t.Errorf("istio has %v, kiali %v", c.Release("istio"), c.Release("kiali"))
	}
}

func TestStoreKeepsNamespacesApart(t *testing.T) {
	t.Parallel()
	s := store(template("istio", "1.0.0"), release("istio", "regular 1.0.0"), mandatory("must", "1.0.0", nil))
	c := s.In("other")
	if c.Release("istio") != nil || c.Template("istio", "1.0.0") != nil || len(c.Versions("istio"))+len(c.Modules())+len(c.Mandatory()) > 0 {
		t.Error("another namespace has the catalogue of the first")
	}
}

func TestVersionsAreSortedAsVersions(t *testing.T) {
	t.Parallel()
	var objects []any
	for _, v := range []string{"1.9.0", "1.10.0", "1.10.0-rc.1", "not-a-version", "0.1.0"} {
		objects = append(objects, template("istio", v))
	}
	s := store(objects...)
	if diff := cmp.Diff([]string{"not-a-version", "1.10.0", "1.10.0-rc.1", "1.9.0", "0.1.0"}, s.In(space1).Versions("istio")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, obj := range objects {
		s.DropTemplate(obj.(*v1beta2.ModuleTemplate))
	}
	if left := s.In(space1).Modules(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func TestStoreIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	s := NewStore()
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for range 200 {
				v := strconv.Itoa(rand.IntN(3)) + ".0.0"
				s.PutTemplate(template("istio", v))
				s.PutRelease(release("istio", "regular "+v))
				Resolve(kyma(named("istio"), named("kiali")), s.In(space1))
				if i%2 == 0 {
					s.DropTemplate(template("istio", v))
					s.DropRelease(release("istio"))
				}
			}
		})
	}
	group.Wait()
}
