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
	called   bool   // it has a call
	reason   string // the first finish_reason
	finished bool
}

// Observe takes one delta. A choice may go on after its finish_reason, and must then finish
// again with the same one: some provider streams several turns as one choice. The same
// finish_reason twice in a row counts once, and so do tool_calls and stop: both say that the choice
// is complete. The first is kept.
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
	choice.called = choice.called || len(c.Delta.ToolCalls) > 0 || c.Delta.FunctionCall
	if choice.finished && c.Delta.hasOutput() {
		choice.finished = false
		e.unfinished++
	}
	if c.FinishReason == nil {
		return nil
	}
	switch {
	case choice.reason == "":
		choice.reason = *c.FinishReason
	case choice.reason != *c.FinishReason && !(choice.finished && isCompletion(choice.reason) && isCompletion(*c.FinishReason)):
		return errors.New("a choice that finished for two reasons")
	}
	if !choice.finished {
		choice.finished = true
		e.unfinished--
	}
	return nil
}

// isCompletion reports whether a finish_reason says that a choice is complete, its calls too.
func isCompletion(reason string) bool { return reason == "stop" || reason == "tool_calls" }

// Started returns how many choices have begun.
func (e *FinishTracker) Started() int { return e.started }

// Unended returns why a stream that says by itself that it has ended is not a complete answer, or nil.
// A choice of text may then lack its finish_reason, as in an answer that was not streamed. One with
// calls may not, nor one that went on after its finish_reason: its rest may be lost.
func (e *FinishTracker) Unended() error {
	for i := range e.choices {
		if c := &e.choices[i]; c.started && !c.finished && (c.called || c.reason != "") {
			return e.Incomplete()
		}
	}
	if e.started == 0 {
		return e.Incomplete()
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
