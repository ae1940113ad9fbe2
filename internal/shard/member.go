package shard

import (
	"maps"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// sighting is the last that was seen of a replica.
type sighting struct {
	version  string        // of its lease; empty if it has none
	at       time.Time     // when that version was first seen
	duration time.Duration // of its lease
	request  time.Duration // is how long its requests may take
}

// members are the replicas that were seen, and those that the table names.
type members struct {
	seen map[string]*sighting
	last time.Time // when the last look was answered
	own  sighting  // durations of our own, for replicas that do not say theirs
}

// look takes in what a list showed that was asked for at one time and answered at another. Between the two the list was true:
// a version was there at the later time at the latest, and was still there at the earlier one.
func (m *members) look(leases []coordinationv1.Lease, t *table, asked, answered time.Time) {
	blind := asked.Sub(m.last) >= m.own.duration // we might have missed any number of renewals
	m.last = answered
	there := map[string]bool{}
	for i := range leases {
		name := holderOf(&leases[i])
		there[name] = true
		m.see(name, &leases[i], answered, blind)
	}
	for _, holder := range t {
		if holder != "" && !there[holder] {
			there[holder] = true
			m.see(holder, &coordinationv1.Lease{}, answered, blind)
		}
	}
	maps.DeleteFunc(m.seen, func(name string, _ *sighting) bool { return !there[name] })
}

func (m *members) see(name string, l *coordinationv1.Lease, at time.Time, anew bool) {
	s := m.seen[name]
	if s == nil {
		s = &sighting{duration: m.own.duration, request: m.own.request}
		m.seen[name] = s
		anew = true
	}
	if !anew && s.version == l.ResourceVersion {
		return
	}
	s.version, s.at = l.ResourceVersion, at
	if seconds := l.Spec.LeaseDurationSeconds; seconds != nil {
		s.duration = max(m.own.duration, time.Duration(*seconds)*time.Second)
	}
	if d, err := time.ParseDuration(l.Annotations[requestAnnotation]); err == nil {
		s.request = max(m.own.request, d)
	}
}

// alive are the replicas that renewed their leases in time, for a look that was asked for at a time; sorted.
func (m *members) alive(asked time.Time) []string {
	var out []string
	for name, s := range m.seen {
		if s.version != "" && asked.Sub(s.at) < s.duration {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// lapsed says whether a replica has taken itself for dead for so long that none of its requests is under way.
func (m *members) lapsed(name string, asked time.Time) bool {
	s := m.seen[name]
	return s != nil && asked.Sub(s.at) >= s.duration+s.request
}

// holderOf is the replica that a lease is of.
func holderOf(l *coordinationv1.Lease) string {
	if l.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.Spec.HolderIdentity
}
