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

// NativeText sets how the text of an answer is judged whose calls come natively, beside it. No
// byte of such a text is a call; what is refused is what a reader could take for one.
type NativeText string

const (
	// RefuseCalls refuses text with an object whose member "tool" is an object, or whose
	// member "tool_calls" or "function_call" is an object or an array. It is the zero value's
	// meaning too.
	RefuseCalls NativeText = "calls"
	// RefuseObjects refuses text in which any JSON object opens.
	RefuseObjects NativeText = "reject"
	// AllowAny allows any JSON. Marks of foreign syntaxes are refused all the same.
	AllowAny NativeText = "any"
)

// Options are the bounds of the language. The zero value has the defaults of the contract, and
// allows no JSON in text. The tags are those of keys of a configuration.
type Options struct {
	// Of the whole completion, outer whitespace included.
	MaxBytes int `key:"max_bytes" of:"the longest completion in bytes" range:"64..67108864"`
	// Of objects and arrays; the root object is 1.
	MaxDepth int `key:"max_depth" of:"the deepest nesting" range:"3..1000"`
	// reject refuses text in which any JSON object opens; allow_foreign refuses only members of
	// the call language.
	JSONInText JSONInText `key:"json_in_text" of:"what JSON within text does" words:"reject allow_foreign"`
	// TextOnly says that calls do not come in the text but beside it, natively: the
	// text is never read as a call, whatever it starts with, and NativeText holds in
	// the place of JSONInText.
	TextOnly bool
	// Text beside native calls: calls refuses an object with a member "tool", "tool_calls" or
	// "function_call" that holds a call; reject refuses any JSON object; any refuses none.
	NativeText NativeText `key:"native_text" of:"what JSON does within the text of answers whose calls come natively" words:"calls reject any"`
}

// refusedJSON is the JSON that text must not hold.
type refusedJSON int

const (
	everyObject refusedJSON = iota
	callMembers             // members of the call language, whatever their values are
	callValues              // members whose values open as those of calls do
	noObject
)

// refusedInText is the JSON that text must not hold under these options.
func (o Options) refusedInText() refusedJSON {
	switch {
	case !o.TextOnly && o.JSONInText == AllowForeign:
		return callMembers
	case !o.TextOnly || o.NativeText == RefuseObjects:
		return everyObject
	case o.NativeText == AllowAny:
		return noObject
	}
	return callValues
}

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
