package measure

import (
	"math"
	"slices"
)

// Percentile is the smallest of the values that p percent of them do not exceed (the nearest rank). Zero of none.
func Percentile(values []float64, p float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}
