// Package dial makes a simulated cluster sick, and counts what it is asked.
//
// Dials say what is wrong with one cluster; they are turned while it runs. Gate applies them to a request before the cluster
// sees it. Counters count requests by verb and user agent. Everything is safe for concurrent use.
//
// It may import sim/wire for the form of refusals, and k8s.io/apimachinery.
package dial

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kyma-project/mothership/sim/wire"
)

// Dials say what is wrong with a cluster. The zero value is a healthy one.
type Dials struct {
	// LatencyMillis is added to each request, half of it at least: between half and all is drawn.
	LatencyMillis int `json:"latencyMillis,omitempty"`
	// Throttle is the share of requests, 0 to 1, that are answered with 429 and a Retry-After of RetryAfterSeconds (default 1).
	Throttle          float64 `json:"throttle,omitempty"`
	RetryAfterSeconds int     `json:"retryAfterSeconds,omitempty"`
	// Fail is the share of requests, 0 to 1, that are answered with FailCode (default 503).
	Fail     float64 `json:"fail,omitempty"`
	FailCode int     `json:"failCode,omitempty"`
	// Refuse closes connections without an answer: one listener for all cannot refuse them for one cluster.
	Refuse bool `json:"refuse,omitempty"`
	// BlackHole takes requests and never answers.
	BlackHole bool `json:"blackHole,omitempty"`
	// Unauthorized answers 401, Forbidden 403.
	Unauthorized bool `json:"unauthorized,omitempty"`
	Forbidden    bool `json:"forbidden,omitempty"`
	// HalfDiscovery has every second API group not answer.
	HalfDiscovery bool `json:"halfDiscovery,omitempty"`
	// SlowWatchMillis is waited before each event of a watch.
	SlowWatchMillis int `json:"slowWatchMillis,omitempty"`
	// OtherCertificate presents one of another authority to connections that name the cluster.
	OtherCertificate bool `json:"otherCertificate,omitempty"`
}

// Validate says which value makes no sense.
func (d *Dials) Validate() error {
	switch {
	case d.LatencyMillis < 0 || d.SlowWatchMillis < 0 || d.RetryAfterSeconds < 0:
		return errors.New("times cannot be negative")
	case d.Throttle < 0 || d.Throttle > 1 || d.Fail < 0 || d.Fail > 1:
		return errors.New("throttle and fail are shares between 0 and 1")
	case d.FailCode != 0 && (d.FailCode < 500 || d.FailCode > 599):
		return fmt.Errorf("failCode %d: it is 500 to 599", d.FailCode)
	}
	return nil
}

// Gate applies the dials to a request, and says whether the cluster may see it. If not, it has been answered, or never will be.
func (d *Dials) Gate(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case d.Refuse:
		panic(http.ErrAbortHandler) // the way to end an answer that was not begun
	case d.BlackHole:
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	}
	if d.LatencyMillis > 0 && !wait(r, draw(d.LatencyMillis)) {
		return false
	}
	code, reason, message := d.refusal()
	if code == 0 {
		return true
	}
	s := metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message}
	if code == http.StatusTooManyRequests {
		s.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(max(d.RetryAfterSeconds, 1))}
	}
	w.Header().Set("Audit-Id", "refused")
	wire.WriteStatus(w, r, s)
	return false
}

// refusal draws how to refuse a request; code 0 is not at all.
func (d *Dials) refusal() (code int, reason metav1.StatusReason, message string) {
	switch {
	case d.Unauthorized:
		return http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized"
	case d.Forbidden:
		return http.StatusForbidden, metav1.StatusReasonForbidden, "forbidden: the dial of this cluster says so"
	case d.Throttle > 0 && rand.Float64() < d.Throttle:
		return http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many requests, please try again later"
	case d.Fail > 0 && rand.Float64() < d.Fail:
		code = d.FailCode
		if code == 0 {
			code = http.StatusServiceUnavailable
		}
		return code, metav1.StatusReasonServiceUnavailable, "the server is currently unable to handle the request"
	}
	return 0, "", ""
}

// SlowWatch is what a watch does before each event; nil for nothing.
func (d *Dials) SlowWatch() func(*http.Request) {
	if d.SlowWatchMillis == 0 {
		return nil
	}
	return func(r *http.Request) { wait(r, time.Duration(d.SlowWatchMillis)*time.Millisecond) }
}

// draw is between half and all of some milliseconds.
func draw(millis int) time.Duration {
	all := time.Duration(millis) * time.Millisecond
	return all/2 + rand.N(all/2+1)
}

// wait lets time pass, and says whether the client is still there.
func wait(r *http.Request, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.Context().Done():
		return false
	}
}
