package gateway_test

import (
	"testing"

	"github.com/callgate/callgate/gateway"
)

// What a tool says beside its one answer is counted of a bounded number of calls. One
// that is counted takes no other's place.
func TestDisputesAreCounted(t *testing.T) {
	for _, calls := range []int{1, 4095, 4096} {
		if written, counted := gateway.NoteDisputes(calls); written != 8 || counted != calls {
			t.Errorf("%d calls: %d are written of one, and %d are counted", calls, written, counted)
		}
	}
	if _, counted := gateway.NoteDisputes(10000); counted != 4096 {
		t.Errorf("%d are counted", counted)
	}
}
