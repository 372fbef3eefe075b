package upstream

import (
	"cmp"

	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream/chat"
)

// Assembler puts the chunks of one stream together within bounds. The zero value is ready, with
// the default bound of bytes. Its errors are *refusal.Error; after one, every call returns it.
type Assembler struct {
	upstream string
	maxBytes int // bound of bytes; 0 is defaultMaxBody
	budget   *memoryBudget
	reserved int // bytes of the budget
	assembly chat.Assembly
	err      *refusal.Error
}

// Assembler returns an assembler for a stream of the route, bounded by the route's MaxBody and
// by the client's memory budget. Release it.
func (c *Client) Assembler(route *Route) *Assembler {
	return &Assembler{upstream: route.Upstream, maxBytes: route.definition.MaxBody, budget: &c.budget}
}

// Release returns the assembler's bytes to the memory budget. It is safe to call twice.
// Add fails from then on.
func (a *Assembler) Release() {
	a.budget.release(a.reserved)
	a.budget, a.reserved = nil, 0
	if a.err == nil {
		a.err = brokenOff("found a stream that was given up")
	}
}

// Add adds the next chunk.
func (a *Assembler) Add(chunk *chat.Chunk) error {
	if a.err != nil {
		return a.err
	}
	before := a.reserved
	err := a.assembly.Add(chunk)
	a.reserved = a.assembly.Size()
	room := a.budget.take(a.reserved - before)
	switch most := cmp.Or(a.maxBytes, defaultMaxBody); {
	case err != nil: // the pieces of its calls do not fit together
		a.err = malformed(a.upstream, err)
		a.err.Message += " If this happens often, the operator can set `protocol: text` for the model: it then writes its calls as text."
	case a.reserved > most:
		a.err = tooLarge("found a stream of an answer over %d bytes", most)
	case !room:
		a.err = overBudget("found no room for a stream: %w", errBudget)
	default:
		return nil
	}
	return a.err
}

// Complete returns the completion; it fails if a choice that has not ended may not end so.
func (a *Assembler) Complete() (*chat.Completion, error) {
	if a.err != nil {
		return nil, a.err
	}
	if err := a.assembly.Incomplete(); err != nil {
		return nil, brokenOff("the stream ended with %w", err)
	}
	completion, err := a.assembly.Assembled()
	if err != nil {
		return nil, malformed(a.upstream, err)
	}
	return completion, nil
}
