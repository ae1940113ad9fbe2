package main

import (
	"strings"
	"time"

	"github.com/kyma-project/mothership/bench/internal/measure"
)

// shares are the processor times of all who share the machine, by name.
type shares map[string]time.Duration

// Names of those that are this program, beside the servers of Kubernetes, whose names begin as others says.
const (
	productShare   = "product"
	simulatorShare = "simulator"
	benchShare     = "benchmark"
)

var others = []string{"kube-", "etcd"}

// shares looks at the processor times so far.
func (b *bench) shares() (shares, error) {
	out := shares{benchShare: measure.CPUTime()}
	for name, cpu := range measure.Family() {
		for _, prefix := range others {
			if strings.HasPrefix(name, prefix) {
				out[name] = cpu
			}
		}
	}
	product, err := b.plane.Taken()
	if err != nil {
		return nil, err
	}
	simulator, err := b.sim.Taken()
	out[productShare], out[simulatorShare] = product.CPU, simulator.CPU
	return out, err
}

// since are the seconds from before to after.
func (after shares) since(before shares) map[string]float64 {
	out := map[string]float64{}
	for name, cpu := range after {
		out[name] = (cpu - before[name]).Seconds()
	}
	return out
}

// spend does something and says what processor time everybody took meanwhile, in seconds.
func (b *bench) spend(do func() error) (map[string]float64, error) {
	before, err := b.shares()
	if err != nil {
		return nil, err
	}
	if err := do(); err != nil {
		return nil, err
	}
	after, err := b.shares()
	return after.since(before), err
}
