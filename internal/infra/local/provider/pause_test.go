package provider

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/kyma-project/mothership/internal/infra/local"
)

func TestPauses(t *testing.T) {
	t.Parallel()
	var got []time.Duration
	pause := time.Duration(0)
	for _, lasted := range []time.Duration{0, 0, time.Second, settled - 1, 0, 0, 0, settled, 0} {
		pause = pauseAfter(pause, lasted)
		got = append(got, pause/time.Second)
	}
	if diff := cmp.Diff([]time.Duration{1, 2, 4, 8, 16, 30, 30, 1, 2}, got); diff != "" {
		t.Errorf("seconds between starts (-want +got):\n%s", diff)
	}
}

func TestReason(t *testing.T) {
	t.Parallel()
	exit := &local.ExitError{Name: "kube-apiserver", How: "signal: killed", Log: "a line of the log"}
	got := reason(fmt.Errorf("starting: %w", exit), "/var/lib/eu")
	if want := "kube-apiserver ended: signal: killed; its log is in /var/lib/eu"; got != want {
		t.Errorf("%q; want %q", got, want)
	}
	long := reason(errors.New(strings.Repeat("überlang\n", longestMessage)), "")
	if len(long) > longestMessage || strings.Contains(long, "\n") || !utf8.ValidString(long) {
		t.Errorf("%d bytes: %q", len(long), long)
	}
}
