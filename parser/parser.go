// Package parser reads one raw model completion and gives it exactly one
// verdict: a tool call, text, or a refusal. Nothing is repaired, coerced,
// trimmed inside, defaulted or re-ordered: the arguments of a call are the very
// bytes of the completion.
//
// The language:
//
//	call    = { "tool": { "name": string, "arguments": object }, "agent"?: string }
//	          alone, outer JSON whitespace aside
//	text    = anything in which no JSON object opens, that bears no mark of a
//	          foreign tool-call syntax, and that does not itself start like a call
//	refused = all else
//
// Where calls come natively, beside the text (Options.Prose), the language is text
// alone: no byte of it is a call, and how it starts does not matter.
//
// JSON is RFC 8259 with two rules of I-JSON (RFC 7493): valid UTF-8 without
// surrogate code points, and no two members of one object whose names are equal
// after decoding. Depth, the length of numbers and their exponents are bounded.
// The fault that starts at the lowest byte offset decides; at equal offsets
// size and encoding come before grammar.
//
// Parse and Stream give the same verdict for every way of cutting a completion,
// in time linear in its length. No byte beyond Options.MaxBytes plus a small
// window is ever read; the window only serves to recognise a fault that starts
// below the limit and ends above it.
package parser

import (
	"unicode/utf8"

	"github.com/callgate/callgate/refusal"
)

// The limits that apply where Options names none.
const (
	DefaultMaxBytes = 1 << 20
	DefaultMaxDepth = 64
)

// lookahead is how many bytes beyond MaxBytes are read to finish what started
// below it: a mark, a number (256 bytes at most), a surrogate pair, a name.
const lookahead = 4096

// JSONInText sets how JSON within text is judged.
type JSONInText string

const (
	// Reject refuses text in which any JSON object opens. It is the zero value's
	// meaning too.
	Reject JSONInText = "reject"
	// AllowForeign refuses only text in which a member of the call language
	// opens: "tool", "tool_call", "tool_calls", "tool_result", "function_call" or
	// "arguments".
	AllowForeign JSONInText = "allow_foreign"
)

// Options are the bounds of the language. The zero value is the strictest: the
// defaults of the contract, and no JSON in text.
type Options struct {
	MaxBytes   int // of the whole completion, outer whitespace included
	MaxDepth   int // of objects and arrays; the root object is 1
	JSONInText JSONInText
	// TextOnly says that calls do not come in the text but beside it, natively: the
	// text is never read as a call, whatever it starts with, and other JSON may
	// stand in it as under AllowForeign. JSONInText does not matter then.
	TextOnly bool
}

// foreign reports whether text may hold JSON other than the call language.
func (o Options) foreign() bool { return o.TextOnly || o.JSONInText == AllowForeign }

func (o Options) withDefaults() Options {
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.MaxDepth <= 0 {
		o.MaxDepth = DefaultMaxDepth
	}
	return o
}

// Kind is one of the three verdicts. Its zero value is a refusal.
type Kind int

// The three verdicts.
const (
	Refused Kind = iota
	Text
	Call
)

// Result is the verdict on one completion.
type Result struct {
	Kind Kind
	// Refusal says why, when Kind is Refused; else it is nil.
	Refusal *refusal.Error
	// Text is, when Kind is Text, the completion as it came; from Stream.Close
	// only what Write has not released.
	Text []byte

	// Object says that the completion is one object with a member "tool", read
	// without a fault: a refusal then concerns the envelope.
	Object bool
	// Name is the tool's name, decoded. It is set for a call, and also for a
	// refusal of the envelope where /tool/name is a string (Named).
	Name       string
	HasName    bool
	NameOffset int // of the name's value in the completion
	// Arguments are the bytes of the arguments object of a call, not copied;
	// ArgumentsOffset is where they start in the completion.
	Arguments       []byte
	ArgumentsOffset int
	// Claim is the member "agent", decoded, of an object that was read without a
	// fault, even where the envelope is refused (Claimed). It is the model's
	// word, and grants nothing.
	Claim   string
	Claimed bool
	// AgentStated reports that such an object has the member "agent", of any type.
	AgentStated bool
}

// Truncates reports whether a finish reason means that the completion was cut.
func Truncates(finishReason string) bool {
	return finishReason == "length" || finishReason == "content_filter"
}

// Parse judges one whole completion. With truncated, a complete call, or an
// attempt whose only fault is that input ended, is refused as truncated. The
// result holds slices of completion; it is safe for concurrent use.
func Parse(completion []byte, truncated bool, options Options) Result {
	o := options.withDefaults()
	in := input{window: completion, length: len(completion), max: o.MaxBytes}
	if len(completion) > o.MaxBytes+lookahead {
		in.window = completion[:o.MaxBytes+lookahead]
	}
	start := SkipSpace(in.window, 0)
	if start == len(in.window) {
		return in.blank(o)
	}
	if !o.TextOnly && isAttempt(in.window[start:]) {
		return readAttempt(in, start, truncated, o)
	}
	t := textReader{max: o.MaxBytes, foreign: o.foreign()}
	t.read(in.window)
	if f := t.end(in); f != nil {
		return Result{Refusal: f.refusal(in, o)}
	}
	return Result{Kind: Text, Text: completion}
}

// input is the known part of a completion: the bytes that may be read, and the length of
// the whole.
type input struct {
	window []byte
	length int
	max    int
}

func (in input) over() bool { return in.length > in.max }

// decide weighs a fault against the size of the completion: the fault at the
// limit is certain once the completion is longer.
func (in input) decide(f *fault) *fault {
	if in.over() && (f == nil || f.offset >= in.max) {
		return &fault{offset: in.max, code: refusal.OutputTooLarge}
	}
	return f
}

// blank is the verdict on a completion of nothing but outer whitespace.
func (in input) blank(o Options) Result {
	f := in.decide(&fault{offset: in.length, code: refusal.EmptyOutput})
	return Result{Refusal: f.refusal(in, o)}
}

// isAttempt reports whether a body is read as JSON: it starts with an object, or
// with an array whose first element is an object that opens.
func isAttempt(body []byte) bool {
	if body[0] != '[' {
		return body[0] == '{'
	}
	var a arrayProbe
	for _, c := range body {
		switch a.step(c) {
		case probeAttempt:
			return true
		case probeText:
			return false
		}
	}
	return false
}

// arrayProbe decides, byte by byte, whether a body is a JSON attempt.
type arrayProbe struct {
	started, inside bool
	first           opening
	// An unfinished UTF-8 sequence within the first string: a byte that is no
	// character ends the string, and with it the object that would open.
	unfinished []byte
	sequence   [4]byte
}

type probe int

const (
	probeOpen probe = iota // not known yet
	probeAttempt
	probeText
)

func (a *arrayProbe) step(c byte) probe {
	switch {
	case !a.started:
		a.started = true
		switch c {
		case '{':
			return probeAttempt
		case '[':
			return probeOpen
		}
		return probeText
	case !a.inside:
		if c == '{' {
			a.inside = true
			a.first = opening{state: afterBrace}
			return probeOpen
		}
		if isSpace(c) {
			return probeOpen
		}
		return probeText
	}
	if c >= utf8.RuneSelf || len(a.unfinished) > 0 {
		a.unfinished = append(a.sequence[:len(a.unfinished)], c)
		size, broken := sequence(a.unfinished)
		if broken >= 0 {
			return probeText
		}
		if size == len(a.unfinished) {
			a.unfinished = a.unfinished[:0]
		}
	}
	switch a.first.step(c) {
	case opened:
		return probeAttempt
	case dead:
		return probeText
	}
	return probeOpen
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// SkipSpace returns the index of the first byte from i on that is not JSON white space.
func SkipSpace(b []byte, i int) int {
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	return i
}

// Window is how many bytes of a completion are ever read under these options:
// a reader that has got them need not read on. It is one more than can be
// needed, so that a completion which fills it is known to be too long.
func Window(options Options) int { return options.withDefaults().MaxBytes + lookahead + 1 }
