package cli

import (
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kyma-project/mothership/internal/statedir"
)

const aboutDown = `
Stops the control plane that mothership up has started from a state folder, with all its local runtimes, and removes the
folder. Clusters that were added by a kubeconfig are not touched. It may be repeated; a folder that mothership up did not
make is refused.
`

// stopGrace is how long a control plane may take to end in order; it bounds each of its parts by less.
const stopGrace = 90 * time.Second

func (a *app) down() *cobra.Command {
	dir, keep := "", false
	cmd := a.verb("down [flags]", "Stop a local control plane, and remove all of it", aboutDown, "  mothership down\n  mothership down --keep", nil,
		func(cmd *cobra.Command, _ []string) error { return a.runDown(cmd, dir, keep) })
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&dir, "dir", "", "the state folder `DIR` (default: $XDG_STATE_HOME/mothership, else ~/.local/state/mothership)")
	fs.BoolVar(&keep, "keep", false, "stop it only, and keep its state for the next start")
	return cmd
}

func (a *app) runDown(cmd *cobra.Command, named string, keep bool) error {
	dir, err := a.stateDir(named)
	if err != nil {
		return err
	}
	p := a.progress("stopping the control plane of " + dir)
	pid, killed, err := statedir.Stop(cmd.Context(), dir, stopGrace)
	p.close()
	if err != nil {
		return foreign(err)
	}
	switch {
	case killed:
		err = a.say("killed the control plane (process %d), since it had not ended within %s", pid, stopGrace)
	case pid != 0:
		err = a.say("stopped the control plane (process %d)", pid)
	case keep:
		err = a.say("no control plane runs from %s", dir)
	}
	if err != nil || keep {
		return err
	}
	return a.removeState(dir)
}

func (a *app) removeState(dir string) error {
	removed, left, err := statedir.Remove(dir)
	switch {
	case errors.Is(err, statedir.ErrInUse):
		return &hintedError{err: err, hint: "another mothership has just been started from it, or is removing it: try again"}
	case err != nil:
		return foreign(err)
	case !removed:
		return a.say("nothing to remove: %s does not exist", dir)
	case len(left) > 0:
		return a.say("removed the control plane's state from %s; the folder stays for what else is in it: %s", dir, strings.Join(left, ", "))
	}
	return a.say("removed %s, with the control plane's state and its local runtimes", dir)
}

func foreign(err error) error {
	if errors.Is(err, statedir.ErrForeign) {
		return &hintedError{err: err, hint: "nothing was touched: name the folder that mothership up was given with --dir"}
	}
	return err
}
