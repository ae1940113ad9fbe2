package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kyma-project/mothership/bench/internal/measure"
)

// Results of a run.
type Results struct {
	Rig      measure.Rig `json:"rig"`
	Clusters int         `json:"clusters"`
	Modules  int         `json:"modules"`
	Objects  int         `json:"objects"`
	// Quick runs say little about times; noisy ones began parts while the machine was not at rest.
	Quick bool `json:"quick,omitempty"`
	Noisy bool `json:"noisy,omitempty"`
	// CloneSeconds is what the simulator took to make the fleet.
	CloneSeconds float64 `json:"cloneSeconds"`
	// Figures by the names that targets have.
	Figures map[string]float64 `json:"figures"`
	// Sizes are those of the fleet at which it was restarted and looked at, smallest first.
	Sizes   []Size   `json:"sizes"`
	Change  *Window  `json:"change,omitempty"`
	Upgrade *Upgrade `json:"upgrade,omitempty"`
	Sick    *Sick    `json:"sick,omitempty"`
}

// Size is the fleet at one size. Memory is in MiB, processor time in seconds or percent of one core, requests by verb.
type Size struct {
	Runtimes int `json:"runtimes"`
	// Seeding: how many runtimes really joined; until all of them were created, until all were ready.
	Joined        int            `json:"joined"`
	CreateSeconds float64        `json:"createSeconds"`
	SeedSeconds   float64        `json:"seedSeconds"`
	SeedCPU       float64        `json:"seedCPUSeconds"`
	SeedPeak      float64        `json:"seedPeakMiB"`
	SeedRequests  map[string]int `json:"seedRequests"`
	// Restart: from the start of the process until the caches were full, until nothing was to do.
	ReadySeconds    float64        `json:"readySeconds"`
	RestartSeconds  float64        `json:"restartSeconds"`
	RestartCPU      float64        `json:"restartCPUSeconds"`
	RestartRequests map[string]int `json:"restartRequests"`
	// Peak is that of restart and idle time, Resident what it had at the end.
	Peak     float64 `json:"peakMiB"`
	Resident float64 `json:"residentMiB"`
	// Idle time with what verification falls into it; quiet is the part without any request.
	IdleSeconds  float64        `json:"idleSeconds"`
	IdleCPU      float64        `json:"idleCPUPercent"`
	IdleRequests map[string]int `json:"idleRequests"`
	QuietSeconds float64        `json:"quietSeconds"`
	QuietCPU     float64        `json:"quietCPUPercent"`
	// Connections that the simulator had at the end of it.
	Connections  int64   `json:"connections"`
	SimulatorMiB float64 `json:"simulatorHeapMiB"`
}

// Window is a number of changes at the rate, with times in milliseconds until they were in their runtimes.
type Window struct {
	Changes      int       `json:"changes"`
	Lost         int       `json:"lost"`
	Seconds      float64   `json:"seconds"`
	CPUPerChange float64   `json:"cpuMillisPerChange"`
	P50          float64   `json:"p50"`
	P99          float64   `json:"p99"`
	Max          float64   `json:"max"`
	Samples      []float64 `json:"samples"`
}

// Applied is what was applied, in how long, and at what processor time of whoever did it.
type Applied struct {
	Objects int     `json:"objects"`
	Seconds float64 `json:"seconds"`
	CPU     float64 `json:"cpuSeconds"`
}

func (a Applied) perObject() float64 { return a.CPU / float64(max(a.Objects, 1)) }
func (a Applied) perSecond() float64 { return float64(a.Objects) / a.Seconds }

// Upgrade of one module on all runtimes.
type Upgrade struct {
	Product  Applied        `json:"product"`
	Requests map[string]int `json:"requests"`
	Loop     Applied        `json:"loop"`
}

// Sick is a fleet of which a fifth is sick. Windows are of changes to the healthy.
type Sick struct {
	Runtimes        int                `json:"runtimes"`
	Before          *Window            `json:"before,omitempty"`
	During          *Window            `json:"during,omitempty"`
	After           *Window            `json:"after,omitempty"`
	Minutes         float64            `json:"minutes"`
	Requests        int                `json:"requests"`
	PerMinute       map[string]float64 `json:"requestsPerRuntimeAndMinute"`
	RecoverySeconds float64            `json:"recoverySeconds"`
}

// conclude computes the figures of what was measured.
func (r *Results) conclude() {
	r.concludeSizes()
	if r.Change != nil {
		r.Figures["change_p50_ms"], r.Figures["change_p99_ms"] = r.Change.P50, r.Change.P99
	}
	if u := r.Upgrade; u != nil {
		r.Figures["upgrade_cpu_ratio"] = u.Product.perObject() / u.Loop.perObject()
		r.Figures["upgrade_throughput_ratio"] = u.Product.perSecond() / u.Loop.perSecond()
	}
	if s := r.Sick; s != nil && s.After != nil {
		r.Figures["sick_p99_ratio"] = s.During.P99 / ((s.Before.P99 + s.After.P99) / 2)
		r.Figures["sick_requests_per_minute"] = float64(s.Requests) / float64(s.Runtimes) / s.Minutes
	}
}

func (r *Results) concludeSizes() {
	if len(r.Sizes) == 0 || r.Sizes[len(r.Sizes)-1].Runtimes != r.Clusters {
		return
	}
	full := r.Sizes[len(r.Sizes)-1]
	r.Figures["restart_seconds"], r.Figures["restart_writes"] = full.RestartSeconds, float64(writes(full.RestartRequests))
	if full.IdleSeconds == 0 {
		return
	}
	r.Figures["rss_mib"], r.Figures["connections_kept"] = full.Peak, float64(full.Connections)
	r.Figures["verify_cpu_percent"] = full.IdleCPU
	r.Figures["idle_requests"] = float64(total(full.IdleRequests) - full.IdleRequests["list"])
	if full.QuietSeconds > 0 {
		r.Figures["idle_cpu_percent"] = full.QuietCPU
	}
	if small := r.Sizes[0]; small.Runtimes < full.Runtimes && small.Peak > 0 {
		r.Figures["rss_slope_kib"] = 1024 * (full.Peak - small.Peak) / float64(full.Runtimes-small.Runtimes)
	}
}

func (r *Results) write(file string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}
