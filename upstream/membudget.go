package upstream

import "sync/atomic"

// defaultBufferedBytes is the default of Options.MaxBufferedBytes.
const defaultBufferedBytes = 256 << 20

// memoryBudget counts the bytes of all answers being received. It is safe for concurrent
// use. A nil budget has no limit.
type memoryBudget struct {
	used  atomic.Int64
	limit int64
}

// take adds n bytes, which may be negative, and reports whether the budget is kept. They count
// either way until they are released.
func (h *memoryBudget) take(n int) bool { return h == nil || h.used.Add(int64(n)) <= h.limit }

func (h *memoryBudget) release(n int) {
	if h != nil {
		h.used.Add(-int64(n))
	}
}

// Reservation counts what a reader of a stream holds of one answer in the memory budget of its client.
// It is for one goroutine.
type Reservation struct {
	budget *memoryBudget
	bytes  int
}

// Set says how many bytes are held now. If all answers that the client holds exceed its budget
// with them, the error is a *refusal.Error: overloaded.
func (h *Reservation) Set(bytes int) error {
	more := bytes - h.bytes
	h.bytes = bytes
	if !h.budget.take(more) {
		return overBudget("found no room for a stream: %w", errBudget)
	}
	return nil
}

// Release returns the bytes to the budget. It is safe to call twice.
func (h *Reservation) Release() {
	h.budget.release(h.bytes)
	h.bytes = 0
}
