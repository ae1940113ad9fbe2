package reconciler_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kyma-project/mothership/reconciler"
)

func TestHooksPassOnWhatTheBaseDid(t *testing.T) {
	t.Parallel()
	base := reconciler.Func(func(context.Context, reconciler.Request) reconciler.Result {
		r := reconciler.Done(reconciler.Fact{Key: "base", Value: "1"})
		r.InputDigest, r.BundleDigest = "input", "bundle"
		r.Warnings = []reconciler.Warning{{Reason: "B", Message: "b"}}
		return r
	})
	for name, test := range map[string]struct{ last, want reconciler.Result }{
		"Done": {
			reconciler.Result{Warnings: []reconciler.Warning{{Reason: "A", Message: "a"}}},
			reconciler.Result{Facts: []reconciler.Fact{{Key: "base", Value: "1"}}, Warnings: []reconciler.Warning{{Reason: "A", Message: "a"}, {Reason: "B", Message: "b"}}},
		},
		"Waiting": {
			reconciler.Waiting("x"),
			reconciler.Result{Outcome: reconciler.OutcomeWaiting, Needs: []string{"x"}, Warnings: []reconciler.Warning{{Reason: "B", Message: "b"}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after := reconciler.Func(func(context.Context, reconciler.Request) reconciler.Result { return test.last })
			test.want.InputDigest, test.want.BundleDigest = "input", "bundle"
			got := reconciler.With(base, reconciler.Hooks{After: after}).Reconcile(t.Context(), reconciler.Request{})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHooksPassTheCheckpointOn(t *testing.T) {
	t.Parallel()
	newer := errors.New("newer")
	stopping := reconciler.Func(func(_ context.Context, req reconciler.Request) reconciler.Result {
		if err := req.Stop(); err != nil {
			return reconciler.Superseded(err)
		}
		return reconciler.Done()
	})
	for name, test := range map[string]struct {
		base  reconciler.Reconciler
		hooks reconciler.Hooks
	}{
		"Base":   {stopping, reconciler.Hooks{}},
		"Before": {reconciler.Func(nil), reconciler.Hooks{Before: stopping}},
		"After": {
			reconciler.Func(func(context.Context, reconciler.Request) reconciler.Result { return reconciler.Done() }),
			reconciler.Hooks{After: stopping},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := reconciler.With(test.base, test.hooks).Reconcile(t.Context(), reconciler.Request{Checkpoint: func() error { return newer }})
			if r.Outcome != reconciler.OutcomeSuperseded || !errors.Is(r.Err, newer) {
				t.Errorf("result: %+v", r)
			}
		})
	}
	if err := (reconciler.Request{}).Stop(); err != nil {
		t.Errorf("without a checkpoint: %v", err)
	}
}

func TestWarningsAreBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 200)
	list := []reconciler.Warning{{Reason: "Z", Message: "twice"}, {Reason: "A", Message: long}, {Reason: "Z", Message: "twice"}}
	got := reconciler.BoundWarnings(list)
	if len(got) != 2 || got[0].Reason != "A" || len(got[0].Message) > 300 || !strings.HasSuffix(got[0].Message, "ä …") {
		t.Errorf("warnings: %q", got)
	}
	if list[0].Reason != "Z" {
		t.Error("the list given was changed")
	}
	if got := reconciler.BoundWarnings(nil); got != nil {
		t.Errorf("of none: %v", got)
	}
	var many []reconciler.Warning
	for i := range 25 {
		many = append(many, reconciler.Warning{Reason: "R", Message: fmt.Sprintf("%02d", i)})
	}
	got = reconciler.BoundWarnings(many)
	want := reconciler.Warning{Reason: reconciler.WarningMore, Message: "and 16 more"}
	if len(got) != 10 || got[8].Message != "08" || got[9] != want {
		t.Errorf("warnings: %v", got)
	}
	if got := reconciler.BoundWarnings(many[:10]); len(got) != 10 || got[9].Message != "09" {
		t.Errorf("exactly as many as fit: %v", got)
	}
}
