package fleet_test

import (
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kyma-project/mothership/internal/fleet"
)

// TestTurnsAreEven counts the turns of a fleet in each twentieth of an interval: their coefficient of variation is below chance's.
func TestTurnsAreEven(t *testing.T) {
	t.Parallel()
	turns := fleet.Turns{Interval: time.Hour}
	for _, form := range []string{"runtime-%d", "%08x", "eu-%05d", "skr%d-prod"} {
		for n, most := range map[int]float64{1000: 0.15, 10000: 0.05} {
			synctest.Test(t, func(t *testing.T) {
				const windows = 20
				var counts [windows]float64
				for i := range n {
					next := turns.Next(types.NamespacedName{Namespace: "kcp-system", Name: fmt.Sprintf(form, i)})
					if next <= 0 || next > turns.Interval {
						t.Fatalf("the next turn is in %s", next)
					}
					counts[int(next)*windows/int(turns.Interval*9/10+1)]++
				}
				if cv := variation(counts[:]); cv > most {
					t.Errorf("%d of %s: coefficient of variation %.3f; want at most %.2f: %v", n, form, cv, most, counts)
				}
			})
		}
	}
}

func variation(counts []float64) float64 {
	var sum, squares float64
	for _, c := range counts {
		sum += c
	}
	mean := sum / float64(len(counts))
	for _, c := range counts {
		squares += (c - mean) * (c - mean)
	}
	return math.Sqrt(squares/float64(len(counts))) / mean
}

// TestTurnsKeepTheInterval follows a runtime from turn to turn: never longer than the interval, and one verification per turn, whoever
// asks for it.
func TestTurnsKeepTheInterval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := fleet.Turns{Interval: time.Hour}
		time.Sleep(turns.Next(first))
		for range 1000 {
			asked, own := turns.Next(first), turns.AfterRun(first)
			if own > turns.Interval || own < turns.Interval/2 {
				t.Fatalf("%s after a verification at a turn", own)
			}
			if asked > own && asked < turns.Interval/2 {
				t.Fatalf("asked for, the next turn is in %s, by itself in %s", asked, own)
			}
			time.Sleep(own)
		}
		for range 1000 {
			own := turns.AfterRun(second)
			if own > turns.Interval {
				t.Fatalf("%s after a verification between turns", own)
			}
			time.Sleep(7 * time.Minute)
		}
	})
}
