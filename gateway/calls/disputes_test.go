package calls

import (
	"fmt"
	"testing"
)

// noteDisputes notes something once of each of so many calls, then as much of the first
// as is told to be written down, and tells that and of how many calls it is counted.
func noteDisputes(calls int) (written, counted int) {
	var d disputeCounter
	for i := range calls {
		d.Add(fmt.Sprint(i))
	}
	for written = 1; written < 2*maxDisputes && d.Add("0"); written++ {
	}
	return written, len(d.byID)
}

// Messages of a tool beside its one answer are counted for a bounded number of calls. A
// counted call replaces no other.
func TestDisputesAreCounted(t *testing.T) {
	for _, n := range []int{1, 4095, 4096} {
		if written, counted := noteDisputes(n); written != 8 || counted != n {
			t.Errorf("%d calls: %d are written of one, and %d are counted", n, written, counted)
		}
	}
	if _, counted := noteDisputes(10000); counted != 4096 {
		t.Errorf("%d are counted", counted)
	}
}
