package parser

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

// Window is how many bytes of a completion are ever read under these options:
// a reader that has got them need not read on. It is one more than can be
// needed, so that a completion which fills it is known to be too long.
func Window(options Options) int { return options.withDefaults().MaxBytes + lookahead + 1 }
