package main

import (
	"time"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/bench/internal/measure"
)

// Results are what control.json holds.
type Results struct {
	Rig measure.Rig `json:"rig"`
	// Noisy says that the machine was not quiet when a part began.
	Noisy bool `json:"noisy,omitempty"`
	// Ratios are the figures that have a target, by name.
	Ratios map[string]Ratio `json:"ratios"`
	// Change is from just before the request that changes a Kyma until a watch of the runtime has the object; Drift is from just
	// before the request that edits or deletes an object until a watch has it as it should be.
	Change *Latency `json:"changeToObject,omitempty"`
	Drift  *Latency `json:"driftToReverted,omitempty"`
	// Succession is Change without any rest between two changes: for information.
	Succession *Latency `json:"changesInSuccession,omitempty"`
	// Modules is how many were installed, Installs are the runs.
	Modules  int       `json:"modules"`
	Installs []Install `json:"installs,omitempty"`
	// Field is what the best of the field has published for 1,000 modules.
	Field    Published `json:"field"`
	Restarts []Restart `json:"restarts,omitempty"`
}

// Ratio is a figure with a target.
type Ratio struct {
	Value float64 `json:"value"`
	// Target is the most that it may be.
	Target float64 `json:"target"`
	Met    bool    `json:"met"`
}

// Latency is a distribution of times, in milliseconds.
type Latency struct {
	P50     float64   `json:"p50"`
	P90     float64   `json:"p90"`
	P99     float64   `json:"p99"`
	Max     float64   `json:"max"`
	Samples []float64 `json:"samples"`
}

func (l *Latency) add(d time.Duration) { l.Samples = append(l.Samples, float64(d.Microseconds())/1000) }

// Published are figures of somebody else, measured elsewhere.
type Published struct {
	Wall    float64 `json:"wallSeconds"`
	PeakRSS float64 `json:"peakRSSMiB"`
	Source  string  `json:"source"`
}

// published is the best of the field: 4 m 39 s, 361 MiB.
var published = Published{Wall: 279, PeakRSS: 361, Source: "published by the field for 1,000 installations of a four-object chart, two CPUs; not measured here"}

// conclude computes the percentiles, medians and ratios.
func (r *Results) conclude() {
	r.Ratios = map[string]Ratio{}
	r.latency("change_to_object", r.Change)
	r.latency("drift_to_reverted", r.Drift)
	r.Succession.conclude()
	if len(r.Installs) > 0 {
		r.ratio("install_1000_seconds", 90, r.installMedian(func(i Install) float64 { return i.Wall }))
		r.ratio("install_1000_peak_mib", 200, r.installMedian(func(i Install) float64 { return i.PeakRSS }))
		r.ratio("install_1000_seconds_vs_field", 1, r.installMedian(func(i Install) float64 { return i.Wall })/r.Field.Wall)
	}
	for _, run := range r.Restarts {
		if run.Drift == v1beta2.DriftPoll {
			r.ratio("restart_requests", 0, float64(run.Total))
		} else {
			r.ratio("restart_writes_watched", 0, float64(run.Writes))
		}
	}
}

func (r *Results) latency(name string, l *Latency) {
	if !l.conclude() {
		return
	}
	r.ratio(name+"_p50_ms", 150, l.P50)
	r.ratio(name+"_p99_ms", 500, l.P99)
}

// conclude computes the percentiles; false if there are none.
func (l *Latency) conclude() bool {
	if l == nil || len(l.Samples) == 0 {
		return false
	}
	of := func(p float64) float64 { return measure.Percentile(l.Samples, p) }
	l.P50, l.P90, l.P99, l.Max = of(50), of(90), of(99), of(100)
	return true
}

func (r *Results) ratio(name string, target, value float64) {
	r.Ratios[name] = Ratio{Value: value, Target: target, Met: value <= target}
}

func (r *Results) installMedian(of func(Install) float64) float64 {
	var values []float64
	for _, run := range r.Installs {
		values = append(values, of(run))
	}
	return measure.Percentile(values, 50)
}
