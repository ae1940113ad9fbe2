package module

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/kyma-project/mothership/internal/cluster"
	"github.com/kyma-project/mothership/internal/remote"
	"github.com/kyma-project/mothership/internal/source"
)

func TestRetryable(t *testing.T) {
	t.Parallel()
	passing := &remote.Error{Reason: remote.ReasonThrottled, Code: 429}
	refused := &remote.Error{Reason: remote.ReasonForbidden, Code: 403}
	for _, test := range []struct {
		name string
		err  error
		want bool
	}{
		{"None", nil, true},
		{"Passing", fmt.Errorf("applying: %w", passing), true},
		{"Refused", refused, false},
		{"OnePassingOneRefused", errors.Join(passing, refused), false},
		{"AllPassing", fmt.Errorf("stage: %w", errors.Join(passing, passing)), true},
		{"Deadline", fmt.Errorf("reading: %w", context.DeadlineExceeded), true},
		{"SourceDown", &source.Error{Reason: source.ErrUnavailable, Err: net.ErrClosed}, true},
		{"SourceWrong", &source.Error{Reason: source.ErrDigest}, false},
		{"MissingKind", &cluster.NoKindError{}, false},
		{"StaleAPIService", &cluster.NoKindError{Stale: true}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := Retryable(test.err); got != test.want {
				t.Errorf("Retryable(%v) = %t, want %t", test.err, got, test.want)
			}
		})
	}
}
