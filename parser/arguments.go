package parser

import (
	"fmt"

	"github.com/callgate/callgate/refusal"
)

// ParseArguments judges the arguments of a call that came apart from its name,
// as providers' native calls do: strict JSON, by the rules and bounds that hold
// for completions, and an object. A result that is no refusal has the Kind Call
// and no Name. Violations stand at /tool/arguments and have no offset, since
// there is no completion that it could be in.
func ParseArguments(arguments []byte, truncated bool, options Options) Result {
	o := options.withDefaults()
	in := input{window: arguments[:min(len(arguments), o.MaxBytes+lookahead)], length: len(arguments), max: o.MaxBytes}
	r := reader{b: in.window, i: SkipSpace(in.window, 0), maxDepth: o.MaxDepth}
	start := r.i
	var f *fault
	switch {
	case start == len(in.window):
		f = &fault{offset: start, code: refusal.EmptyOutput, ended: true}
	case r.value(2): // the envelope around them is two levels
		if r.space(); r.i < len(r.b) {
			r.unexpected(r.i, "the end")
		}
		f = r.fault
	default:
		f = r.fault
	}
	// A cut call is whole only by chance; a value other than an object is not a call, cut or
	// not.
	if f = in.decide(f); truncated && (f == nil && r.b[start] == '{' || f != nil && f.ended) {
		f = &fault{offset: in.length, code: refusal.TruncatedOutput}
	}
	if f != nil {
		return Result{Refusal: f.ofArguments(in, o)}
	}
	body := in.window[start:r.i]
	if body[0] != '{' {
		return Result{Refusal: atArguments(refusal.WrongType, wrongArgumentsMessage(body[0]))}
	}
	for end := len(body); end > 0 && isSpace(body[end-1]); end-- {
		body = body[:end-1]
	}
	return Result{Kind: Call, Object: true, Arguments: body}
}

// ofArguments turns a fault of native arguments into what goes back.
func (f *fault) ofArguments(in input, o Options) *refusal.Error {
	switch f.code {
	case refusal.MalformedJSON:
		return atArguments(f.code, fmt.Sprintf("The arguments are not strict JSON: at byte %d %s was expected and %s was found. Send the call again with its arguments as one JSON object.", f.offset, f.detail, found(in.window, f.offset)))
	case refusal.DuplicateKey:
		return atArguments(f.code, fmt.Sprintf("The member %s stands twice in one object, the second time at byte %d. Send the call again with that member once, with the value that you mean.", Quote(f.detail), f.offset))
	case refusal.EmptyOutput:
		return atArguments(f.code, "The arguments are empty. Send them as one JSON object; a tool that needs none takes {}.")
	}
	return atArguments(f.code, f.message(in, o))
}

func atArguments(code refusal.Code, message string) *refusal.Error {
	e := refusal.At(refusal.Parse, code, message)
	e.Violations = []refusal.Violation{{Code: code, Path: "/tool/arguments", Offset: -1, Message: message}}
	return e
}
