package mothership

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kyma-project/mothership/internal/apply"
	"github.com/kyma-project/mothership/internal/module"
)

// UninstallOptions of Uninstall. The zero value works.
type UninstallOptions struct {
	// Timeout of the whole call. Default: 5 m.
	Timeout time.Duration
	// Progress is told of each object that is deleted. It must be safe for concurrent use.
	Progress func(Event)
	// Waiting is told what is not gone yet, at each look.
	Waiting func([]NotReady)
}

// Uninstall removes all of a module, and returns when it is gone: custom resources first, definitions last, and only when no
// instance of them is left that somebody else made (else *BlockedError names them). Objects that are protected stay, and
// so does the namespace. Only name and namespace of the module are needed. A module that is not installed is no error.
func (i *Installer) Uninstall(ctx context.Context, cfg *rest.Config, m Module, o UninstallOptions) (*Result, error) {
	ctx, rt, end, err := i.begin(ctx, cfg, o.Timeout)
	if err != nil {
		return nil, err
	}
	defer end()
	run := &installation{rt: rt, m: m, o: InstallOptions{Progress: o.Progress}, started: time.Now(), events: map[Ref]Event{}}
	run.r = i.shared.WithProgress(run.event)
	removal, err := run.untilGone(ctx, o.Waiting)
	out := run.result()
	for _, e := range run.events {
		out.Objects = append(out.Objects, e)
	}
	sortEvents(out.Objects)
	if removal != nil {
		out.Blocking = removal.Blocking
		for _, ref := range removal.Kept {
			out.Objects = append(out.Objects, Event{Object: ref, Action: ActionKeep, Message: "its annotation says keep"})
		}
	}
	return out, err
}

func (run *installation) untilGone(ctx context.Context, waiting func([]NotReady)) (*apply.Removal, error) {
	doing := "uninstalling " + run.m.Name
	set, err := run.r.OpenRemoval(ctx, run.rt, run.m.component())
	if err != nil {
		return nil, orTimeout(ctx, doing, err)
	}
	removal := &apply.Removal{}
	pause := firstPause / 2
	for range maxPasses {
		var next *apply.Removal
		err := retry(ctx, doing, func(ctx context.Context) (err error) {
			next, err = set.Remove(ctx)
			return err
		})
		if err != nil {
			return removal, naming(err, removal.Waiting)
		}
		removal = next
		switch {
		case removal.Done:
			return removal, nil
		case len(removal.Blocking) > 0:
			return removal, &BlockedError{Message: module.BlockedMessage(removal)}
		}
		if waiting != nil {
			waiting(removal.Waiting)
		}
		if !sleep(ctx, &pause) {
			break
		}
	}
	return removal, interrupted(ctx, &TimeoutError{Doing: doing, NotReady: removal.Waiting})
}

// naming adds what was waited for to a timeout that came in the middle of a look.
func naming(err error, waiting []NotReady) error {
	var timeout *TimeoutError
	if !errors.As(err, &timeout) || len(waiting) == 0 {
		return err
	}
	timeout.NotReady = waiting
	if errors.Is(timeout.Err, errTimedOut) {
		timeout.Err = nil // it says nothing else
	}
	return err
}
