package module

import (
	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/access"
)

// action is what follows from an observation.
type action uint8

const (
	// actLeave: there is nothing to do, and nothing to say.
	actLeave action = iota
	// actSkip: the runtime has what is wanted already.
	actSkip
	// actProblem: report what a person has to mend.
	actProblem
	// actUnmanage: leave it alone and say so.
	actUnmanage
	// actForget: drop it from the status without touching the runtime.
	actForget
	// actWait: report what is missing.
	actWait
	// actUnavailable: the source cannot be had; report that, unless it does not matter.
	actUnavailable
	// actWork: install, change or repair it.
	actWork
	// actRemove: remove it.
	actRemove
)

// next decides, from nothing but the observation.
func next(o *observation) action {
	switch {
	case !o.wanted:
		return actLeave
	case o.desired.Deleting:
		return nextOfUnwanted(o)
	case o.kyma.Spec.Suspend:
		return actLeave
	case o.desired.Unmanaged:
		return actUnmanage
	case o.problem != nil:
		return actProblem
	case o.unchanged() && isSettled(o) && !o.suspect:
		return actSkip // also where something that it needed to be installed is missing now
	case len(o.missing) > 0:
		return actWait
	case o.unavailable != nil:
		return actUnavailable
	}
	return actWork
}

func nextOfUnwanted(o *observation) action {
	switch {
	case o.desired.Unmanaged || o.gone():
		return actForget
	case o.kyma.Spec.Suspend && o.kyma.DeletionTimestamp == nil:
		return actLeave
	}
	return actRemove
}

// isSettled says whether the last run of this input came to its end.
func isSettled(o *observation) bool {
	state := v1beta2.StateReady
	if o.desired.Notice != nil {
		state = o.desired.Notice.State
	}
	return o.current.State == state
}

// gone says that there is nothing to be removed from any more.
func (o *observation) gone() bool { return access.Gone(o.runtime) }
