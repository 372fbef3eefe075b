package parser

import (
	"fmt"

	"github.com/callgate/callgate/refusal"
)

// ParseStructured judges the text of an answer that is asked to be one JSON value: strict JSON by the rules and
// bounds that hold for completions, alone but for outer white space. The value is JSON of the result; what is in it,
// below its own members, is data.
//
// A call stays a call. Where calls come as text, an object with a member "tool" is judged as Parse does, and so is an
// array of calls. Where they come natively, an object is refused whose own members hold what Options.NativeText says.
//
// With partial, the beginning of a value passes as a text, and so does what is no JSON; JSON is nil then. A value
// that is whole by then is judged. Calls are refused with truncated, as Parse does.
func ParseStructured(completion []byte, truncated, partial bool, options Options) Result {
	o := options.withDefaults()
	in := input{window: completion[:min(len(completion), o.MaxBytes+lookahead)], length: len(completion), max: o.MaxBytes}
	r := reader{b: in.window, i: SkipSpace(in.window, 0), maxDepth: o.MaxDepth}
	start := r.i
	if start == len(r.b) {
		f := in.decide(&fault{offset: in.length, code: refusal.EmptyOutput})
		return Result{Refusal: f.ofStructured(in, o)}
	}
	open := r.b[start]
	var ok bool
	var called *fault
	switch {
	case open == '{' && o.TextOnly:
		ok = r.object(1, func(name []byte, at int) bool {
			if called == nil && o.NativeText != AllowAny && r.i < len(r.b) && isName(name, calledNames) && isCallValue(name, r.b[r.i]) {
				called = &fault{offset: at, code: refusal.MixedOutput, detail: unquote(name)}
			}
			return r.value(1)
		})
	case open == '{':
		var e envelope
		if ok = e.read(&r); e.tool.there {
			return readAttempt(in, start, truncated, o)
		}
	case open == '[' && !o.TextOnly:
		var calls bool
		if ok, calls = readArray(&r); calls {
			return readAttempt(in, start, truncated, o)
		}
	default:
		ok = r.value(0)
	}
	body := r.b[start:r.i]
	if ok {
		r.alone()
	}
	f := in.decide(r.fault)
	if called != nil && (f == nil || called.offset < f.offset) {
		f = called
	}
	switch {
	case f == nil:
		return Result{Kind: Text, Text: completion, JSON: body, JSONOffset: start}
	case partial && f != called && !in.over() && f.ended && f.code == refusal.MalformedJSON:
		return Result{Kind: Text, Text: completion}
	case partial && open != '{' && open != '[':
		return Parse(completion, truncated, options)
	}
	return Result{Refusal: f.ofStructured(in, o)}
}

// ofStructured turns a fault of a structured output into what goes back.
func (f *fault) ofStructured(in input, o Options) *refusal.Error {
	var message string
	switch f.code {
	case refusal.EmptyOutput:
		message = "The answer is empty. Send the JSON that is asked for."
	case refusal.MalformedJSON:
		message = fmt.Sprintf("The answer is not strict JSON: at byte %d %s was expected and %s was found. Send the whole answer again as one JSON value, with no text and no code fence around it.", f.offset, f.detail, found(in.window, f.offset))
	case refusal.DuplicateKey:
		message = fmt.Sprintf("The member %s stands twice in one object, the second time at byte %d. Send the answer again with the value that you mean, once.", Quote(f.detail), f.offset)
	case refusal.TooDeep:
		message = fmt.Sprintf("The JSON nests deeper than the %d levels that are allowed, at byte %d. Send the answer again with flatter values.", o.MaxDepth, f.offset)
	case refusal.MixedOutput:
		message = fmt.Sprintf("The answer has the form of a tool call: its member %s is at byte %d. Make a call as a tool call of its own, or answer without that member.", Quote(f.detail), f.offset)
		if f.detail == afterCall {
			message = fmt.Sprintf("After the JSON ends, other text begins at byte %d. Send the JSON alone, with nothing before or after it and no code fence.", f.offset)
		}
	default:
		return f.refusal(in, o)
	}
	return f.said(message)
}
