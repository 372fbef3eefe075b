package parser

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/callgate/callgate/internal/text"
	"github.com/callgate/callgate/refusal"
)

// fault is where a completion leaves the language, and how.
type fault struct {
	offset int
	code   refusal.Code
	detail string // by code: the expected token, the mark, or the name
	ended  bool   // the input ended where more was expected
}

// afterCall is the detail of text that follows a complete JSON value.
const afterCall = "after"

// theForm is how a call is written, for messages.
const theForm = `{"tool":{"name":"…","arguments":{…}}}`

// refusal turns a fault into what goes back to the model.
func (f *fault) refusal(in input, o Options) *refusal.Error {
	return f.said(f.message(in, o))
}

// said is the refusal of a fault by a message.
func (f *fault) said(message string) *refusal.Error {
	e := refusal.At(refusal.Parse, f.code, message)
	e.Violations = []refusal.Violation{{Code: f.code, Path: "", Offset: f.offset, Message: message}}
	return e
}

// message is one sentence or two that say what to change. None asks the model
// to drop what it meant.
func (f *fault) message(in input, o Options) string {
	if o.TextOnly {
		if message, ok := f.textMessage(o); ok {
			return message
		}
	}
	switch f.code {
	case refusal.OutputTooLarge:
		return fmt.Sprintf("The answer is longer than the %d bytes that are allowed. Say it in fewer bytes, or in several answers.",
			o.MaxBytes)
	case refusal.InvalidUTF8:
		return fmt.Sprintf("The answer is not valid UTF-8 at byte %d. Send it again, encoded as UTF-8.", f.offset)
	case refusal.EmptyOutput:
		return "The answer is empty. Send one tool call as " + theForm + ", or answer in text."
	case refusal.MalformedJSON:
		return fmt.Sprintf("The answer starts like a JSON tool call, but at byte %d %s was expected and %s was found. Send the whole call again as strict JSON, as %s; an answer in words must not begin with `{`.", f.offset, f.detail, found(in.window, f.offset), theForm)
	case refusal.DuplicateKey:
		return fmt.Sprintf("The member %s stands twice in one object, the second time at byte %d. Send the call again, as %s, with the value that you mean, once.", Quote(f.detail), f.offset, theForm)
	case refusal.TooDeep:
		return fmt.Sprintf("The JSON nests deeper than the %d levels that are allowed, at byte %d. Send the call again with flatter values.", o.MaxDepth, f.offset)
	case refusal.InvalidNumber:
		return fmt.Sprintf("The number at byte %d is out of bounds: %s was expected. Write it with fewer digits or a smaller exponent.",
			f.offset, f.detail)
	case refusal.MixedOutput:
		if f.detail == afterCall {
			return fmt.Sprintf("After the JSON ends, other text begins at byte %d. Send the tool call alone, as %s with nothing before or after it, or answer in text without JSON.", f.offset, theForm)
		}
		return fmt.Sprintf("A JSON object opens within text, at byte %d. Send the tool call alone, as %s with nothing before or after it and no code fence, or answer in text without JSON.", f.offset, theForm)
	case refusal.MultipleCalls:
		return "More than one call was sent in one answer. Send one call, as " + theForm + ", and the next one after its result."
	case refusal.NotAToolCall:
		return "The answer is JSON, but it has no member \"tool\" at the top. Send a tool call as " + theForm +
			", or answer in text that is not JSON."
	case refusal.ForeignCallSyntax:
		return fmt.Sprintf("The answer holds %q at byte %d, which is another syntax for tool calls. Send the call alone, as %s.", f.detail,
			f.offset, theForm)
	case refusal.TruncatedOutput:
		return "The answer was cut off before it was complete. Send the whole call again; if it is long, split the work into shorter calls."
	}
	return "The answer could not be read. Send one tool call as " + theForm + ", or answer in text."
}

// textMessage is what is said where calls come natively, of faults that a call
// in the text would else be the remedy for.
func (f *fault) textMessage(o Options) (message string, ok bool) {
	switch f.code {
	case refusal.EmptyOutput:
		return "The answer is empty. Call a tool, or answer in text.", true
	case refusal.MixedOutput:
		if o.NativeText == RefuseObjects {
			return fmt.Sprintf("A JSON object opens within the text at byte %d. Make a call as a tool call of its own, not as text, or answer in text without JSON.", f.offset), true
		}
		return fmt.Sprintf("A tool call is written into the text at byte %d. Make the call as a tool call of its own, not as text, or answer in text without it.", f.offset), true
	case refusal.ForeignCallSyntax:
		return fmt.Sprintf("The answer holds %q at byte %d, which is a tool call written as text. Make the call as a tool call of its own, or answer in text without it.", f.detail, f.offset), true
	}
	return "", false
}

// found names the character at an offset.
func found(b []byte, offset int) string {
	if offset >= len(b) {
		return "the end"
	}
	r, size := utf8.DecodeRune(b[offset:])
	switch {
	case r > 0x20 && r < 0x7F:
		return "`" + string(r) + "`"
	case r == ' ':
		return "a space"
	case r == utf8.RuneError && size == 1:
		return "an incomplete character"
	}
	return fmt.Sprintf("U+%04X", r)
}

// surplusMessage is the message for a member that is not allowed at its place: at the top,
// or in "tool".
func surplusMessage(path string) string {
	token, inside := strings.CutPrefix(path[1:], "tool/")
	name := Quote(refusal.UnescapePointer(token))
	if inside {
		return fmt.Sprintf(
			"%s is not part of \"tool\". It holds \"name\" and \"arguments\" alone; put what the tool needs into \"arguments\".", name)
	}
	return fmt.Sprintf("%s is not part of a tool call. Beside \"tool\" only \"agent\" may stand at the top; put what the tool needs into \"arguments\".", name)
}

func missingFieldMessage(name string) string {
	if name == "arguments" {
		return `"arguments" is missing in "tool". Add it as an object; a tool that needs none takes {}.`
	}
	return `"name" is missing in "tool". Add the name of the tool, as a string.`
}

func wrongFieldMessage(name, want string, first byte) string {
	hint := ""
	switch {
	case name == "tool":
		hint = `: {"name":"…","arguments":{…}}`
	case name == "arguments" && first == '"':
		hint = notAsText
	}
	return fmt.Sprintf("%q must be %s, but %s was found. Send it as %s%s.", name, want, TypeName(first), want, hint)
}

const notAsText = ", not as a string that holds JSON"

// wrongArgumentsMessage is wrongFieldMessage for arguments that stand beside a completion, in a member whose name
// differs from API to API.
func wrongArgumentsMessage(first byte) string {
	hint := ""
	if first == '"' {
		hint = notAsText
	}
	return fmt.Sprintf("The arguments must be an object, but %s was found. Send them as an object%s.", TypeName(first), hint)
}

// TypeName names the JSON type of a value by its first byte.
func TypeName(first byte) string {
	switch first {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

// maxQuoted is how many characters of a text a message shows.
const maxQuoted = 64

// Quote shows a short text of a model, an author or an operator in a message, so that nothing in it hides,
// breaks the line or never ends: in quotes, escaped, and cut when long.
func Quote(s string) string { return strconv.Quote(text.Shorten(s, maxQuoted)) }

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
	if f != nil && in.over() {
		f.ended = false // more came than was read
	}
	return f
}
