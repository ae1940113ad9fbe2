package module

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/catalog"
	"github.com/kyma-project/mothership/reconciler"
)

// seen is an observation of a module that is installed as it should be, changed.
func seen(change ...func(*observation)) *observation {
	o := &observation{
		kyma:    &v1beta2.Kyma{Status: v1beta2.KymaStatus{RuntimeUID: "it"}},
		runtime: &v1beta2.Runtime{Status: v1beta2.RuntimeStatus{Facts: []v1beta2.Fact{{Key: v1beta2.FactRuntimeUID, Value: "it"}}}},
		wanted:  true, digest: "input",
		current: &v1beta2.ModuleStatus{State: v1beta2.StateReady, InputDigest: "input", BundleDigest: "bundle"},
	}
	for _, c := range change {
		c(o)
	}
	return o
}

func unwanted(o *observation)  { o.wanted = false }
func suspended(o *observation) { o.kyma.Spec.Suspend = true }
func deleting(o *observation)  { o.desired.Deleting = true }
func deleted(o *observation)   { o.desired.Deleting, o.kyma.DeletionTimestamp = true, &metav1.Time{} }
func unmanaged(o *observation) { o.desired.Unmanaged = true }
func suspect(o *observation)   { o.suspect = true }
func other(o *observation)     { o.digest = "other" }
func unknown(o *observation)   { o.digest = "" }
func fresh(o *observation)     { o.current = nil }
func waiting(o *observation)   { o.missing = []string{"module.istio"} }
func lost(o *observation)      { o.runtime = nil }
func problem(o *observation)   { o.problem = &catalog.Problem{State: v1beta2.StateError} }
func noticed(o *observation)   { o.desired.Notice = &catalog.Problem{State: v1beta2.StateWarning} }
func elsewhere(o *observation) { o.runtime.Status.Facts[0].Value = "another" }
func nowhere(o *observation)   { o.kyma.Status.RuntimeUID = "" }
func leaving(o *observation)   { o.runtime.DeletionTimestamp = &metav1.Time{} }
func abandoned(o *observation) {
	leaving(o)
	o.runtime.Spec.DeletionPolicy = v1beta2.DeletionAbandon
}

func down(o *observation) {
	o.digest, o.unavailable = "", errors.New("the server of the source does not answer")
}

func in(s v1beta2.State) func(*observation) {
	return func(o *observation) { o.current.State = s }
}

func TestNext(t *testing.T) {
	t.Parallel()
	type changes = []func(*observation)
	for name, test := range map[string]struct {
		is   changes
		want action
	}{
		"AsItShouldBe":              {nil, actSkip},
		"NotWanted":                 {changes{unwanted, suspect, deleting}, actLeave},
		"New":                       {changes{fresh}, actWork},
		"OtherInput":                {changes{other}, actWork},
		"InputNotKnown":             {changes{unknown}, actWork},
		"SourceIsDown":              {changes{down}, actUnavailable},
		"SourceIsDownAndNotNeeded":  {changes{down, deleting}, actRemove},
		"Suspect":                   {changes{suspect}, actWork},
		"AnotherCluster":            {changes{elsewhere}, actWork},
		"ClusterNotKnown":           {changes{nowhere}, actWork},
		"NoRuntime":                 {changes{lost}, actWork},
		"NotReadyYet":               {changes{in(v1beta2.StateProcessing)}, actWork},
		"WasInError":                {changes{in(v1beta2.StateError)}, actWork},
		"Waited":                    {changes{in(v1beta2.StateWaiting)}, actWork},
		"Contested":                 {changes{in(v1beta2.StateWarning)}, actWork},
		"NoticeIsReported":          {changes{noticed, in(v1beta2.StateWarning)}, actSkip},
		"NoticeIsNews":              {changes{noticed}, actWork},
		"NoticeAndOtherInput":       {changes{noticed, in(v1beta2.StateWarning), other}, actWork},
		"Problem":                   {changes{problem}, actProblem},
		"ProblemOfSuspect":          {changes{problem, suspect, other}, actProblem},
		"ProblemBeforeWaiting":      {changes{problem, waiting}, actProblem},
		"Waiting":                   {changes{waiting, in(v1beta2.StateWaiting)}, actWait},
		"ThereAndNeedIsGone":        {changes{waiting}, actSkip},
		"WaitingAndOtherInput":      {changes{waiting, other, suspect}, actWait},
		"Unmanaged":                 {changes{unmanaged, other, suspect}, actUnmanage},
		"UnmanagedBeforeProblem":    {changes{unmanaged, problem}, actUnmanage},
		"Suspended":                 {changes{suspended, other, suspect}, actLeave},
		"SuspendedWithProblem":      {changes{suspended, problem}, actLeave},
		"SuspendedUnmanaged":        {changes{suspended, unmanaged}, actLeave},
		"Removed":                   {changes{deleting}, actRemove},
		"RemovedUnmanaged":          {changes{deleting, unmanaged}, actForget},
		"RemovedSuspended":          {changes{deleting, suspended}, actLeave},
		"RemovedWithoutRuntime":     {changes{deleting, lost}, actForget},
		"RemovedAbandoned":          {changes{deleting, abandoned}, actForget},
		"RemovedWhileRuntimeGoes":   {changes{deleting, leaving}, actRemove},
		"KymaDeleted":               {changes{deleted}, actRemove},
		"KymaDeletedSuspended":      {changes{deleted, suspended}, actRemove},
		"KymaDeletedUnmanaged":      {changes{deleted, unmanaged}, actForget},
		"KymaDeletedAndGone":        {changes{deleted, lost, suspended}, actForget},
		"KymaDeletedWithAProblem":   {changes{deleted, problem}, actRemove},
		"KymaDeletedWhileWaiting":   {changes{deleted, waiting}, actRemove},
		"AbandonedButStillWanted":   {changes{abandoned}, actSkip},
		"SuspectOfAnotherInput":     {changes{suspect, other}, actWork},
		"UnmanagedWithoutRuntime":   {changes{unmanaged, lost}, actUnmanage},
		"ProblemWithoutRuntime":     {changes{problem, lost, fresh}, actProblem},
		"SuspendedAndNeverThere":    {changes{suspended, fresh}, actLeave},
		"WaitingAndNeverThere":      {changes{waiting, fresh}, actWait},
		"InputNotKnownButNoticed":   {changes{noticed, in(v1beta2.StateWarning), unknown}, actWork},
		"RemovedOfAnotherCluster":   {changes{deleting, elsewhere}, actRemove},
		"KymaDeletedOnItsWayToo":    {changes{deleted, leaving}, actRemove},
		"KymaDeletedAndIsAbandoned": {changes{deleted, abandoned}, actForget},
	} {
		if got := next(seen(test.is...)); got != test.want {
			t.Errorf("%s: action %d, want %d", name, got, test.want)
		}
	}
}

// What is slow is looked at less and less often.
func TestPatience(t *testing.T) {
	t.Parallel()
	since := func(d time.Duration) *observation {
		return seen(func(o *observation) { o.current.LastTransitionTime = metav1.NewTime(time.Now().Add(-d)) })
	}
	for name, test := range map[string]struct {
		o        *observation
		asked    time.Duration
		min, max time.Duration
	}{
		"New":           {seen(fresh), 2 * time.Second, firstLook, firstLook},
		"Just":          {since(0), 2 * time.Second, firstLook, firstLook},
		"SomeSeconds":   {since(8 * time.Second), 2 * time.Second, 2 * time.Second, 2100 * time.Millisecond},
		"Long":          {since(time.Hour), 2 * time.Second, lastLook, lastLook},
		"AskedForLater": {since(0), time.Minute, time.Minute, time.Minute},
	} {
		if got := patience(test.o, test.asked); got < test.min || got > test.max {
			t.Errorf("%s: %s, want %s to %s", name, got, test.min, test.max)
		}
	}
}

// The digests of the status are those of what was applied to the end, or none once something was written.
func TestDigestsAfterFailure(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		touched bool
		result  reconciler.Result
		want    string
	}{
		"BeforeTheFirstWrite": {false, reconciler.Result{}, "input"},
		"InTheMiddle":         {true, reconciler.Result{}, ""},
		"AppliedNotReady":     {true, reconciler.Result{InputDigest: "new"}, "new"},
		"NothingToWrite":      {false, reconciler.Result{InputDigest: "new"}, "new"},
	} {
		o := seen()
		o.touched = test.touched
		m := *o.current
		if o.digests(&m, test.result); m.InputDigest != test.want {
			t.Errorf("%s: %q, want %q", name, m.InputDigest, test.want)
		}
	}
}

func TestWhatOthersCanRelyOn(t *testing.T) {
	t.Parallel()
	for state, want := range map[v1beta2.State]bool{
		v1beta2.StateReady: true, v1beta2.StateWarning: true, v1beta2.StateError: false, v1beta2.StateProcessing: false,
		v1beta2.StateDeleting: false, v1beta2.StateWaiting: false, v1beta2.StateUnmanaged: false,
	} {
		if got := works(&v1beta2.ModuleStatus{State: state, BundleDigest: "bundle"}); got != want {
			t.Errorf("%s: %t", state, got)
		}
	}
	if works(&v1beta2.ModuleStatus{State: v1beta2.StateWarning}) {
		t.Error("a module that was never there, or is being removed, counts as there")
	}
}
