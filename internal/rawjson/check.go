package rawjson

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/callgate/callgate/parser"
)

// The kinds of faults.
var (
	ErrSyntax    = errors.New("no strict JSON")
	ErrDuplicate = errors.New("a name that stands twice in one object")
	ErrDepth     = errors.New("JSON nested deeper")
	ErrNotObject = errors.New("a value that is not an object")
)

// AnyDepth is for JSON that was judged before: it is deeper than any of it nests.
const AnyDepth = 10_000

// Valid reports whether bytes are one strict JSON value of any depth up to AnyDepth, whitespace
// around it aside.
func Valid(data []byte) bool { return jsontext.Value(data).IsValid() }

// Check returns nil for bytes that are one strict JSON value, whitespace around it aside. The
// outermost object or array is nested one deep.
func Check(data []byte, maxDepth int) error { return check(data, maxDepth) }

func check(data []byte, maxDepth int, options ...jsontext.Options) error {
	if Deeper(data, maxDepth) {
		return fmt.Errorf("%w than %d levels", ErrDepth, maxDepth)
	}
	if jsontext.Value(data).IsValid(options...) {
		return nil
	}
	var r Reader // which knows the fault
	r.reset(data, options...)
	if _, err := r.Value(); err != nil {
		return err
	}
	return r.End()
}

// ReadMap checks bytes as Check does, and returns the members of the object that they are. The
// values are parts of data.
func ReadMap(data []byte, maxDepth int) (map[string]json.RawMessage, error) {
	return readMap(data, maxDepth)
}

// ReadMapAllowingLoneSurrogates is ReadMap for texts that users may have written and a program
// has cut: an escape that is half of a surrogate pair is accepted. In a name it reads as
// U+FFFD, so that two such names are one.
func ReadMapAllowingLoneSurrogates(data []byte, maxDepth int) (map[string]json.RawMessage, error) {
	if !utf8.Valid(data) {
		return nil, ErrSyntax
	}
	return readMap(data, maxDepth, jsontext.AllowInvalidUTF8(true))
}

func readMap(data []byte, maxDepth int, options ...jsontext.Options) (map[string]json.RawMessage, error) {
	if err := check(data, maxDepth, options...); err != nil {
		return nil, err
	}
	members, ok := Map(data)
	if !ok {
		return nil, parser.ErrNoObject
	}
	return members, nil
}

// EveryString reports whether every string of a value that was checked before, names included,
// has a property. Its argument is valid during the call.
func EveryString(checked []byte, has func(text []byte) bool) bool {
	if bytes.IndexByte(checked, '"') < 0 {
		return true
	}
	var r Reader
	r.ResetChecked(checked)
	for {
		if r.Kind() == '"' {
			if text, err := r.Text(); err != nil || !has(text) {
				return false
			}
			continue
		}
		if _, err := r.decoder.ReadToken(); err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}

// Deeper reports whether brackets outside of strings nest deeper than maxDepth. It does not
// check that data is JSON.
func Deeper(data []byte, maxDepth int) bool {
	if bytes.Count(data, []byte{'{'})+bytes.Count(data, []byte{'['}) <= maxDepth {
		return false // nearly always: counting costs next to nothing
	}
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i = parser.StringEnd(data, i) - 1
		case '{', '[':
			if depth++; depth > maxDepth {
				return true
			}
		case '}', ']':
			depth--
		}
	}
	return false
}

// Alike reports whether two texts are JSON of the same value: white space, the order of members, and how strings and numbers
// are written aside.
func Alike(a, b []byte) bool {
	x, y := jsontext.Value(bytes.Clone(a)), jsontext.Value(bytes.Clone(b))
	// As binary numbers, long ones would be the same.
	asWritten := []jsontext.Options{jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)}
	return x.Canonicalize(asWritten...) == nil && y.Canonicalize(asWritten...) == nil && bytes.Equal(exactNumbers(x), exactNumbers(y))
}

// exactNumbers writes each number of a document, which is JSON, in the one form of its decimal value.
func exactNumbers(document []byte) []byte {
	out := make([]byte, 0, len(document))
	for i := 0; i < len(document); {
		end := i + 1
		switch c := document[i]; {
		case c == '"':
			end = parser.StringEnd(document, i)
		case c == '-' || '0' <= c && c <= '9':
			for end < len(document) && bytes.IndexByte([]byte("+-.eE0123456789"), document[end]) >= 0 {
				end++
			}
			out, i = append(out, exactNumber(string(document[i:end]))...), end
			continue
		}
		out, i = append(out, document[i:end]...), end
	}
	return out
}

func exactNumber(number string) string {
	unsigned, negative := strings.CutPrefix(strings.ToLower(number), "-")
	mantissa, power, _ := strings.Cut(unsigned, "e")
	exponent, err := strconv.Atoi(cmp.Or(power, "0"))
	if err != nil {
		return number
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	short := strings.TrimRight(digits, "0")
	if short == "" {
		return "0"
	}
	exponent += len(digits) - len(short) - len(fraction)
	if negative {
		short = "-" + short
	}
	return short + "e" + strconv.Itoa(exponent)
}
