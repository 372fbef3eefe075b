package chat

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Assembly puts the chunks of one stream together; the comment of the package has the rules. The zero value is
// ready. After an error it must not be used again.
type Assembly struct {
	bytes      int
	completion Completion // without its choices
	extra      mergedMembers
	choices    []*choiceAssembly // by index; nil: not started
	finishes   FinishTracker
}

// firstContent is how many bytes the content of a choice has room for at first.
const firstContent = 512

// choiceAssembly is one choice while its chunks arrive.
type choiceAssembly struct {
	content, refusal []byte
	hasContent       bool
	hasRefusal       bool
	functionCall     bool
	finishReason     string
	messageExtra     mergedMembers // of the message
	choiceExtra      mergedMembers // of the choice
	calls            []*callAssembly
	byIndex          map[int]*callAssembly // the call last started at each index
	byID             map[string]*callAssembly
	lastIndex        int  // the highest index
	severalOpen      bool // a call began before the arguments of the one before were complete
}

// callAssembly is one call while its pieces arrive.
type callAssembly struct {
	ToolCall
	extra mergedMembers
}

// Size is about how many bytes the answer takes so far.
func (a *Assembly) Size() int { return a.bytes }

// Incomplete returns why the chunks so far are not a complete answer, or nil. Whether one that lacks
// a finish_reason may end, the stream knows: see FinishTracker.Unended.
func (a *Assembly) Incomplete() error { return a.finishes.Unended() }

// Assembled returns the completion.
func (a *Assembly) Assembled() (*Completion, error) {
	c := a.completion
	c.Extra = a.extra.extra()
	for index, choice := range a.choices {
		if choice != nil {
			c.Choices = append(c.Choices, choice.assembled(index))
		}
	}
	return &c, c.sortChoices()
}

// Add adds the next chunk.
func (a *Assembly) Add(chunk *Chunk) error {
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
	a.bytes += a.extra.add(chunk.Extra, replaceStrings)
	for i := range chunk.Choices {
		delta := &chunk.Choices[i]
		if err := a.finishes.Observe(delta); err != nil {
			return err
		}
		grown, err := a.choiceAt(delta.Index).add(delta)
		if a.bytes += grown; err != nil {
			return err
		}
	}
	return nil
}

func (a *Assembly) choiceAt(index int) *choiceAssembly {
	for len(a.choices) <= index { // which is bounded
		a.choices = append(a.choices, nil)
	}
	if a.choices[index] == nil {
		a.choices[index] = &choiceAssembly{}
	}
	return a.choices[index]
}

// add adds one delta, and returns by how many bytes the choice has grown.
func (c *choiceAssembly) add(delta *DeltaChoice) (grown int, err error) {
	if text := delta.Delta.Content; text != nil {
		if c.content == nil {
			c.content = make([]byte, 0, firstContent)
		}
		c.content, c.hasContent = append(c.content, *text...), true
		grown += len(*text)
	}
	if text := delta.Delta.Refusal; text != nil {
		c.refusal, c.hasRefusal = append(c.refusal, *text...), true
		grown += len(*text)
	}
	c.functionCall = c.functionCall || delta.Delta.FunctionCall
	if delta.FinishReason != nil && c.finishReason == "" {
		c.finishReason = *delta.FinishReason
	}
	grown += c.messageExtra.add(delta.Delta.Extra, concatStrings)
	grown += c.choiceExtra.add(delta.Extra, replaceStrings)
	for i := range delta.Delta.ToolCalls {
		more, err := c.addToolDelta(&delta.Delta.ToolCalls[i])
		if grown += more; err != nil {
			return grown, err
		}
	}
	return grown, nil
}

// addToolDelta adds a piece to its call, or starts a call with it.
func (c *choiceAssembly) addToolDelta(d *ToolDelta) (grown int, err error) {
	call, err := c.callOf(d)
	switch {
	case err != nil:
		return 0, err
	case call == nil:
		if call, err = c.startToolCall(d); err != nil {
			return 0, err
		}
		grown = len(d.ID) + len(d.Type) + len(d.Name) + memberCost
	default:
		before := len(call.ID) + len(call.Name)
		if err := c.identify(call, d); err != nil {
			return 0, err
		}
		grown = len(call.ID) + len(call.Name) - before
	}
	call.Arguments = append(call.Arguments, d.Arguments...)
	return grown + len(d.Arguments) + call.extra.add(d.Extra, concatStrings), nil
}

// callOf returns the call that a piece continues; nil: the piece begins one.
func (c *choiceAssembly) callOf(d *ToolDelta) (*callAssembly, error) {
	if d.Index >= 0 {
		call := c.byIndex[d.Index]
		if call != nil && call.ID != "" && d.ID != "" && d.ID != call.ID {
			return nil, nil // another call at the same index: one provider streams so
		}
		return call, nil
	}
	if len(c.calls) == 0 {
		if d.Name == "" && d.ID == "" {
			return nil, errors.New("a piece of a call without an index, before any call")
		}
		return nil, nil
	}
	last := c.calls[len(c.calls)-1]
	known := c.byID[d.ID] // of no id, nil
	switch {
	case known != nil && d.Name != "" && known.Name != "":
		return nil, fmt.Errorf("two calls with one id and without an index, at call %d", known.Index)
	case known != nil:
		return known, nil
	case d.Name != "" && last.Name != "", d.ID != "" && last.ID != "":
		return nil, nil
	case c.severalOpen:
		return nil, errors.New("a piece of a call without an index, where it may belong to several calls")
	}
	return last, nil
}

// identify takes over an id and a name that come late, each once. A call without an id may not
// repeat its name: that may be another call.
func (c *choiceAssembly) identify(call *callAssembly, d *ToolDelta) error {
	switch {
	case d.Name != "" && call.Name != "" && d.Name != call.Name:
		return fmt.Errorf("a name that changes within call %d", call.Index)
	case d.Name != "" && call.Name != "" && call.ID == "":
		return fmt.Errorf("a name twice in a call without an id, in call %d", call.Index)
	case d.Type != "" && d.Type != cmp.Or(call.Type, "function"):
		return fmt.Errorf("a type that changes within call %d", call.Index)
	case d.ID != "" && call.ID == "":
		if c.byID[d.ID] != nil {
			return fmt.Errorf("an id at two indexes, at call %d", call.Index)
		}
		call.ID, c.byID[d.ID] = d.ID, call
	}
	call.Name = cmp.Or(call.Name, d.Name)
	return nil
}

// startToolCall starts a call with its first piece.
func (c *choiceAssembly) startToolCall(d *ToolDelta) (*callAssembly, error) {
	index := d.Index
	if index < 0 {
		if index = 0; len(c.calls) > 0 {
			index = c.lastIndex + 1
		}
	}
	before := c.byIndex[index]
	switch {
	case d.ID != "" && c.byID[d.ID] != nil:
		return nil, fmt.Errorf("an id at two indexes, at call %d", index)
	case before == nil && len(c.calls) > 0 && index < c.lastIndex:
		return nil, fmt.Errorf("an index below the one before, at call %d", index)
	case before == nil && len(c.calls) > 0 && index > c.lastIndex+1 && d.ID == "" && d.Name == "":
		return nil, fmt.Errorf("a gap in the indexes before a piece without an id and a name, at call %d", index)
	case len(c.calls) == maxToolCalls:
		return nil, fmt.Errorf("more than %d calls", maxToolCalls)
	}
	if c.byIndex == nil {
		c.byIndex, c.byID = map[int]*callAssembly{}, map[string]*callAssembly{}
	}
	if n := len(c.calls); n > 0 && !jsontext.Value(c.calls[n-1].Arguments).IsValid() {
		c.severalOpen = true
	}
	call := &callAssembly{ToolCall: ToolCall{Index: len(c.calls), ID: d.ID, Type: d.Type, Name: d.Name}}
	c.calls = append(c.calls, call)
	c.byIndex[index] = call
	if d.ID != "" {
		c.byID[d.ID] = call
	}
	c.lastIndex = max(c.lastIndex, index)
	return call, nil
}

// assembled returns the choice built from all deltas.
func (c *choiceAssembly) assembled(index int) Choice {
	out := Choice{Index: index, FinishReason: c.finishReason, Extra: c.choiceExtra.extra()}
	m := &out.Message
	m.FunctionCall, m.Extra = c.functionCall, c.messageExtra.extra()
	if c.hasContent {
		text := string(c.content)
		m.Content = &text
	}
	if c.hasRefusal {
		text := string(c.refusal)
		m.Refusal = &text
	}
	for _, call := range c.calls {
		whole := call.ToolCall
		whole.Arguments, whole.Extra = slices.Clone(call.Arguments), call.extra.extra()
		m.ToolCalls = append(m.ToolCalls, whole)
	}
	return out
}
