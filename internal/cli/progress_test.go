package cli

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kyma-project/mothership"
)

func waitingFor(messages ...string) []mothership.NotReady {
	var out []mothership.NotReady
	for _, m := range messages {
		out = append(out, mothership.NotReady{Object: mothership.Ref{Kind: "Job", Namespace: "demo", Name: "j"}, Message: m})
	}
	return out
}

// after lets virtual time pass.
func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestProgressWithoutTerminal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		p := newProgress(&out, terminal{}, palette{}, "installing web")
		p.event(mothership.Event{Action: mothership.ActionCreate})
		for _, step := range []struct {
			at      time.Duration // since the step before
			message string
		}{
			{300 * time.Millisecond, "0 of 3"}, // nobody is impatient yet
			{700 * time.Millisecond, "0 of 3"}, // said
			{1 * time.Second, "1 of 3"},        // too soon
			{3 * time.Second, "2 of 3"},        // too soon
			{2 * time.Second, "2 of 3"},        // said
			{9 * time.Second, "2 of 3"},        // said already
		} {
			after(step.at)
			p.waiting(waitingFor(step.message))
		}
		after(sayEvery)
		p.waiting(waitingFor("a", "b", "c", "d", "e\x1b[2J"))
		p.close()
		p.close()
		want := "installing web: 1.0 s, waiting for Job demo/j: 0 of 3\n" +
			"installing web: 7.0 s, waiting for Job demo/j: 2 of 3\n" +
			"installing web: 21 s, waiting for Job demo/j: a; Job demo/j: b; Job demo/j: c; and 2 more\n"
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestProgressOnTerminal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		screen := terminal{on: true, size: func() (int, int) { return 40, reservedRows + 2 }}
		p := newProgress(&out, screen, palette{}, "installing web")
		p.event(mothership.Event{Action: mothership.ActionCreate, Object: mothership.Ref{Kind: "ConfigMap", Name: "x"}})
		after(redrawEvery)
		p.waiting(waitingFor("a", "b", "c"))
		after(redrawEvery)
		p.close()
		after(10 * redrawEvery)
		want := "installing web: 1.0 s, 1 object, last …\n" +
			"\x1b[1A\x1b[J" + "installing web: 1.0 s, waiting for 3 o…\n  Job demo/j: a\n  Job demo/j: b\n  and 1 more\n" +
			"\x1b[4A\x1b[J" + "installing web: 2.0 s, waiting for 3 o…\n  Job demo/j: a\n  Job demo/j: b\n  and 1 more\n" +
			"\x1b[4A\x1b[J"
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
