package main

import (
	"math"
	"slices"
)

// spread is how values lie: the least, the quartiles and the largest.
type spread struct{ min, q25, median, q75, max float64 }

// spreadOf returns the spread of at least one value; a quartile between two
// values is interpolated.
func spreadOf(values []float64) spread {
	v := slices.Sorted(slices.Values(values))
	at := func(part float64) float64 {
		place := part * float64(len(v)-1)
		low, high := v[int(math.Floor(place))], v[int(math.Ceil(place))]
		return low + (high-low)*(place-math.Floor(place))
	}
	return spread{v[0], at(0.25), at(0.5), at(0.75), v[len(v)-1]}
}

// inverse is the spread of the inverses.
func (s spread) inverse() spread {
	return spread{1 / s.max, 1 / s.q75, 1 / s.median, 1 / s.q25, 1 / s.min}
}

// pairs are the ratios of values to those of the reference in the same round.
func pairs(values, reference []float64) []float64 {
	ratios := make([]float64, len(values))
	for i := range values {
		ratios[i] = values[i] / reference[i]
	}
	return ratios
}

// verdict is what the ratios of a measurement say.
type verdict string

const (
	better verdict = "better"
	same   verdict = "no clear difference"
	unsure verdict = "unclear: over the bound, within noise; more -rounds"
	slower verdict = "worse, within the bound"
	fails  verdict = "FAILS"
)

// judge judges ratios of cost, where more is worse. It fails them only where
// the median is over the bound and noise alone does not explain that: the lower
// quartile is worse than 1 as well.
func judge(cost spread, bound float64) verdict {
	switch {
	case cost.median > bound && cost.q25 > 1:
		return fails
	case cost.median > bound:
		return unsure
	case cost.q25 > 1:
		return slower
	case cost.q75 < 1:
		return better
	}
	return same
}
