package chat

import (
	"testing"

	"github.com/callgate/callgate/internal/rawjson"
)

// TestAllocationsPerMerge holds that a repeated member grows in place: merging n pieces
// does not copy what was merged before n times.
func TestAllocationsPerMerge(t *testing.T) {
	const pieces = 1000
	for name, value := range map[string]string{"a string": `"some thoughts "`, "a list": `[{"type":"text"}]`, "a number": `7`} {
		piece := rawjson.Object{rawjson.Field("x", []byte(value))}
		allocations := testing.AllocsPerRun(5, func() {
			var merged mergedMembers
			for range pieces {
				merged.add(piece, concatStrings)
			}
		})
		if allocations > pieces/10 {
			t.Errorf("%s: %.0f allocations for %d pieces", name, allocations, pieces)
		}
	}
}
