package upstream

import "errors"

// endings follows which choices of a stream have begun, and which are whole.
type endings struct {
	choices map[int]*ending
	open    int // how many go on
}

// ending is how one choice stands.
type ending struct {
	reason string // why it ended, the first time
	ended  bool
}

// see takes in what a chunk adds to a choice. A choice may go on after its end,
// and then has to end again, for the same reason: one provider streams several
// turns as one. An end that is said twice is one end.
func (e *endings) see(c *DeltaChoice) error {
	if e.choices == nil {
		e.choices = map[int]*ending{}
	}
	choice := e.choices[c.Index]
	if choice == nil {
		choice = &ending{}
		e.choices[c.Index] = choice
		e.open++
	}
	if choice.ended && c.Delta.says() {
		choice.ended = false
		e.open++
	}
	if c.FinishReason == nil {
		return nil
	}
	if choice.reason != "" && choice.reason != *c.FinishReason {
		return errors.New("a choice that finished for two reasons")
	}
	choice.reason = *c.FinishReason
	if !choice.ended {
		choice.ended = true
		e.open--
	}
	return nil
}

// whole tells why what came is not a whole answer, or nil.
func (e *endings) whole() error {
	switch {
	case len(e.choices) == 0:
		return errors.New("no choice")
	case e.open > 0:
		return errors.New("a choice without a finish_reason")
	}
	return nil
}

// says tells whether a delta adds to what the model said.
func (d *Delta) says() bool {
	return d.Content != nil && *d.Content != "" || d.Refusal != nil && *d.Refusal != "" || len(d.ToolCalls) > 0 || d.FunctionCall
}
