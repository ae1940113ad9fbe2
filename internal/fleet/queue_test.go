package fleet_test

import (
	"testing"
	"time"

	"github.com/kyma-project/mothership/internal/engine"
	"github.com/kyma-project/mothership/internal/fleet"
)

// Work on runtimes of other replicas is left out, whichever way it comes.
func TestQueue(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		owns func(string) bool
		want int
	}{
		"All": {nil, 2}, "Ours": {func(runtime string) bool { return runtime == first.String() }, 1}, "None": {func(string) bool { return false }, 0},
	} {
		for way, add := range map[string]func(*fleet.Queue, engine.Key){
			"Add":      func(q *fleet.Queue, k engine.Key) { q.Add(k, engine.PriorityChange) },
			"Renew":    func(q *fleet.Queue, k engine.Key) { q.Renew(k, engine.PriorityTrigger) },
			"AddAfter": func(q *fleet.Queue, k engine.Key) { q.AddAfter(k, time.Hour, engine.PriorityChange) },
			"Preempt":  func(q *fleet.Queue, k engine.Key) { q.Preempt(k) },
		} {
			q := &fleet.Queue{Engine: engine.New(nil, engine.Options{}), Owns: test.owns}
			add(q, fleet.ModuleKey(first, "a"))
			add(q, fleet.ModuleKey(second, "a"))
			if got := q.Stats().Runtimes; got != test.want {
				t.Errorf("%s, %s: work on %d runtimes, want %d", name, way, got, test.want)
			}
		}
	}
}
