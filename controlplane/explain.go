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
	// Since is when it stopped answering.
	Since *time.Time `json:"since,omitempty"`
	// Answers says that it has answered since there is something to do; until then its work begins one by one. Running is how much of
	// it is under way, RunningMost how much may be.
	Answers     bool `json:"answers,omitempty"`
	Running     int  `json:"running,omitempty"`
	RunningMost int  `json:"runningMost,omitempty"`
	// Position is its place among the runtimes with something to begin of the same Priority; 1 is the next one.
	Position int    `json:"position,omitempty"`
	Priority string `json:"priority,omitempty"`
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
	// Priority of work that is queued or under way: verify, retry, trigger or change; Since is when it was queued or began.
	Priority string     `json:"priority,omitempty"`
	Since    *time.Time `json:"since,omitempty"`
	// Asking is how many answers of the runtime are awaited, AskingSince since when none came. SetAside says that it does not count
	// as in hand because of that. Again: it is worked on once more afterwards.
	Asking      int        `json:"asking,omitempty"`
	AskingSince *time.Time `json:"askingSince,omitempty"`
	SetAside    bool       `json:"setAside,omitempty"`
	Again       bool       `json:"again,omitempty"`
	// WaitingFor are the facts that it waits for.
	WaitingFor []string `json:"waitingFor,omitempty"`
}

func explanation(s engine.RuntimeState) Explanation {
	out := Explanation{
		Unreachable: s.Breaker.Open, Failures: s.Breaker.Failures, NextProbe: at(s.Breaker.NextProbe), Since: at(s.Breaker.Since),
		Answers: s.Answers, Running: s.Running, RunningMost: s.RunningMost, Position: s.Position, Components: []ComponentExplanation{},
	}
	if s.Position > 0 {
		out.Priority = s.Priority.String()
	}
	for _, c := range s.Components {
		e := ComponentExplanation{
			Name: c.Component, Phase: c.Phase.String(), Attempts: c.Attempts, Message: c.Message, LastAt: at(c.LastAt), Next: at(c.Next), WaitingFor: c.WaitingFor,
		}
		if e.LastAt != nil {
			e.Last = c.Last.String()
		}
		if e.Since = at(c.Since); e.Since != nil {
			e.Priority = c.Priority.String()
		}
		e.Asking, e.AskingSince, e.SetAside, e.Again = c.Asking, at(c.AskingSince), c.Aside, c.Again
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
