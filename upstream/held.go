package upstream

import (
	"errors"
	"sync/atomic"
)

// defaultHeld is how many bytes of answers may be held at a time, of all exchanges.
const defaultHeld = 256 << 20

// errHeld is why an answer that may be as long as it is cannot be kept now.
var errHeld = errors.New("too many bytes of answers are held")

// held counts the bytes of answers that are on their way. It is safe for
// concurrent use. A nil one counts nothing.
type held struct {
	now  atomic.Int64
	most int64
}

// take counts some more, or fewer, and tells whether there is room for them. They
// are counted either way, until they are given back.
func (h *held) take(n int) bool { return h == nil || h.now.Add(int64(n)) <= h.most }

func (h *held) giveBack(n int) {
	if h != nil {
		h.now.Add(-int64(n))
	}
}
