package fleetview

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Event is something that happened to an object.
type Event struct {
	// At is when it happened last, Count how often.
	At      metav1.Time `json:"at"`
	Count   int32       `json:"count"`
	Type    string      `json:"type"`
	Reason  string      `json:"reason"`
	Message string      `json:"message"`
}

// Events are those of the API, the newest last.
func Events(list []corev1.Event) []Event {
	var out []Event
	for _, e := range list {
		out = append(out, Event{At: lastOf(&e), Count: countOf(&e), Type: e.Type, Reason: e.Reason, Message: e.Message})
	}
	slices.SortStableFunc(out, func(a, b Event) int { return a.At.Compare(b.At.Time) })
	return out
}

// lastOf is when an event happened last. Which field says so depends on who recorded it.
func lastOf(e *corev1.Event) metav1.Time {
	switch {
	case e.Series != nil && !e.Series.LastObservedTime.IsZero():
		return metav1.NewTime(e.Series.LastObservedTime.Time)
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp
	case !e.EventTime.IsZero():
		return metav1.NewTime(e.EventTime.Time)
	}
	return e.CreationTimestamp
}

func countOf(e *corev1.Event) int32 {
	if e.Series != nil {
		return e.Series.Count
	}
	return max(e.Count, 1)
}
