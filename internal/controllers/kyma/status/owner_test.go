package status

import (
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// What is reported on a Kyma of another replica is dropped, and so is what was not written yet when it went there.
func TestOwner(t *testing.T) {
	t.Parallel()
	var owns atomic.Bool
	w := New(Options{Owns: func(types.NamespacedName) bool { return owns.Load() }}) // it has nobody to ask, so it must not
	kyma := types.NamespacedName{Namespace: "kcp-system", Name: "eu-1"}
	report := Report{Module: v1beta2.ModuleStatus{Name: "a", State: v1beta2.StateReady}}
	w.Report(kyma, report)
	w.Touch(kyma)
	w.Gone(kyma, "a", nil)
	if len(w.open) > 0 || w.queue.Len() > 0 {
		t.Errorf("kept of another's: %v", w.open)
	}
	owns.Store(true)
	w.Report(kyma, report)
	if len(w.open) != 1 {
		t.Fatal("nothing is kept of ours")
	}
	owns.Store(false)
	if again, err := w.write(t.Context(), kyma); again != 0 || err != nil || len(w.open) > 0 {
		t.Errorf("what went to another is not dropped: %v, %v, %v", again, err, w.open)
	}
}
