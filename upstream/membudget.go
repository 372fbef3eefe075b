package upstream

import (
	"errors"
	"sync/atomic"
)

// defaultBufferedBytes is the default of Options.MaxBufferedBytes.
const defaultBufferedBytes = 256 << 20

// errBudget says that an answer within its own bound exceeds the client's memory budget.
var errBudget = errors.New("too many bytes of answers are held")

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
