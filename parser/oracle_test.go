package parser_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/parser"
)

// The oracle says what the rules say, slowly and by other means: regular
// expressions for text, jsontext and encoding/json for attempts.

var (
	opensHere = regexp.MustCompile(`^\{[ \t\r\n]*"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"[ \t\r\n]*:`)
	arrayOpen = regexp.MustCompile(`^\[[ \t\r\n]*\{`)
	// memberHere is a member that starts at a brace or a comma; its name is the group.
	memberHere = regexp.MustCompile(`^[{,][ \t\r\n]*("(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")[ \t\r\n]*:`)
)

// hasCall tells whether a member that holds a call starts at b: its value opens as that of a call.
func hasCall(b []byte) bool {
	found := memberHere.FindSubmatchIndex(b)
	var name string
	if found == nil || json.Unmarshal(b[found[2]:found[3]], &name) != nil {
		return false
	}
	value := bytes.TrimLeft(b[found[1]:], " \t\r\n")
	lists := name == "tool_calls" || name == "function_call"
	return len(value) > 0 && (value[0] == '{' && (lists || name == "tool") || value[0] == '[' && lists)
}

// firstBroken is the offset of the first byte that cannot continue UTF-8, or -1.
func firstBroken(b []byte) int {
	for i := 0; i < len(b); {
		if r, size := utf8.DecodeRune(b[i:]); r != utf8.RuneError || size > 1 {
			i += size
			continue
		}
		for k := 1; i+k <= len(b); k++ {
			if utf8.FullRune(b[i : i+k]) {
				return i + k - 1
			}
		}
		return len(b)
	}
	return -1
}

func attempts(body []byte) bool {
	if bytes.HasPrefix(body, []byte("{")) {
		return true
	}
	loc := arrayOpen.FindIndex(body)
	return loc != nil && opensHere.Match(body[loc[1]-1:])
}

// textOracle returns the verdict on text of at most max bytes, in which objects
// must not open where opens says so.
func textOracle(b []byte, marks []string, opens func([]byte) bool) (string, int) {
	verdict, lowest := "text", len(b)+1
	end := len(b)
	if i := firstBroken(b); i >= 0 {
		verdict, lowest, end = "invalid_utf8", i, i
	}
	for i := range b[:end] {
		if i < lowest && (b[i] == '{' || b[i] == ',') && opens(b[i:end]) {
			verdict, lowest = "mixed_output", i
			break
		}
	}
	for _, m := range marks {
		if i := bytes.Index(b, []byte(m)); i >= 0 && i < lowest {
			verdict, lowest = "foreign_call_syntax", i
		}
	}
	return verdict, lowest
}

// strictJSON tells whether jsontext reads one value and nothing else.
func strictJSON(b []byte) error {
	d := jsontext.NewDecoder(bytes.NewReader(b))
	if _, err := d.ReadValue(); err != nil {
		return err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("bytes after the value")
	}
	return nil
}

func readMarks(t testing.TB) []string {
	t.Helper()
	var marks []string
	for line := range strings.Lines(foreignMarks(t)) {
		if !strings.HasPrefix(line, "# ") {
			marks = append(marks, strings.TrimSuffix(line, "\n"))
		}
	}
	return marks
}

// agrees holds one completion against the oracle.
func agrees(t *testing.T, in []byte, marks []string) {
	t.Helper()
	o := parser.Options{MaxBytes: 1 << 16, MaxDepth: 50}
	if len(in) > o.MaxBytes {
		return
	}
	agreesProse(t, in, marks, o)
	r := parser.Parse(in, false, o)
	got, at := verdict(r)
	body := bytes.Trim(in, " \t\r\n")
	if len(body) == 0 {
		if got != "empty_output" {
			t.Fatalf("%q: got %s, want empty_output", in, got)
		}
		return
	}
	if !attempts(body) {
		want, offset := textOracle(in, marks, opensHere.Match)
		if got != want || want != "text" && at != offset {
			t.Fatalf("%q: got %s at %d, want %s at %d", in, got, at, want, offset)
		}
		return
	}
	err := strictJSON(body)
	switch got {
	case "text":
		t.Fatalf("%q: an attempt is text", in)
	case "too_deep", "invalid_number":
		return // bounds that jsontext does not have
	case "tool_call", "not_a_tool_call", "unexpected_field", "missing_field", "wrong_type":
		if err != nil {
			t.Fatalf("%q: got %s, but jsontext says %v", in, got, err)
		}
	case "multiple_calls":
		if err != nil && body[0] == '[' && strictJSON(body[:bytes.LastIndexByte(body, ']')+1]) != nil && at == 0 {
			t.Fatalf("%q: got %s, but jsontext says %v", in, got, err)
		}
	default:
		if err == nil {
			t.Fatalf("%q: got %s at %d, but jsontext reads it", in, got, at)
		}
	}
	if broken := firstBroken(in); got == "invalid_utf8" && at != broken {
		t.Fatalf("%q: invalid UTF-8 at %d, want %d", in, at, broken)
	}
	if got == "tool_call" {
		sameValue(t, r)
	}
}

// agreesProse does so for the text beside native calls: however it starts, it is
// text, and what stands in it counts.
func agreesProse(t *testing.T, in []byte, marks []string, o parser.Options) {
	t.Helper()
	o.TextOnly = true
	got, at := verdict(parser.Parse(in, false, o))
	want, offset := textOracle(in, marks, hasCall)
	if len(bytes.Trim(in, " \t\r\n")) == 0 {
		want, offset = "empty_output", len(in)
	}
	if got != want || want != "text" && at != offset {
		t.Fatalf("%q as prose: got %s at %d, want %s at %d", in, got, at, want, offset)
	}
}

// sameValue holds our reading of the arguments against the two other readers.
func sameValue(t *testing.T, r parser.Result) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(r.Arguments))
	d.UseNumber()
	var theirs any
	if err := d.Decode(&theirs); err != nil {
		t.Fatalf("encoding/json does not read %q: %v", r.Arguments, err)
	}
	ours, err := json.Marshal(parser.DecodeObject(r.Arguments))
	if err != nil {
		t.Fatal(err)
	}
	if want, _ := json.Marshal(theirs); !bytes.Equal(ours, want) {
		t.Fatalf("%q: read as %s, encoding/json reads %s", r.Arguments, ours, want)
	}
	var token jsontext.Value = bytes.Clone(r.Arguments)
	if err := token.Compact(); err != nil {
		t.Fatalf("jsontext does not read %q: %v", r.Arguments, err)
	}
}

func TestOracleOnCases(t *testing.T) {
	marks := readMarks(t)
	for _, c := range cases {
		agrees(t, []byte(c.in), marks)
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range cases {
		f.Add([]byte(c.in))
	}
	for _, v := range corpora.Vectors(f) {
		f.Add(v.Bytes(f))
	}
	marks := readMarks(f)
	for _, m := range marks {
		f.Add([]byte("a " + m))
	}
	f.Fuzz(func(t *testing.T, in []byte) { agrees(t, in, marks) })
}

func FuzzStream(f *testing.F) {
	for _, c := range cases {
		f.Add([]byte(c.in), false, false)
		f.Add([]byte(c.in), true, true)
	}
	for _, m := range readMarks(f) {
		f.Add([]byte("a {\"b\" "+m), false, false)
	}
	f.Fuzz(func(t *testing.T, in []byte, truncated, foreign bool) {
		o := small
		if foreign {
			o.JSONInText = parser.AllowForeign
		}
		sameAtEveryCut(t, in, truncated, o)
		o.TextOnly = true
		for _, native := range []parser.NativeText{parser.RefuseCalls, parser.RefuseObjects, parser.AllowAny} {
			o.NativeText = native
			sameAtEveryCut(t, in, truncated, o)
		}
	})
}

func FuzzOffsets(f *testing.F) {
	f.Add([]byte(`{"tool":{"name":"a","arguments":{"a":[1,{"b/~":null}]}}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		r := parser.Parse(in, false, parser.Options{})
		if r.Kind != parser.Call {
			return
		}
		// Every place of the value is found at the bytes that encode it.
		var walk func(v any, path []string)
		walk = func(v any, path []string) {
			at := parser.Offsets(r.Arguments, r.ArgumentsOffset, []parser.Position{{Path: path}, {Path: path, Part: parser.Name}})
			d := json.NewDecoder(bytes.NewReader(in[at[0]:]))
			d.UseNumber()
			var there any
			if err := d.Decode(&there); err != nil {
				t.Fatalf("%q: %v is not at %d: %v", in, path, at[0], err)
			}
			a, _ := json.Marshal(v)
			if b, _ := json.Marshal(there); !bytes.Equal(a, b) {
				t.Fatalf("%q: at %d for %v stands %s, want %s", in, at[0], path, b, a)
			}
			switch v := v.(type) {
			case map[string]any:
				for k, c := range v {
					sub := append(path[:len(path):len(path)], k)
					name := parser.Offsets(r.Arguments, r.ArgumentsOffset, []parser.Position{{Path: sub, Part: parser.Name}, {Path: sub, Part: parser.Enclosing}})
					if in[name[0]] != '"' || name[1] != at[0] {
						t.Fatalf("%q: the name of %v at %d, its object at %d", in, sub, name[0], name[1])
					}
					walk(c, sub)
				}
			case []any:
				for i, c := range v {
					walk(c, append(path[:len(path):len(path)], itoa(i)))
				}
			}
		}
		walk(parser.DecodeObject(r.Arguments), nil)
	})
}
