package main

import (
	"encoding/json"
	"time"

	"github.com/callgate/callgate/refusal"
)

// fields is a model that knows the form of a call and the codes, and reads the members code,
// violations (code and path), did_you_mean and retry_after_ms: never a sentence.
type fields struct{ *speaker }

// NewFields returns the model that reads members alone, after its first completion.
func NewFields(intent Intent, completion string) Model { return fields{newSpeaker(intent, completion)} }

func (m fields) Next(heard []byte) Reply {
	var line heardError
	if json.Unmarshal(heard, &line) != nil {
		return Reply{Completion: m.last}
	}
	e := &line.Result.Output.Error
	return Reply{m.reply(e), time.Duration(e.RetryAfterMS) * time.Millisecond}
}

// reply is the next completion, after an error.
func (m fields) reply(e *errorMembers) string {
	switch e.Code {
	case refusal.InvalidUTF8, refusal.EmptyOutput, refusal.MalformedJSON, refusal.DuplicateKey, refusal.TooDeep, refusal.InvalidNumber,
		refusal.MixedOutput, refusal.MultipleCalls, refusal.NotAToolCall, refusal.ForeignCallSyntax, refusal.TruncatedOutput:
		m.rewrite()
	case refusal.OutputTooLarge:
		m.shorten()
		m.sayCall()
	case refusal.UnknownTool:
		if names := append(e.DidYouMean, m.intent.Given...); len(names) > 0 {
			m.set([]string{"tool", "name"}, names[0])
			m.sayCall()
		}
	case refusal.AgentMismatch, refusal.AgentRequired:
		m.envelope([]string{"agent"})
		m.sayCall()
	case refusal.UnexpectedField, refusal.MissingField, refusal.WrongType,
		refusal.UnexpectedArgument, refusal.MissingArgument, refusal.InvalidValue, refusal.BoundaryViolation:
		if !m.correct(e.Violations) {
			return cannot
		}
	case refusal.ApprovalConflict: // the call stood twice
	default:
		if e.RetryAfterMS == 0 {
			return cannot
		}
	}
	return m.last
}

// correct changes what violations name. It reports false where the model has nothing else to
// say at a place.
func (m fields) correct(violations []violation) bool {
	for _, v := range violations {
		at := path(v.Path)
		switch {
		case len(at) == 0:
			return false
		case len(at) == 1 && at[0] == "tool":
			m.rewrite()
		case v.Code == refusal.UnexpectedField || v.Code == refusal.UnexpectedArgument:
			m.drop(at)
		case m.envelope(at):
		case v.Code == refusal.MissingArgument:
			values := m.values(at)
			if len(values) == 0 {
				return false
			}
			m.set(at, values[0])
		default:
			if !m.next(at) {
				return false
			}
		}
	}
	m.sayCall()
	return true
}
