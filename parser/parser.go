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
// Where calls come natively, beside the text (Options.TextOnly), the language is text
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

	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/refusal"
)

// Truncates reports whether a finish reason means that the completion was cut: length or content_filter, or another API's
// word for the first, however it is spelt.
func Truncates(finishReason string) bool {
	switch ascii.Folded(finishReason) {
	case "length", "contentfilter", "maxtokens", "maxoutputtokens":
		return true
	}
	return false
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
	t := textReader{max: o.MaxBytes, json: o.refusedInText()}
	t.read(in.window)
	if f := t.end(in); f != nil {
		return Result{Refusal: f.refusal(in, o)}
	}
	return Result{Kind: Text, Text: completion}
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
	var a arrayPeek
	for _, c := range body {
		switch a.step(c) {
		case peekAttempt:
			return true
		case peekText:
			return false
		}
	}
	return false
}

// arrayPeek decides, byte by byte, whether a body is a JSON attempt.
type arrayPeek struct {
	started, inside bool
	first           objectStart
	// An unfinished UTF-8 sequence within the first string: a byte that is no
	// character ends the string, and with it the object that would open.
	unfinished []byte
	sequence   [4]byte
}

type peekResult int

const (
	peekOpen peekResult = iota // not known yet
	peekAttempt
	peekText
)

func (a *arrayPeek) step(c byte) peekResult {
	switch {
	case !a.started:
		a.started = true
		switch c {
		case '{':
			return peekAttempt
		case '[':
			return peekOpen
		}
		return peekText
	case !a.inside:
		if c == '{' {
			a.inside = true
			a.first = objectStart{state: afterBrace}
			return peekOpen
		}
		if isSpace(c) {
			return peekOpen
		}
		return peekText
	}
	if c >= utf8.RuneSelf || len(a.unfinished) > 0 {
		a.unfinished = append(a.sequence[:len(a.unfinished)], c)
		size, broken := sequence(a.unfinished)
		if broken >= 0 {
			return peekText
		}
		if size == len(a.unfinished) {
			a.unfinished = a.unfinished[:0]
		}
	}
	switch a.first.step(c) {
	case opened:
		return peekAttempt
	case dead:
		return peekText
	}
	return peekOpen
}
