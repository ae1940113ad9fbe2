package controlplane

import (
	"time"

	"github.com/kyma-project/mothership/internal/engine"
)

// Explanation is what GET /fleet/<namespace>/<name> answers: what the control plane has tried with a runtime, and what it does next.
type Explanation struct {
	// Unreachable says that the runtime does not answer; Failures is how often in a row, and NextProbe when it is asked again.
	Unreachable bool       `json:"unreachable,omitempty"`
	Failures    int        `json:"failures,omitempty"`
	NextProbe   *time.Time `json:"nextProbe,omitempty"`
	// Components that something is planned for. The runtime's own entry has no name.
	Components []ComponentExplanation `json:"components"`
}

// ComponentExplanation is one module, or the runtime itself.
type ComponentExplanation struct {
	Name string `json:"name"`
	// Phase: delayed, queued, running, waiting or failed.
	Phase string `json:"phase"`
	// Attempts is how many runs have failed since the last success.
	Attempts int `json:"attempts,omitempty"`
	// Last is how the last run ended, Message what it said, LastAt when that was.
	Last    string     `json:"last,omitempty"`
	Message string     `json:"message,omitempty"`
	LastAt  *time.Time `json:"lastAt,omitempty"`
	// Next is when it is worked on by itself.
	Next *time.Time `json:"next,omitempty"`
	// WaitingFor are the facts that it waits for.
	WaitingFor []string `json:"waitingFor,omitempty"`
}

func explanation(s engine.RuntimeState) Explanation {
	out := Explanation{
		Unreachable: s.Breaker.Open, Failures: s.Breaker.Failures, NextProbe: at(s.Breaker.NextProbe), Components: []ComponentExplanation{},
	}
	for _, c := range s.Components {
		e := ComponentExplanation{
			Name: c.Component, Phase: c.Phase.String(), Attempts: c.Attempts, Message: c.Message, LastAt: at(c.LastAt), Next: at(c.Next), WaitingFor: c.WaitingFor,
		}
		if e.LastAt != nil {
			e.Last = c.Last.String()
		}
		out.Components = append(out.Components, e)
	}
	return out
}

// at is nil for no time.
func at(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
