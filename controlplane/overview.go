package controlplane

import (
	"time"

	"github.com/kyma-project/mothership/internal/engine"
)

// Overview is what GET /fleet answers: what the control plane has in hand, over all runtimes. docs/operations.md says how to read it.
type Overview struct {
	// Limit is how much may be in hand, InHand how much is. Throttled: as little as possible, because the control plane's own API
	// does not keep up.
	Limit     int  `json:"limit"`
	InHand    int  `json:"inHand"`
	Throttled bool `json:"throttled"`
	// SetAside is how much is under way with runtimes that do not answer, Probing how many probes are. A run is set aside when it has
	// waited for an answer for Patience.
	SetAside int    `json:"setAside"`
	Probing  int    `json:"probing"`
	Patience string `json:"patience"`
	// Queued by priority, and how much there is in each other phase.
	Queued  map[string]int `json:"queued"`
	Running int            `json:"running"`
	Delayed int            `json:"delayed"`
	Waiting int            `json:"waiting"`
	Failed  int            `json:"failed"`
	// Runtimes with something planned, and those that do not answer.
	Runtimes    int `json:"runtimes"`
	Unreachable int `json:"unreachable"`
	// Oldest is what is queued for longest of each priority, runtimes that do not answer left out.
	Oldest []Work `json:"oldest"`
	// Longest is what is under way for longest.
	Longest []Work `json:"longest"`
	// UnreachableLongest are the runtimes that have not answered for longest.
	UnreachableLongest []Unreachable `json:"unreachableLongest"`
}

// Work is something that is queued or under way.
type Work struct {
	Runtime string `json:"runtime"`
	// Component is empty for the runtime's own verification, or its probe.
	Component string     `json:"component,omitempty"`
	Priority  string     `json:"priority"`
	Since     *time.Time `json:"since,omitempty"`
	// Asking, AskingSince and SetAside are those of ComponentExplanation.
	Asking      int        `json:"asking,omitempty"`
	AskingSince *time.Time `json:"askingSince,omitempty"`
	SetAside    bool       `json:"setAside,omitempty"`
	Probe       bool       `json:"probe,omitempty"`
}

// Unreachable is a runtime that does not answer.
type Unreachable struct {
	Runtime   string     `json:"runtime"`
	Since     *time.Time `json:"since,omitempty"`
	NextProbe *time.Time `json:"nextProbe,omitempty"`
	Failures  int        `json:"failures"`
}

// topOfOverview bounds the lists of an overview.
const topOfOverview = 20

func overview(o engine.Overview) Overview {
	out := Overview{
		Limit: o.Limit, InHand: o.InHand, Throttled: o.Throttled, SetAside: o.Aside, Probing: o.Probing, Patience: o.Patience.String(),
		Queued: map[string]int{}, Running: o.Running, Delayed: o.Delayed, Waiting: o.Waiting, Failed: o.Failed,
		Runtimes: o.Runtimes, Unreachable: o.OpenBreakers,
		Oldest: []Work{}, Longest: []Work{}, UnreachableLongest: []Unreachable{},
	}
	for p, n := range o.Queued {
		out.Queued[engine.Priority(p).String()] = n
	}
	for _, q := range o.Oldest {
		out.Oldest = append(out.Oldest, Work{Runtime: q.Key.Runtime, Component: q.Key.Component, Priority: q.Priority.String(), Since: at(q.Since)})
	}
	for _, r := range o.Longest {
		out.Longest = append(out.Longest, Work{
			Runtime: r.Key.Runtime, Component: r.Key.Component, Priority: r.Priority.String(), Since: at(r.Since),
			Asking: r.Asking, AskingSince: at(r.AskingSince), SetAside: r.Aside, Probe: r.Probing,
		})
	}
	for _, u := range o.Unreachable {
		out.UnreachableLongest = append(out.UnreachableLongest, Unreachable{
			Runtime: u.Runtime, Since: at(u.Since), NextProbe: at(u.NextProbe), Failures: u.Failures,
		})
	}
	return out
}
