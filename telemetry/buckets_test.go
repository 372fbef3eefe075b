package telemetry

import (
	"slices"
	"strconv"
	"testing"
)

// TestBuckets: the bounds of every histogram ascend, and have at most two digits beside zeros, or
// are whole seconds, so that people can read them and write them in a query.
func TestBuckets(t *testing.T) {
	for name, bounds := range map[string][]float64{
		"times": buckets(), "upstream": upstreamBuckets(), "approvals": approvalBuckets(), "hooks": hookBuckets(),
	} {
		if !slices.IsSorted(bounds) || len(slices.Compact(slices.Clone(bounds))) != len(bounds) {
			t.Errorf("%s: %v do not ascend", name, bounds)
		}
		for _, b := range bounds {
			if s := strconv.FormatFloat(b, 'g', -1, 64); len(s) > 6 {
				t.Errorf("%s: %s is not a number to be read", name, s)
			}
		}
	}
}
