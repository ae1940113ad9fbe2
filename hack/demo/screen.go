package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// kymas by name.
type kymas map[string]*v1beta2.Kyma

// screen shows how the fleet is: in place on a terminal, otherwise a line for each change.
type screen struct {
	out      io.Writer
	terminal bool
	drawn    int               // lines of the table that is on the terminal
	last     map[string]string // the last line of each Kyma
}

func newScreen(out *os.File) *screen {
	return &screen{out: out, terminal: term.IsTerminal(int(out.Fd())) && os.Getenv("TERM") != "dumb", last: map[string]string{}}
}

// show shows the fleet as it is now; begun is when the step began.
func (s *screen) show(now kymas, begun time.Time) {
	if s.terminal {
		s.draw(now, begun)
		return
	}
	for _, name := range sorted(now) {
		line := lineOf(now[name])
		if s.last[name] != line && now[name].Status.State != "" {
			s.last[name] = line
			fmt.Fprintf(s.out, "   %6s  %s\n", since(begun), line)
		}
	}
}

// settle ends a table: what comes next is below it. Where there is no terminal, it is shown once, whole.
func (s *screen) settle(now kymas, begun time.Time) {
	if s.terminal {
		s.draw(now, begun)
	} else {
		fmt.Fprint(s.out, strings.Join(table(now), "\n")+"\n")
	}
	s.drawn = 0
}

// draw puts the table where the last one was.
func (s *screen) draw(now kymas, begun time.Time) {
	var b strings.Builder
	if s.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", s.drawn)
	}
	lines := append(table(now), "   "+since(begun))
	for _, line := range lines {
		b.WriteString("\x1b[2K" + line + "\n")
	}
	b.WriteString("\x1b[J")
	fmt.Fprint(s.out, b.String())
	s.drawn = len(lines)
}

// table has a row for each Kyma and a column for each module.
func table(now kymas) []string {
	var names []string
	for _, k := range now {
		for _, m := range k.Status.Modules {
			names = append(names, m.Name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "   RUNTIME\tSTATE\tREADY\t"+strings.ToUpper(strings.Join(names, "\t")))
	for _, name := range sorted(now) {
		k := now[name]
		cells := []string{"   " + name, string(k.Status.State), k.Status.ModulesReady}
		for _, module := range names {
			cells = append(cells, cell(moduleOf(k, module)))
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	_ = w.Flush() // into a builder, which takes everything
	return strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
}

// cell is a module in one word: its version where it is ready.
func cell(m *v1beta2.ModuleStatus) string {
	switch {
	case m == nil:
		return "-"
	case m.State == v1beta2.StateReady:
		return m.Version
	case m.State == v1beta2.StateProcessing:
		return m.Version + " …"
	}
	return strings.ToLower(string(m.State))
}

// lineOf is a Kyma on one line.
func lineOf(k *v1beta2.Kyma) string {
	line := fmt.Sprintf("%s  %-10s %s", k.Name, k.Status.State, k.Status.ModulesReady)
	for _, m := range k.Status.Modules {
		if m.State == v1beta2.StateWaiting {
			line += fmt.Sprintf("  %s waits for %s", m.Name, strings.Join(m.WaitingFor, ", "))
		}
	}
	if reachable := conditionOf(k, v1beta2.ConditionReachable); reachable != nil && reachable.Status == "False" {
		line += "  RuntimeReachable=False (" + reachable.Reason + ")"
	}
	return line
}

func sorted(now kymas) []string {
	var names []string
	for name := range now {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func moduleOf(k *v1beta2.Kyma, name string) *v1beta2.ModuleStatus {
	for i := range k.Status.Modules {
		if k.Status.Modules[i].Name == name {
			return &k.Status.Modules[i]
		}
	}
	return nil
}
