package main

import "slices"

// conclude computes the figures of what was measured.
func (r *Results) conclude() {
	r.concludeSizes()
	r.concludeVerify()
	if len(r.Changes) > 0 {
		r.Figures["change_p50_ms"], r.Figures["change_p99_ms"] = median(r.Changes, p50), median(r.Changes, p99)
	}
	if len(r.Upgrades) > 0 {
		r.Figures["upgrade_cpu_ratio"] = median(r.Upgrades, func(u Upgrade) float64 { return u.Product.perObject() / u.loop().perObject() })
		r.Figures["upgrade_throughput_ratio"] = median(r.Upgrades, func(u Upgrade) float64 { return u.Product.perSecond() / u.loop().perSecond() })
	}
	if r.Burst != nil {
		r.Figures["predecessor_load_factor"] = r.Burst.factor()
	}
	r.concludeSick()
	r.concludeLost()
}

// concludeLost sums the changes that did not come: they are in no percentile.
func (r *Results) concludeLost() {
	windows := r.Changes
	if r.Sick != nil {
		windows = slices.Concat(windows, r.Sick.Undisturbed, r.Sick.Disturbed)
	}
	for _, w := range windows {
		r.Figures["changes_lost"] += float64(w.Lost)
	}
}

func p50(w Window) float64 { return w.P50 }
func p99(w Window) float64 { return w.P99 }

func (r *Results) concludeSizes() {
	if len(r.Sizes) == 0 || r.Sizes[len(r.Sizes)-1].Runtimes != r.Clusters {
		return
	}
	full := r.Sizes[len(r.Sizes)-1]
	if full.Restart != nil {
		r.Figures["restart_seconds"], r.Figures["restart_writes"] = full.Restart.Seconds, float64(writes(full.Restart.Requests))
	}
	if full.Idle == nil {
		return
	}
	r.Figures["rss_mib"], r.Figures["connections_kept"] = full.peak(), float64(full.Idle.Connections)
	r.Figures["verify_cpu_percent"] = full.Idle.CPU
	r.Figures["idle_requests"] = float64(total(full.Idle.Requests) - full.Idle.Requests["list"])
	if full.Idle.QuietSeconds > 0 {
		r.Figures["idle_cpu_percent"] = full.Idle.QuietCPU
	}
	if small := r.Sizes[0]; small.Runtimes < full.Runtimes && small.Idle != nil {
		r.Figures["rss_slope_kib"] = 1024 * (full.peak() - small.peak()) / float64(full.Runtimes-small.Runtimes)
	}
}

// peak is the most memory of the restart and the time after it, in MiB: rendering processes that ended in between were counted before.
func (s *Size) peak() float64 {
	most := s.Idle.Peak
	if s.Restart != nil {
		most = max(most, s.Restart.Peak)
	}
	return most
}

// concludeVerify takes the worse of the two spreads.
func (r *Results) concludeVerify() {
	v := r.Verify
	if v == nil || v.Made == nil {
		return
	}
	r.Figures["verify_cv"] = max(v.Planned.CV, v.Made.CV)
	if v.Field != nil && v.Made.Runtimes > 0 {
		r.Figures["field_requests_ratio"] = v.Field.Requests / v.Made.Each.Requests
		r.Figures["field_cpu_ratio"] = v.Field.CPU / v.Made.Each.CPU
		r.Figures["field_wall_ratio"] = v.Field.Wall / v.Made.Each.Wall
	}
}

// fewest is how many windows without a collection there must be of each kind, for the others to be left out.
const fewest = 3

// compared are those windows in which the API server has not collected its garbage, where there are enough of both kinds: a collection
// takes half of the machine for a while, and is the slowest hundredth of the changes of its window, whoever is sick.
func compared(disturbed, undisturbed []Window) (_, _ []Window) {
	without := func(all []Window) (some []Window) {
		for _, w := range all {
			if w.Collections == 0 {
				some = append(some, w)
			}
		}
		return some
	}
	if d, u := without(disturbed), without(undisturbed); len(d) >= fewest && len(u) >= fewest {
		return d, u
	}
	return disturbed, undisturbed
}

func (r *Results) concludeSick() {
	s := r.Sick
	if s == nil {
		return
	}
	if len(s.Disturbed) > 0 && len(s.Undisturbed) > 1 {
		disturbed, undisturbed := compared(s.Disturbed, s.Undisturbed)
		r.Figures["sick_p99_ratio"] = median(disturbed, p99) / median(undisturbed, p99)
	}
	if s.Requests != nil {
		r.Figures["sick_requests_per_minute"] = float64(s.Requests.Requests) / float64(s.Runtimes) / s.Requests.Minutes
	}
	if s.Each != nil {
		r.Figures["sick_log_lines"], r.Figures["sick_status_writes"] = s.Each.LogLines, s.Each.StatusWrites
		r.Figures["sick_flapped"] = float64(s.Each.Flapped)
	}
}
