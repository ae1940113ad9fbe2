package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/kyma-project/mothership"
)

// print writes a result in the form that was asked for. A table is left out with --quiet, data is not.
func (a *app) print(f *flags, result any, table func() string) error {
	switch f.output {
	case asJSON:
		text, err := indentedJSON(result)
		if err != nil {
			return err
		}
		return a.write(text)
	case asYAML:
		text, err := yaml.Marshal(result)
		if err != nil {
			return fmt.Errorf("printing the result: %w", err)
		}
		return a.write(string(text))
	}
	if a.quiet {
		return nil
	}
	return a.write(table())
}

// finish prints how far an install or uninstall came, also after an error, which it returns.
func (a *app) finish(f *flags, r *mothership.Result, err error, done string) error {
	if r == nil {
		return err
	}
	a.warn(r.Hooks, r.Warnings)
	if err != nil {
		done = "not done"
	}
	return errors.Join(err, a.print(f, r, func() string {
		if err != nil && len(r.Objects) == 0 {
			return "" // nothing was done; the error says why
		}
		return a.resultTable(r) + done + ": " + summary(r) + "\n"
	}))
}

// warn says what people should know beside the result.
func (a *app) warn(hooks []mothership.Hook, warnings []string) {
	for _, h := range hooks {
		a.note("warning", hookText(h))
	}
	for _, w := range warnings {
		a.note("warning", w)
	}
}

func hookText(h mothership.Hook) string {
	from := ""
	if h.Origin != "" {
		from = " of " + h.Origin
	}
	return fmt.Sprintf("hook not run: %s (%s)%s", h.Ref, strings.Join(h.Events, ", "), from)
}

// resultTable is a line per object to which something happened.
func (a *app) resultTable(r *mothership.Result) string {
	paint := a.palette(a.p.Stdout)
	var b strings.Builder
	for _, e := range r.Objects {
		if e.Action == mothership.ActionNone {
			continue
		}
		fmt.Fprintf(&b, "%s %s", paint.action(e.Action, fmt.Sprintf("%-9s", e.Action)), clean(e.Object.String()))
		if detail := detailOf(e); detail != "" {
			b.WriteString(paint.dim("  " + oneLine(detail)))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// detailOf says why something happened to an object.
func detailOf(e mothership.Event) string {
	var parts []string
	for _, d := range e.Drift {
		parts = append(parts, d.String())
	}
	if e.Message != "" {
		parts = append(parts, e.Message)
	}
	return strings.Join(parts, "; ")
}

// oneLine makes text safe and one line of it.
func oneLine(s string) string { return strings.Join(strings.Fields(clean(s)), " ") }

func (p palette) action(a mothership.Action, s string) string {
	switch a {
	case mothership.ActionCreate:
		return p.green(s)
	case mothership.ActionUpdate, mothership.ActionRepair:
		return p.yellow(s)
	case mothership.ActionPrune, mothership.ActionDelete, mothership.ActionRefuse:
		return p.red(s)
	case mothership.ActionAdopt, mothership.ActionKeep:
		return p.cyan(s)
	default:
		return s
	}
}

// counted are the actions in the order in which a summary counts them.
var counted = []mothership.Action{
	mothership.ActionCreate, mothership.ActionUpdate, mothership.ActionRepair, mothership.ActionAdopt, mothership.ActionPrune,
	mothership.ActionDelete, mothership.ActionRefuse, mothership.ActionKeep, mothership.ActionNone,
}

// summary counts what happened: 46 created, 0 unchanged, 1 hook not run, 1.9 s, 95 requests. Of an uninstall, which has no
// bundle, nothing is unchanged.
func summary(r *mothership.Result) string {
	var parts []string
	for _, action := range counted {
		if n := r.Count(action); n > 0 || action == mothership.ActionNone && r.BundleDigest != "" {
			parts = append(parts, fmt.Sprintf("%d %s", n, action))
		}
	}
	if n := len(r.Hooks); n > 0 {
		parts = append(parts, count(n, "hook")+" not run")
	}
	parts = append(parts, seconds(r.Duration), count(total(r.Requests), "request"))
	return strings.Join(parts, ", ")
}

func total(requests map[string]int) int {
	n := 0
	for _, of := range requests {
		n += of
	}
	return n
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// seconds is a duration for people: 0.1 s, 12 s, 3 min 5 s.
func seconds(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Truncate(time.Second).Seconds())
	}
	return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
}
