package bounds_test

import (
	"testing"

	"github.com/callgate/callgate/gateway/calls/internal/bounds"
)

// Messages of a tool beside its one answer are counted for a bounded number of calls. A
// counted call replaces no other.
func TestDisputesAreCounted(t *testing.T) {
	for _, n := range []int{1, 4095, 4096} {
		if written, counted := bounds.NoteDisputes(n); written != 8 || counted != n {
			t.Errorf("%d calls: %d are written of one, and %d are counted", n, written, counted)
		}
	}
	if _, counted := bounds.NoteDisputes(10000); counted != 4096 {
		t.Errorf("%d are counted", counted)
	}
}
