package bounds

import "sync"

const (
	// maxDisputes bounds the recorded messages of one call: a tool must not fill the
	// journal.
	maxDisputes = 8
	// maxDisputedCalls bounds the calls whose messages are counted.
	maxDisputedCalls = 4096
)

// DisputeCounter counts recorded messages by call. The zero value is empty.
type DisputeCounter struct {
	mu   sync.Mutex
	byID map[string]int
}

// Add counts one more message, and reports whether to record it.
func (d *DisputeCounter) Add(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byID == nil {
		d.byID = map[string]int{}
	}
	count, known := d.byID[id]
	if count >= maxDisputes {
		return false
	}
	for other := range d.byID {
		if known || len(d.byID) < maxDisputedCalls {
			break
		}
		delete(d.byID, other) // whose comes first
	}
	d.byID[id]++
	return true
}

// Remove uncounts a message that could not be recorded: the tool sends it again.
func (d *DisputeCounter) Remove(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byID[id]--; d.byID[id] <= 0 {
		delete(d.byID, id)
	}
}
