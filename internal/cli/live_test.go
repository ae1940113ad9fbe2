package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
)

func TestLiveTableIsDrawnOverItselfAndFits(t *testing.T) {
	t.Parallel()
	var screen strings.Builder
	l := &live{w: &screen, term: terminal{on: true, size: func() (int, int) { return 20, 8 }}}
	rows := func(n int) func(int) []string {
		return func(width int) []string {
			if width != 19 {
				t.Errorf("a line may have %d cells, want 19", width)
			}
			var out []string
			for i := range n {
				out = append(out, fmt.Sprintf("row %d", i))
			}
			return out
		}
	}
	l.draw(rows(2), "note")
	l.draw(rows(100), "a note that is too long for it")
	want := "row 0\nrow 1\nnote\n" +
		"\x1b[3A\r\x1b[Jrow 0\nrow 1\nrow 2\nrow 3\n… and 96 more\na note that is too…\n"
	if diff := cmp.Diff(want, screen.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestGridOfAnythingIsSafe(t *testing.T) {
	t.Parallel()
	now := time.Now()
	empty := []client.Object{&v1beta2.Kyma{}, &v1beta2.Runtime{}, &v1beta2.ModuleTemplate{}, &v1beta2.ModuleReleaseMeta{}}
	nasty := &v1beta2.Kyma{ObjectMeta: metav1.ObjectMeta{Name: "eu-1"}}
	nasty.Status.Modules = []v1beta2.ModuleStatus{{Name: "a", State: "Ready", Message: "two\nlines \x1b[2J", LastTransitionTime: metav1.NewTime(now.Add(time.Hour))}}
	for _, v := range views() {
		for _, g := range []grid{v.grid(nil, "", now), v.grid(append(empty, nasty), "", now)} {
			for _, shown := range []grid{g, g.narrow()} {
				for _, line := range shown.lines(palette{}, 40) {
					if strings.ContainsAny(line, "\n\x1b") || len([]rune(line)) > 40 && line != shown.header(shown.widths(nil)) {
						t.Errorf("get %s: %q", v.use, line)
					}
				}
			}
		}
	}
}

func TestGridPaintsStatesOnly(t *testing.T) {
	t.Parallel()
	g := grid{columns: []column{{name: "NAME"}, {name: "STATE", state: true}, {name: "MESSAGE"}}}
	for state, code := range map[v1beta2.State]string{
		v1beta2.StateReady: "32", v1beta2.StateError: "31", v1beta2.StateWarning: "33", v1beta2.StateProcessing: "36",
	} {
		got := g.line(palette{on: true}, cells("eu-1", string(state), "Ready"), []int{4, 5, 0}, 0)
		want := "eu-1   \x1b[" + code + "m" + string(state)
		if !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "\x1b[0mReady") {
			t.Errorf("%s: %q", state, got)
		}
	}
}

func TestIn(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for d, want := range map[time.Duration]string{-time.Hour: "now", 0: "now", 12 * time.Second: "in 12s", 3 * time.Minute: "in 3m", 2 * time.Hour: "in 120m"} {
		if got := in(now.Add(d), now); got != want {
			t.Errorf("in(%s) = %q, want %q", d, got, want)
		}
	}
}

func TestQuotedPathsAreSafeInAShell(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/home/me/.local/state": "/home/me/.local/state", "/with blank": "'/with blank'", "/it's": `'/it'\''s'`, "/$(rm)": "'/$(rm)'",
	} {
		if got := quoted(path); got != want {
			t.Errorf("quoted(%s) = %s, want %s", path, got, want)
		}
	}
}
