package upstream

import "errors"

// finishTracker follows which choices of a stream have begun, and which are whole.
type finishTracker struct {
	choices    map[int]*choiceFinish
	unfinished int // how many go on
}

// choiceFinish is how one choice stands.
type choiceFinish struct {
	reason   string // why it ended, the first time
	finished bool
}

// observe takes in what a chunk adds to a choice. A choice may go on after its end,
// and then has to end again, for the same reason: one provider streams several
// turns as one. An end that is said twice is one end.
func (e *finishTracker) observe(c *DeltaChoice) error {
	if e.choices == nil {
		e.choices = map[int]*choiceFinish{}
	}
	choice := e.choices[c.Index]
	if choice == nil {
		choice = &choiceFinish{}
		e.choices[c.Index] = choice
		e.unfinished++
	}
	if choice.finished && c.Delta.hasOutput() {
		choice.finished = false
		e.unfinished++
	}
	if c.FinishReason == nil {
		return nil
	}
	if choice.reason != "" && choice.reason != *c.FinishReason {
		return errors.New("a choice that finished for two reasons")
	}
	choice.reason = *c.FinishReason
	if !choice.finished {
		choice.finished = true
		e.unfinished--
	}
	return nil
}

// incomplete tells why what came is not a whole answer, or nil.
func (e *finishTracker) incomplete() error {
	switch {
	case len(e.choices) == 0:
		return errors.New("no choice")
	case e.unfinished > 0:
		return errors.New("a choice without a finish_reason")
	}
	return nil
}

// hasOutput tells whether a delta adds to what the model said.
func (d *Delta) hasOutput() bool {
	return d.Content != nil && *d.Content != "" || d.Refusal != nil && *d.Refusal != "" || len(d.ToolCalls) > 0 || d.FunctionCall
}
