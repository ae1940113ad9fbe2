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

// Median of values: of an even number, the mean of the two in the middle. Zero of none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// Variation is the coefficient of variation: the standard deviation divided by the mean. Zero of none, or where that is zero.
func Variation(values []float64) float64 {
	var sum, squares float64
	for _, v := range values {
		sum += v
	}
	if sum == 0 {
		return 0
	}
	mean := sum / float64(len(values))
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return math.Sqrt(squares/float64(len(values))) / mean
}
