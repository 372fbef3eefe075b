package chat

import "errors"

// FinishTracker follows which choices of a stream have started, and which have finished.
type FinishTracker struct {
	choices    []choiceFinish // by index
	started    int            // choices that have started
	unfinished int            // those without a finish_reason
}

// choiceFinish is the state of one choice.
type choiceFinish struct {
	started  bool
	reason   string // the first finish_reason
	finished bool
}

// Observe takes one delta. A choice may go on after its finish_reason, and must then finish
// again with the same one: some provider streams several turns as one choice. The same
// finish_reason twice in a row counts once.
func (e *FinishTracker) Observe(c *DeltaChoice) error {
	for len(e.choices) <= c.Index { // which is bounded
		e.choices = append(e.choices, choiceFinish{})
	}
	choice := &e.choices[c.Index]
	if !choice.started {
		choice.started = true
		e.started++
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

// Incomplete returns why the stream is not a complete answer, or nil.
func (e *FinishTracker) Incomplete() error {
	switch {
	case e.started == 0:
		return errors.New("no choice")
	case e.unfinished > 0:
		return errors.New("a choice without a finish_reason")
	}
	return nil
}

// hasOutput reports whether a delta adds content, a refusal or calls.
func (d *Delta) hasOutput() bool {
	return d.Content != nil && *d.Content != "" || d.Refusal != nil && *d.Refusal != "" || len(d.ToolCalls) > 0 || d.FunctionCall
}
