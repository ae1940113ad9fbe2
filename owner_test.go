package mothership_test

import (
	"errors"
	"testing"
	"time"

	"github.com/kyma-project/mothership"
	"github.com/kyma-project/mothership/internal/apply"
)

// TestOwnerSeesItsModules: who names a control plane sees what that has installed; everybody else is refused.
func TestOwnerSeesItsModules(t *testing.T) {
	t.Parallel()
	s := setup(t)
	m := s.module("letters", lettersV1)
	plane := mothership.New(mothership.Options{Owner: "plane-1"})
	o := mothership.InstallOptions{Timeout: time.Minute}
	if _, err := plane.Install(t.Context(), s.cfg, m, o); err != nil {
		t.Fatal(err)
	}
	for name, i := range map[string]*mothership.Installer{"nobody": s.installer, "another": mothership.New(mothership.Options{Owner: "plane-2"})} {
		if _, err := i.Install(t.Context(), s.cfg, m, o); !errors.Is(err, apply.ErrForeignSet) {
			t.Errorf("%s installs: %v", name, err)
		}
		if _, err := i.Diff(t.Context(), s.cfg, m, mothership.CompareOptions{}); !errors.Is(err, apply.ErrForeignSet) {
			t.Errorf("%s compares: %v", name, err)
		}
	}
	c, err := plane.Diff(t.Context(), s.cfg, m, mothership.CompareOptions{})
	if err != nil || !c.Equal() {
		t.Errorf("the owner compares: %v, %v", err, c)
	}
}
