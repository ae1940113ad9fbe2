package module

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kyma-project/mothership/internal/apply"
	"github.com/kyma-project/mothership/internal/bundle"
	"github.com/kyma-project/mothership/internal/cluster"
	"github.com/kyma-project/mothership/reconciler"
)

func TestMissingKindIsWaitedForByALoopOnly(t *testing.T) {
	t.Parallel()
	err := &apply.ObjectError{Object: bundle.Ref{Kind: "Widget", Name: "a"}, Err: &cluster.NoKindError{}}
	if Retryable(err) {
		t.Error("a single install retries a missing kind")
	}
	if r := resultOf(t.Context(), err); r.Outcome != reconciler.OutcomeRetry {
		t.Errorf("a loop does not: %v", r.Outcome)
	}
}

func TestMergeOfValues(t *testing.T) {
	t.Parallel()
	base := map[string]any{"a": map[string]any{"x": 1, "y": 2}, "list": []any{1, 2}, "gone": "soon", "kept": true}
	over := map[string]any{"a": map[string]any{"y": 3}, "list": []any{9}, "gone": nil, "new": "n"}
	want := map[string]any{"a": map[string]any{"x": 1, "y": 3}, "list": []any{9}, "gone": nil, "kept": true, "new": "n"}
	if diff := cmp.Diff(want, Merge(base, over)); diff != "" {
		t.Errorf("merged (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"x": 1, "y": 2}, base["a"]); diff != "" {
		t.Errorf("the base was changed (-want +got):\n%s", diff)
	}
	if got := Merge(nil, over); len(got) != len(over) {
		t.Errorf("over nothing: %v", got)
	}
}

func TestMessagesAreBounded(t *testing.T) {
	t.Parallel()
	removal := &apply.Removal{}
	var notReady []apply.NotReady
	for i := range 3 * maxNamed {
		ref := bundle.Ref{Kind: "Widget", Name: fmt.Sprintf("w%d", i)}
		removal.Blocking = append(removal.Blocking, ref)
		notReady = append(notReady, apply.NotReady{Object: ref, Failed: i%2 == 0, Message: "no"})
	}
	for _, text := range []string{BlockedMessage(removal), summary(notReady)} {
		if !strings.Contains(text, "w4") || strings.Contains(text, "w5") || !strings.Contains(text, "and 10 more") {
			t.Errorf("message: %s", text)
		}
	}
	var failed *FailedError
	if err := Failure(notReady); !errors.As(err, &failed) || len(failed.Objects) != 8 {
		t.Errorf("failed: %v", err)
	}
}

func TestWhatTakesLongIsRetried(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{cluster.ErrTimeout, cluster.ErrExpired, cluster.ErrConflict} {
		if err := fmt.Errorf("waiting: %w", cause); !Retryable(err) {
			t.Errorf("%v is final", err)
		}
	}
	for _, cause := range []error{cluster.ErrInvalid, cluster.ErrForbidden} {
		if err := fmt.Errorf("applying: %w", cause); Retryable(err) {
			t.Errorf("%v is retried", err)
		}
	}
}
