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
// zero value is ready. Its errors are *refusal.Error, and last.
type Assembler struct {
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

// Add takes in the next chunk.
func (a *Assembler) Add(chunk *Chunk) error {
	if a.fault != nil {
		return a.fault
	}
	if err := a.add(chunk); err != nil {
		a.fault = garbled("found %w", err)
		return a.fault
	}
	return nil
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
	a.extra.add(chunk.Extra, latest)
	for i := range chunk.Choices {
		delta := &chunk.Choices[i]
		if err := a.endings.see(delta); err != nil {
			return err
		}
		if err := a.choice(delta.Index).add(delta); err != nil {
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

func (c *assembly) add(delta *DeltaChoice) error {
	if text := delta.Delta.Content; text != nil {
		c.content, c.hasContent = append(c.content, *text...), true
	}
	if text := delta.Delta.Refusal; text != nil {
		c.refused, c.hasRefused = append(c.refused, *text...), true
	}
	c.legacy = c.legacy || delta.Delta.FunctionCall
	if delta.FinishReason != nil {
		c.reason = *delta.FinishReason
	}
	c.extra.add(delta.Delta.Extra, joined)
	c.beside.add(delta.Extra, latest)
	for i := range delta.Delta.ToolCalls {
		if err := c.piece(&delta.Delta.ToolCalls[i]); err != nil {
			return err
		}
	}
	return nil
}

// piece adds a piece to its call, or begins a call with it.
func (c *assembly) piece(d *ToolDelta) error {
	index := d.Index
	if index < 0 { // a whole call
		if d.Name == "" {
			return errors.New("a piece of a call without an index")
		}
		if index = 0; len(c.calls) > 0 {
			index = c.last + 1
		}
	}
	call := c.at[index]
	if call == nil || d.ID != "" && d.ID != call.ID {
		var err error
		if call, err = c.begin(call, index, d); err != nil {
			return err
		}
	}
	switch {
	case d.Name != "" && d.Name != call.Name:
		return fmt.Errorf("a name that changes within call %d", index)
	case d.Type != "" && d.Type != cmp.Or(call.Type, "function"):
		return fmt.Errorf("a type that changes within call %d", index)
	}
	call.Arguments = append(call.Arguments, d.Arguments...)
	call.extra.add(d.Extra, joined)
	return nil
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
