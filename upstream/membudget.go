package upstream

import (
	"errors"
	"sync/atomic"
)

// defaultBufferedBytes is how many bytes of answers may be held at a time, of all exchanges.
const defaultBufferedBytes = 256 << 20

// errBudget is why an answer that may be as long as it is cannot be kept now.
var errBudget = errors.New("too many bytes of answers are held")

// memoryBudget counts the bytes of answers that are on their way. It is safe for
// concurrent use. A nil one counts nothing.
type memoryBudget struct {
	used  atomic.Int64
	limit int64
}

// take counts some more, or fewer, and tells whether there is room for them. They
// are counted either way, until they are given back.
func (h *memoryBudget) take(n int) bool { return h == nil || h.used.Add(int64(n)) <= h.limit }

func (h *memoryBudget) release(n int) {
	if h != nil {
		h.used.Add(-int64(n))
	}
}
