package bounds

import "fmt"

// NoteDisputes notes something once of each of so many calls, then as much of the first
// as is told to be written down, and tells that and of how many calls it is counted.
func NoteDisputes(calls int) (written, counted int) {
	var d DisputeCounter
	for i := range calls {
		d.Add(fmt.Sprint(i))
	}
	for written = 1; written < 2*maxDisputes && d.Add("0"); written++ {
	}
	return written, len(d.byID)
}
