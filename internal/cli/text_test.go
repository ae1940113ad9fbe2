package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kyma-project/mothership"
)

func TestValueText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   any
		want string
	}{
		{nil, "(none)"},
		{"plain text", "plain text"},
		{"", `""`},
		{"5", `"5"`},
		{"true", `"true"`},
		{"(none)", `"(none)"`},
		{" blank", `" blank"`},
		{"\x1b[31mred", `"\x1b[31mred"`},
		{"{not json", `"{not json"`},
		{float64(5), "5"},
		{int64(1 << 40), "1099511627776"},
		{map[string]any{"b": "x", "a": []any{1}}, `{"a":[1],"b":"x"}`},
		{func() {}, "(cannot be shown)"},
	} {
		if got := valueText(c.in); got != c.want {
			t.Errorf("valueText(%#v) = %s, want %s", c.in, got, c.want)
		}
	}
}

func TestShorten(t *testing.T) {
	t.Parallel()
	image := "registry.example.com/very/long/path/that/nobody/reads/" + strings.Repeat("x", 40)
	before, after := shorten(image+":1.0", image+":2.0")
	if diff := cmp.Diff([]string{"…xxxxxxxxxxx:1.0", "…xxxxxxxxxxx:2.0"}, []string{before, after}); diff != "" {
		t.Errorf("long values with a common beginning (-want +got):\n%s", diff)
	}
	before, after = shorten("(none)", strings.Repeat("y", 200))
	if before != "(none)" || len([]rune(after)) != maxValue || !strings.HasSuffix(after, "…") {
		t.Errorf("a long new value: %s → %s", before, after)
	}
}

func TestUnified(t *testing.T) {
	t.Parallel()
	numbered := func(from, to int) string {
		var b strings.Builder
		for i := from; i < to; i++ {
			fmt.Fprintf(&b, "line %d\n", i)
		}
		return b.String()
	}
	for _, c := range []struct{ name, from, to, want string }{
		{"OneLine", "a: 1\nb: 2\nc: 3\n", "a: 1\nb: 5\nc: 3\n", "        a: 1\n      - b: 2\n      + b: 5\n        c: 3\n"},
		{"FarFromBothEnds", numbered(0, 9), strings.Replace(numbered(0, 9), "line 4\n", "", 1),
			"      …\n        line 2\n        line 3\n      - line 4\n        line 5\n        line 6\n      …\n"},
		{"FromNothing", "", "a\nb\n", "      + a\n      + b\n"},
		{"Escapes", "a\nb", "a\n\x1b[2J", "        a\n      - b\n      + \\u001b[2J\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, unified(palette{}, c.from, c.to)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	t.Run("IsBounded", func(t *testing.T) {
		t.Parallel()
		got := unified(palette{}, numbered(0, 3000), numbered(5000, 8000))
		if n := strings.Count(got, "\n"); n != maxDiffLines+1 || !strings.Contains(got, "… and 5960 more lines") {
			t.Errorf("%d lines:\n%s", n, got)
		}
	})
}

// TestCompareLinesGivesBothTexts is the property that a comparison must have: it is made of both texts.
func TestCompareLinesGivesBothTexts(t *testing.T) {
	t.Parallel()
	texts := []string{"", "a", "a\nb\nc", "c\nb\na", "b\nb\nb\na", "x\na\ny\nb\nz"}
	for _, from := range texts {
		for _, to := range texts {
			var a, b []string
			for _, e := range compareLines(lines(from), lines(to)) {
				if e.op != '+' {
					a = append(a, e.line)
				}
				if e.op != '-' {
					b = append(b, e.line)
				}
			}
			if strings.Join(a, "\n") != from || strings.Join(b, "\n") != to {
				t.Errorf("%q → %q: gives back %q → %q", from, to, a, b)
			}
		}
	}
}

func TestSeconds(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0.0 s", 1900 * time.Millisecond: "1.9 s", 12900 * time.Millisecond: "12 s", 125 * time.Second: "2 min 5 s",
	} {
		if got := seconds(d); got != want {
			t.Errorf("seconds(%s) = %s, want %s", d, got, want)
		}
	}
}

func TestChangeText(t *testing.T) {
	t.Parallel()
	web := mothership.Ref{Group: "apps", Kind: "Deployment", Namespace: "demo", Name: "web"}
	for _, c := range []struct {
		change mothership.Change
		want   string
	}{
		{mothership.Change{Object: web, Action: mothership.ActionCreate}, "+ Deployment.apps demo/web\n"},
		{mothership.Change{Object: web, Action: mothership.ActionPrune}, "- Deployment.apps demo/web\n"},
		{mothership.Change{Object: web, Action: mothership.ActionRefuse, Reason: "it belongs to helm"}, "! Deployment.apps demo/web refused: it belongs to helm\n"},
		{mothership.Change{Object: web, Action: mothership.ActionAdopt}, "^ Deployment.apps demo/web taken over\n"},
		{mothership.Change{Object: web, Action: mothership.ActionRepair, Reason: "is being deleted"}, "~ Deployment.apps demo/web is being deleted\n"},
		{
			mothership.Change{Object: web, Action: mothership.ActionUpdate, Fields: []mothership.FieldChange{
				{Path: ".spec.replicas", From: 5, To: 2, Manager: "kubectl-edit"}, {Path: ".metadata.labels.a", To: "b"},
				{Path: ".spec.paused", Manager: "somebody"}, {Path: ".spec.strategy"},
			}},
			"~ Deployment.apps demo/web\n    .spec.replicas: 5 → 2 (kubectl-edit)\n    .metadata.labels.a: (none) → b\n" +
				"    .spec.paused was changed by somebody\n    .spec.strategy was removed\n",
		},
	} {
		if diff := cmp.Diff(c.want, changeText(palette{}, c.change)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestProblemsOf(t *testing.T) {
	t.Parallel()
	at := func(name, hint string) error {
		return &mothership.ObjectError{Object: mothership.Ref{Kind: "ConfigMap", Name: name}, Hint: hint, Err: io.ErrUnexpectedEOF}
	}
	stuck := []mothership.NotReady{{Object: mothership.Ref{Kind: "Job", Name: "j"}, Message: "the job failed", Failed: true}}
	for _, c := range []struct {
		name string
		err  error
		want []problem
	}{
		{"Joined", errors.Join(at("a", "h"), errors.Join(at("b", "h"), io.EOF)), []problem{
			{"ConfigMap a: unexpected EOF", "h"}, {"ConfigMap b: unexpected EOF", "h"}, {"EOF", ""}}},
		{"WrappedKeepsItsWordsAndHint", fmt.Errorf("installing web: %w", at("a", "h")), []problem{{"installing web: ConfigMap a: unexpected EOF", "h"}}},
		{"SeveralCausesOfOneError", fmt.Errorf("%w because of %w", io.EOF, io.ErrNoProgress), []problem{
			{"EOF because of multiple Read calls return no data or error", ""}}},
		{"Late", &mothership.TimeoutError{Doing: "waiting", NotReady: stuck}, []problem{
			{"waiting: not done in time\nJob j: the job failed", "give it more time with --timeout, or look with kubectl describe at what it waits for"}}},
		{"LateBecauseOfErrors", &mothership.TimeoutError{Doing: "installing", Err: errors.Join(at("a", ""), at("b", ""))}, []problem{
			{"installing: not done in time", "give it more time with --timeout"}, {"ConfigMap a: unexpected EOF", ""}, {"ConfigMap b: unexpected EOF", ""}}},
		{"Failed", &mothership.FailedError{Objects: stuck}, []problem{{"failed: Job j: the job failed", ""}}},
		{"Blocked", &mothership.BlockedError{Message: "blocked"}, []problem{{"blocked", "delete them, and uninstall again"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, problemsOf(c.err), cmp.AllowUnexported(problem{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestReportListsOnceAndIsBounded(t *testing.T) {
	t.Parallel()
	var stderr strings.Builder
	a := &app{p: Process{Stderr: &stderr, Getenv: func(string) string { return "" }}}
	var problems []problem
	for i := range maxProblems + 7 {
		problems = append(problems, problem{text: fmt.Sprintf("problem %d\nsecond line", i), hint: "try again"}, problem{text: "problem 0\nsecond line"})
	}
	a.report(problems)
	got := stderr.String()
	if n := strings.Count(got, "error: problem "); n != maxProblems {
		t.Errorf("%d problems are listed, want %d", n, maxProblems)
	}
	if !strings.Contains(got, "error: problem 0\n  second line\n") || !strings.HasSuffix(got, "error: and 7 more\nhint: try again\n") {
		t.Errorf("the list reads:\n%s", got)
	}
}
