package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/fleetview"
)

const aboutWait = `
Waits by a watch until Kymas or Runtimes are as asked for: ready, which means that the control plane has seen the latest
change and everything is Ready; deleted; or in a state, such as state=Warning. Exit code 3 if that does not happen in
time; then it says what is not ready, and why.
`

const exampleWait = `
  mothership wait eu-1 --for=ready
  mothership wait kyma --all --for=ready --timeout 10m
  mothership wait runtime eu-1 --for=deleted`

// waiting is one call of wait.
type waiting struct {
	fleetFlags
	all     bool
	until   string
	timeout time.Duration

	kind  string // Kyma or Runtime
	names []string
	state v1beta2.State // of state=X
}

func (a *app) wait() *cobra.Command {
	w := &waiting{}
	cmd := a.verb("wait [kyma|runtime] (NAME...|--all) --for=(ready|deleted|state=STATE) [flags]", "Wait until Kymas or Runtimes are ready, gone, or in a state",
		aboutWait, exampleWait, []string{"[NAME...]"}, func(cmd *cobra.Command, args []string) error {
			if err := w.parse(cmd, args); err != nil {
				return err
			}
			return a.runWait(cmd, w)
		})
	w.addTo(cmd)
	cmd.Flags().BoolVar(&w.all, "all", false, "wait for all of the namespace")
	cmd.Flags().StringVar(&w.until, "for", "ready", "what to wait for: `ready|deleted|state=STATE`")
	cmd.Flags().DurationVar(&w.timeout, "timeout", 5*time.Minute, "the longest to wait")
	a.completing(cmd, &w.fleetFlags, &v1beta2.KymaList{})
	return cmd
}

// kindsToWait are the words for what can be waited for.
var kindsToWait = map[string]string{"kyma": "Kyma", "kymas": "Kyma", "ky": "Kyma", "runtime": "Runtime", "runtimes": "Runtime", "skr": "Runtime"}

func (w *waiting) parse(cmd *cobra.Command, args []string) error {
	w.kind = "Kyma"
	if len(args) > 0 && kindsToWait[args[0]] != "" && (w.all || len(args) > 1) {
		w.kind, args = kindsToWait[args[0]], args[1:]
	}
	w.names = args
	switch {
	case w.all && len(args) > 0:
		return usage(cmd, "give names or --all, not both")
	case !w.all && len(args) == 0:
		return usage(cmd, "name what to wait for, or give --all")
	case w.timeout <= 0:
		return usage(cmd, "--timeout %s: it must be more than 0", w.timeout)
	}
	for _, name := range args {
		if err := checkName(cmd, "name", name); err != nil {
			return err
		}
	}
	return w.parseUntil(cmd)
}

// states that can be waited for.
var states = []v1beta2.State{v1beta2.StateReady, v1beta2.StateProcessing, v1beta2.StateWarning, v1beta2.StateError, v1beta2.StateDeleting}

func (w *waiting) parseUntil(cmd *cobra.Command) error {
	state, isState := strings.CutPrefix(w.until, "state=")
	switch {
	case w.until == "ready", w.until == "deleted":
		return nil
	case !isState:
		return usage(cmd, "--for %q: it is ready, deleted or state=STATE", w.until)
	}
	for _, s := range states {
		if strings.EqualFold(state, string(s)) {
			w.state = s
			return nil
		}
	}
	var names []string
	for _, s := range states {
		names = append(names, string(s))
	}
	return usage(cmd, "--for %q: a state is %s", w.until, either(names))
}

// errLate ends a wait that took too long.
var errLate = errors.New("not in time")

func (a *app) runWait(cmd *cobra.Command, w *waiting) error {
	f, err := a.connect(cmd, &w.fleetFlags)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(cmd.Context(), w.timeout, errLate)
	defer cancel()
	var list client.ObjectList = &v1beta2.KymaList{}
	if w.kind == "Runtime" {
		list = &v1beta2.RuntimeList{}
	}
	var left []string
	var met int
	err = f.follow(ctx, []client.ObjectList{list}, func(objects []client.Object) (bool, error) {
		var err error
		left, met, err = w.look(objects)
		return len(left) == 0, err
	})
	switch {
	case errors.Is(err, errLate):
		return &lateError{what: w.what(), left: left, timeout: w.timeout}
	case err != nil:
		return w.missing(cmd.Context(), f, err)
	}
	if !a.quiet {
		return a.write(fmt.Sprintf("%s: %s\n", count(met, w.kind), w.met()))
	}
	return nil
}

// missing completes the error of a name that does not exist by what exists.
func (w *waiting) missing(ctx context.Context, f *fleet, err error) error {
	if m, ok := errors.AsType[*missingError](err); ok && m.name != "" {
		return f.notFound(ctx, m.kind, m.name)
	}
	return err
}

func (w *waiting) what() string {
	if w.state != "" {
		return "to be " + string(w.state)
	}
	return "to be " + w.until
}

func (w *waiting) met() string {
	if w.state != "" {
		return string(w.state)
	}
	return w.until
}

// look says what is left of what is waited for, with the reason, and how many are as they should be.
func (w *waiting) look(objects []client.Object) (left []string, met int, err error) {
	byName := map[string]client.Object{}
	names := w.names
	for _, obj := range objects {
		byName[obj.GetName()] = obj
		if w.all {
			names = append(names, obj.GetName())
		}
	}
	if w.all && len(names) == 0 && w.until != "deleted" {
		return nil, 0, &hintedError{err: fmt.Errorf("there is no %s in namespace %s", w.kind, w.namespace), hint: "make one with mothership runtime add, or name another namespace with -n"}
	}
	for _, name := range names {
		obj := byName[name]
		if obj == nil && w.until != "deleted" {
			return nil, 0, &missingError{w.kind, name, w.namespace}
		}
		if why := w.lacking(obj); why != "" {
			left = append(left, w.kind+" "+name+" "+why)
		} else {
			met++
		}
	}
	return left, met, nil
}

// lacking says why an object is not as it should be, nothing if it is; nil is an object that does not exist.
func (w *waiting) lacking(obj client.Object) string {
	var state v1beta2.State
	var current bool
	var message string
	var modules []fleetview.Module
	switch o := obj.(type) {
	case nil:
		return ""
	case *v1beta2.Kyma:
		state, current = o.Status.State, o.Status.ObservedGeneration == o.Generation
		message, _ = readyCondition(o.Status.Conditions)
		modules = fleetview.Modules(o)
	case *v1beta2.Runtime:
		state, current = o.Status.State, o.Status.ObservedGeneration == o.Generation
		message, _ = readyCondition(o.Status.Conditions)
	}
	want := v1beta2.StateReady
	if w.state != "" {
		want = w.state
	}
	switch {
	case w.until == "deleted":
		return "still exists" + colon(message)
	case state == want && (current || want != v1beta2.StateReady):
		return ""
	case state == "":
		return "was not looked at by the control plane yet"
	case state == want:
		return "has a change that the control plane has not seen yet"
	}
	return "is " + string(state) + colon(message) + unready(modules)
}

// unready are the modules that are not ready, one per line.
func unready(modules []fleetview.Module) string {
	modules = slices.DeleteFunc(modules, func(m fleetview.Module) bool {
		return m.State == v1beta2.StateReady || m.State == v1beta2.StateUnmanaged
	})
	var b strings.Builder
	for i, m := range modules {
		if i == maxListed {
			fmt.Fprintf(&b, "\nand %d more", len(modules)-i)
			break
		}
		fmt.Fprintf(&b, "\nmodule %s is %s%s", m.Module, m.State, colon(m.Message))
	}
	return b.String()
}

// lateError is a wait that took too long.
type lateError struct {
	what    string
	left    []string
	timeout time.Duration
}

// Error says what is not as it should be.
func (e *lateError) Error() string {
	left, more := e.left, ""
	if len(left) > maxListed {
		left, more = left[:maxListed], fmt.Sprintf("\nand %d more", len(left)-maxListed)
	}
	return fmt.Sprintf("waiting for %s %s: not within %s\n%s%s", count(len(e.left), "object"), e.what, e.timeout, strings.Join(left, "\n"), more)
}
