package main

import (
	"github.com/kyma-project/mothership/bench/internal/measure"
)

// Results of a run. What was not measured is not there.
type Results struct {
	Rig      measure.Rig `json:"rig"`
	Clusters int         `json:"clusters"`
	Modules  int         `json:"modules"`
	Objects  int         `json:"objects"`
	// Quick runs say little about times; noisy ones began parts while the machine was not at rest. Error is what ended it early.
	Quick bool   `json:"quick,omitempty"`
	Noisy bool   `json:"noisy,omitempty"`
	Error string `json:"error,omitempty"`
	// Seconds that all took, and CloneSeconds those that the simulator took to make the fleet.
	Seconds      float64 `json:"seconds"`
	CloneSeconds float64 `json:"cloneSeconds,omitempty"`
	// LogLines is how many lines the control plane logged that name a runtime.
	LogLines int `json:"logLines"`
	// Figures by the names that targets have.
	Figures map[string]float64 `json:"figures"`
	// Sizes are those of the fleet at which it was restarted and looked at, smallest first.
	Sizes    []Size    `json:"sizes,omitempty"`
	Verify   *Verify   `json:"verify,omitempty"`
	Changes  []Window  `json:"changes,omitempty"`
	Upgrades []Upgrade `json:"upgrades,omitempty"`
	Burst    *Burst    `json:"burst,omitempty"`
	Sick     *Sick     `json:"sick,omitempty"`
}

// Size is the fleet at one size. In all results, memory is in MiB, processor time in seconds or percent of one core, requests are by verb,
// and a share is the processor time in seconds of each who shares the machine.
type Size struct {
	Runtimes int      `json:"runtimes"`
	Seed     *Seed    `json:"seed,omitempty"`
	Restart  *Restart `json:"restart,omitempty"`
	Idle     *Idle    `json:"idle,omitempty"`
}

// Seed says how runtimes joined: how many really did; until all of them were created, until all were ready.
type Seed struct {
	Joined        int            `json:"joined"`
	CreateSeconds float64        `json:"createSeconds"`
	Seconds       float64        `json:"seconds"`
	CPU           float64        `json:"cpuSeconds"`
	Peak          float64        `json:"peakMiB"`
	Requests      map[string]int `json:"requests"`
}

// Restart is from the start of the process until the caches were full, and until nothing was to do.
type Restart struct {
	ReadySeconds float64        `json:"readySeconds"`
	Seconds      float64        `json:"seconds"`
	CPU          float64        `json:"cpuSeconds"`
	Peak         float64        `json:"peakMiB"`
	Requests     map[string]int `json:"requests"`
}

// Idle is time with nothing but what verification falls into it; quiet is the part without any request.
type Idle struct {
	Seconds      float64 `json:"seconds"`
	CPU          float64 `json:"cpuPercent"`
	QuietSeconds float64 `json:"quietSeconds"`
	QuietCPU     float64 `json:"quietCPUPercent"`
	// Peak is that of restart and idle time, Resident what it had at the end.
	Peak     float64        `json:"peakMiB"`
	Resident float64        `json:"residentMiB"`
	Requests map[string]int `json:"requests"`
	// Windows is how often it was looked, Connections the fewest that the simulator had then.
	Windows      int                `json:"windows"`
	Connections  int64              `json:"connections"`
	Share        map[string]float64 `json:"cpuSecondsOfAll"`
	SimulatorMiB float64            `json:"simulatorHeapMiB"`
}

// Verify says how verifications are spread and what they cost: Planned after a restart, Made at a shorter interval; Field is applying
// everything again.
type Verify struct {
	Planned Spread `json:"planned"`
	Made    *Made  `json:"made,omitempty"`
	Field   *Each  `json:"field,omitempty"`
}

// Spread is how many there were in windows of a twentieth of the interval.
type Spread struct {
	Windows []float64 `json:"windows"`
	CV      float64   `json:"cv"`
}

// Made are verifications at a shorter interval. Wait is the mean time that they were queued for.
type Made struct {
	Spread
	IntervalSeconds float64            `json:"intervalSeconds"`
	Runtimes        int                `json:"runtimes"`
	Requests        map[string]int     `json:"requests"`
	WaitMillis      float64            `json:"queueWaitMillis"`
	Share           map[string]float64 `json:"cpuSecondsOfAll"`
	Each            Each               `json:"each"`
}

// Each is what one runtime costs; times are in milliseconds.
type Each struct {
	Requests float64 `json:"requests"`
	CPU      float64 `json:"cpuMillis"`
	Wall     float64 `json:"wallMillis"`
}

// Window is a number of changes at the rate, with times in milliseconds until they were in their runtimes.
type Window struct {
	Changes      int                `json:"changes"`
	Lost         int                `json:"lost"`
	Seconds      float64            `json:"seconds"`
	CPUPerChange float64            `json:"cpuMillisPerChange"`
	Share        map[string]float64 `json:"cpuSecondsOfAll"`
	P50          float64            `json:"p50"`
	P99          float64            `json:"p99"`
	Max          float64            `json:"max"`
	Samples      []float64          `json:"samples"`
	// API99 is the time in which the control plane's API took 99 % of the changes: what is below it is not the product's.
	API99 float64 `json:"p99OfTheAPI"`
	// Collections is how often the API server collected its garbage, in windows that are compared.
	Collections int `json:"apiCollections,omitempty"`
	// API is how often the control plane's API was asked in such a window, and shortly before and after it.
	API map[string]int `json:"requestsToTheControlPlane,omitempty"`
}

// Applied is what was applied, in how long, and at what processor time of whoever did it, the reports on it included.
type Applied struct {
	Objects int     `json:"objects"`
	Seconds float64 `json:"seconds"`
	// Reported is how long it took until the status of the last Kyma said so, too: the loop reports to nobody.
	Reported float64 `json:"reportedSeconds,omitempty"`
	CPU      float64 `json:"cpuSeconds"`
	// Share is what everybody took until the last object was applied, before the last reports.
	Share map[string]float64 `json:"cpuSecondsOfAllUntilApplied,omitempty"`
}

func (a Applied) perObject() float64 { return a.CPU / float64(max(a.Objects, 1)) }
func (a Applied) perSecond() float64 { return float64(a.Objects) / a.Seconds }

// Upgrade of one module on all runtimes, and the loops before and after it.
type Upgrade struct {
	Product  Applied            `json:"product"`
	Requests map[string]int     `json:"requests"`
	API      map[string]int     `json:"requestsToTheControlPlane"`
	Share    map[string]float64 `json:"cpuSecondsOfAll"`
	Before   Loop               `json:"loopBefore"`
	After    Loop               `json:"loopAfter"`
}

// Loop is what the bare loop did.
type Loop struct {
	Applied
	Share map[string]float64 `json:"cpuSecondsOfAll"`
}

// loop is the mean of the two loops: the machine's speed changes from one minute to the next.
func (u Upgrade) loop() Applied {
	a, b := u.Before.Applied, u.After.Applied
	return Applied{Objects: a.Objects + b.Objects, Seconds: a.Seconds + b.Seconds, CPU: a.CPU + b.CPU}
}

// Burst is a change of all modules of some runtimes at once, on a share of a core. Started is when the last was changed.
type Burst struct {
	Runtimes   int `json:"runtimes"`
	Operations int `json:"operations"`
	// Limit is what kept the control plane to the share: none, or a control group.
	Limit          string             `json:"limit"`
	StartedSeconds float64            `json:"startedSeconds"`
	Seconds        float64            `json:"seconds"`
	Requests       map[string]int     `json:"requests"`
	Share          map[string]float64 `json:"cpuSecondsOfAll"`
}

// Sick is a fleet of which a fifth is sick, again and again. Windows are of changes to the healthy.
type Sick struct {
	// Peak is the most memory until then that the control plane had at any time, in MiB.
	Peak        float64  `json:"peakMiB"`
	Runtimes    int      `json:"runtimes"`
	Undisturbed []Window `json:"undisturbed,omitempty"`
	Disturbed   []Window `json:"disturbed,omitempty"`
	// Noticed is how many of the sick were known to be, after NoticeSeconds, when counting requests began: at first while pauses
	// between probes still grow, and then.
	Noticed         int           `json:"noticed,omitempty"`
	NoticeSeconds   float64       `json:"noticeSeconds,omitempty"`
	RequestsAtFirst *SickRequests `json:"requestsAtFirst,omitempty"`
	Requests        *SickRequests `json:"requests,omitempty"`
	Each            *SickEach     `json:"each,omitempty"`
	RecoverySeconds []float64     `json:"recoverySeconds,omitempty"`
}

// SickRequests are those to sick runtimes after they were noticed; per minute of each, by kind of sickness.
type SickRequests struct {
	Minutes   float64            `json:"minutes"`
	Requests  int                `json:"requests"`
	PerMinute map[string]float64 `json:"perRuntimeAndMinute"`
}

// SickEach is what a sick runtime costs from its first moment on. Flapped is how many of all went to and fro between being reachable
// and not.
type SickEach struct {
	Minutes          float64 `json:"minutes"`
	LogLines         float64 `json:"logLines"`
	StatusWrites     float64 `json:"statusWrites"`
	MostStatusWrites int     `json:"mostStatusWrites"`
	Flapped          int     `json:"flapped"`
}
