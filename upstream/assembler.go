package upstream

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/callgate/callgate/refusal"
)

// Assembler puts the chunks of one stream together; doc.go has the rules. The
// zero value is ready, and keeps as much as an upstream does by default. Its errors
// are *refusal.Error, and last.
type Assembler struct {
	most       int // bytes that may be kept; 0 is the default
	kept       int
	held       *held
	completion Completion // without its choices
	extra      piles
	choices    map[int]*assembly
	endings    endings
	fault      *refusal.Error
}

// assembly is one choice on its way.
type assembly struct {
	content, refused []byte
	hasContent       bool
	hasRefused       bool
	legacy           bool
	reason           string
	extra            piles // of the message
	beside           piles // of the choice
	calls            []*callAssembly
	at               map[int]*callAssembly // the call last begun at each index
	ids              map[string]*callAssembly
	last             int // the highest index
}

// callAssembly is one call on its way.
type callAssembly struct {
	ToolCall
	extra piles
}

// Assembler returns one that keeps as much of a stream as an answer of the route
// may be long that is not streamed, and as there is room for. Release it.
func (c *Client) Assembler(route *Route) *Assembler {
	return &Assembler{most: route.definition.MaxBody, held: &c.held}
}

// Release gives back the room that the assembler takes. It is safe to call twice;
// nothing can be added any more.
func (a *Assembler) Release() {
	a.held.giveBack(a.kept)
	a.held, a.kept = nil, 0
	if a.fault == nil {
		a.fault = brokenOff("found a stream that was given up")
	}
}

// Add takes in the next chunk.
func (a *Assembler) Add(chunk *Chunk) error {
	if a.fault != nil {
		return a.fault
	}
	before := a.kept
	err := a.add(chunk)
	room := a.held.take(a.kept - before)
	switch most := cmp.Or(a.most, defaultMaxBody); {
	case err != nil:
		a.fault = garbled("found %w", err)
	case a.kept > most:
		a.fault = tooLarge("found a stream of an answer over %d bytes", most)
	case !room:
		a.fault = crowded("found no room for a stream: %w", errHeld)
	default:
		return nil
	}
	return a.fault
}

// Complete returns the completion, once each choice that began has ended.
func (a *Assembler) Complete() (*Completion, error) {
	if a.fault != nil {
		return nil, a.fault
	}
	if err := a.endings.whole(); err != nil {
		return nil, brokenOff("the stream ended with %w", err)
	}
	c := a.completion
	c.Extra = a.extra.extra()
	for _, index := range slices.Sorted(maps.Keys(a.choices)) {
		c.Choices = append(c.Choices, a.choices[index].choice(index))
	}
	if err := c.inOrder(); err != nil {
		return nil, garbled("found %w", err)
	}
	return &c, nil
}

func (a *Assembler) add(chunk *Chunk) error {
	c := &a.completion
	if c.ID == "" {
		c.ID = chunk.ID
	}
	if c.Model == "" {
		c.Model = chunk.Model
	}
	if c.Created == 0 {
		c.Created = chunk.Created
	}
	if chunk.Usage != nil {
		c.Usage = chunk.Usage
	}
	a.kept += a.extra.add(chunk.Extra, latest)
	for i := range chunk.Choices {
		delta := &chunk.Choices[i]
		if err := a.endings.see(delta); err != nil {
			return err
		}
		grown, err := a.choice(delta.Index).add(delta)
		if a.kept += grown; err != nil {
			return err
		}
	}
	return nil
}

func (a *Assembler) choice(index int) *assembly {
	if a.choices == nil {
		a.choices = map[int]*assembly{}
	}
	c := a.choices[index]
	if c == nil {
		c = &assembly{}
		a.choices[index] = c
	}
	return c
}

// add takes in what a chunk brings, and returns by how many bytes the choice has
// grown.
func (c *assembly) add(delta *DeltaChoice) (grown int, err error) {
	if text := delta.Delta.Content; text != nil {
		c.content, c.hasContent = append(c.content, *text...), true
		grown += len(*text)
	}
	if text := delta.Delta.Refusal; text != nil {
		c.refused, c.hasRefused = append(c.refused, *text...), true
		grown += len(*text)
	}
	c.legacy = c.legacy || delta.Delta.FunctionCall
	if delta.FinishReason != nil {
		c.reason = *delta.FinishReason
	}
	grown += c.extra.add(delta.Delta.Extra, joined)
	grown += c.beside.add(delta.Extra, latest)
	for i := range delta.Delta.ToolCalls {
		more, err := c.piece(&delta.Delta.ToolCalls[i])
		if grown += more; err != nil {
			return grown, err
		}
	}
	return grown, nil
}

// piece adds a piece to its call, or begins a call with it.
func (c *assembly) piece(d *ToolDelta) (grown int, err error) {
	index := d.Index
	if index < 0 { // a whole call
		if d.Name == "" {
			return 0, errors.New("a piece of a call without an index")
		}
		if index = 0; len(c.calls) > 0 {
			index = c.last + 1
		}
	}
	call := c.at[index]
	if call == nil || d.ID != "" && d.ID != call.ID {
		if call, err = c.begin(call, index, d); err != nil {
			return 0, err
		}
		grown = len(d.ID) + len(d.Type) + len(d.Name) + memberCost
	}
	switch {
	case d.Name != "" && d.Name != call.Name:
		return grown, fmt.Errorf("a name that changes within call %d", index)
	case d.Type != "" && d.Type != cmp.Or(call.Type, "function"):
		return grown, fmt.Errorf("a type that changes within call %d", index)
	}
	call.Arguments = append(call.Arguments, d.Arguments...)
	return grown + len(d.Arguments) + call.extra.add(d.Extra, joined), nil
}

// begin starts a call at an index at which before, where it is not nil, is.
func (c *assembly) begin(before *callAssembly, index int, d *ToolDelta) (*callAssembly, error) {
	switch {
	case before != nil && before.ID == "":
		return nil, fmt.Errorf("an id that comes late, in call %d", index)
	case d.ID != "" && c.ids[d.ID] != nil:
		return nil, fmt.Errorf("an id at two indexes, at call %d", index)
	case before == nil && len(c.calls) > 0 && index != c.last+1:
		return nil, fmt.Errorf("a gap in the indexes, before call %d", index)
	case len(c.calls) == mostCalls:
		return nil, fmt.Errorf("more than %d calls", mostCalls)
	}
	if c.at == nil {
		c.at, c.ids = map[int]*callAssembly{}, map[string]*callAssembly{}
	}
	call := &callAssembly{ToolCall: ToolCall{Index: len(c.calls), ID: d.ID, Type: d.Type, Name: d.Name}}
	c.calls = append(c.calls, call)
	c.at[index] = call
	if d.ID != "" {
		c.ids[d.ID] = call
	}
	c.last = max(c.last, index)
	return call, nil
}

// choice is what was put together.
func (c *assembly) choice(index int) Choice {
	out := Choice{Index: index, FinishReason: c.reason, Extra: c.beside.extra()}
	m := &out.Message
	m.FunctionCall, m.Extra = c.legacy, c.extra.extra()
	if c.hasContent {
		text := string(c.content)
		m.Content = &text
	}
	if c.hasRefused {
		text := string(c.refused)
		m.Refusal = &text
	}
	for _, call := range c.calls {
		whole := call.ToolCall
		whole.Arguments, whole.Extra = slices.Clone(call.Arguments), call.extra.extra()
		m.ToolCalls = append(m.ToolCalls, whole)
	}
	return out
}
