package calls

import "fmt"

// NoteDisputes notes something once of each of so many calls, then as much of the first
// as is told to be written down, and tells that and of how many calls it is counted.
func NoteDisputes(calls int) (written, counted int) {
	var d disputeCounter
	for i := range calls {
		d.add(fmt.Sprint(i))
	}
	for written = 1; written < 2*maxDisputes && d.add("0"); written++ {
	}
	return written, len(d.byID)
}
