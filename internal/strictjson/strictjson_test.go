package strictjson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/callgate/callgate/internal/strictjson"
)

func TestCheck(t *testing.T) {
	for text, want := range map[string]error{
		`{}`: nil, ` [1, "a", null, {"b": [true]}] `: nil, `"x"`: nil, `12e400`: nil, "\t\r\n 0": nil, `{"a":1,"A":2,"\u00e4":3}`: nil, `{"a":"\ud83d\ude00"}`: nil,
		``: strictjson.ErrSyntax, ` `: strictjson.ErrSyntax, `{`: strictjson.ErrSyntax, `{}{}`: strictjson.ErrSyntax, `{} x`: strictjson.ErrSyntax, `{"a":1,}`: strictjson.ErrSyntax,
		`{'a':1}`: strictjson.ErrSyntax, `[1 2]`: strictjson.ErrSyntax, `01`: strictjson.ErrSyntax, `+1`: strictjson.ErrSyntax, `NaN`: strictjson.ErrSyntax, `nul`: strictjson.ErrSyntax,
		"\"a\nb\"": strictjson.ErrSyntax, `"\x41"`: strictjson.ErrSyntax, "\xef\xbb\xbf{}": strictjson.ErrSyntax, "{\u00a0}": strictjson.ErrSyntax, "// c\n{}": strictjson.ErrSyntax,
		"\"\xff\"": strictjson.ErrSyntax, "{\"\xc0\xaf\":1}": strictjson.ErrSyntax, `"\ud800"`: strictjson.ErrSyntax, `{"\udc00":1}`: strictjson.ErrSyntax,
		`{"a":1,"a":1}`: strictjson.ErrDuplicate, `{"a":1,"\u0061":2}`: strictjson.ErrDuplicate, `[{"b":{"a":1,"a":2}}]`: strictjson.ErrDuplicate,
		`[[[[[]]]]]`: strictjson.ErrDepth, `{"a":{"a":{"a":{"a":{}}}}}`: strictjson.ErrDepth, `[[[["[[[["]]]]`: nil, `{"a":"\"[[[[["}`: nil,
	} {
		if err := strictjson.Check([]byte(text), 4); !errors.Is(err, want) {
			t.Errorf("%q: %v; expected %v", text, err, want)
		}
		_, err := strictjson.Object([]byte(text), 4)
		if want == nil && !strings.HasPrefix(strings.TrimSpace(text), "{") {
			want = strictjson.ErrNoObject
		}
		if !errors.Is(err, want) {
			t.Errorf("%q as an object: %v; expected %v", text, err, want)
		}
	}
	deep := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	if err := strictjson.Check([]byte(deep), 512); !errors.Is(err, strictjson.ErrDepth) {
		t.Errorf("20,000 levels: %v", err)
	}
}

func TestObject(t *testing.T) {
	const text = ` { "a" : [1, 2.50] , "b\u002f" : {"c": null}, "" : "x" } `
	members, err := strictjson.Object([]byte(text), 4)
	if err != nil || fmt.Sprintf("%s", members) != fmt.Sprintf("%s", map[string]json.RawMessage{"a": []byte(`[1, 2.50]`), "b/": []byte(`{"c": null}`), "": []byte(`"x"`)}) {
		t.Errorf("%s, %v", members, err)
	}
	second, ok := strictjson.Members([]byte(text))
	if !ok || fmt.Sprintf("%s", second) != fmt.Sprintf("%s", members) {
		t.Errorf("%s, %v", second, ok)
	}
	elements, ok := strictjson.Elements(members["a"])
	if !ok || fmt.Sprintf("%s", elements) != `[1 2.50]` {
		t.Errorf("%s, %v", elements, ok)
	}
	for _, other := range []string{``, ` `, `null`, `"x"`, `7`} {
		if _, ok := strictjson.Members([]byte(other)); ok {
			t.Errorf("%q is an object", other)
		}
		if _, ok := strictjson.Elements([]byte(other)); ok {
			t.Errorf("%q is an array", other)
		}
	}
}

func TestLoneSurrogates(t *testing.T) {
	for text, want := range map[string]error{
		`{"a":"\ud800","b":{"\udc00x":1}}`: nil, `{"\ud800":1}`: nil, `{"a":"\ud83d\ude00"}`: nil,
		`{"\ud800":1,"\udc00":2}`: strictjson.ErrDuplicate, `{"\ud800":1,"\ufffd":2}`: strictjson.ErrDuplicate,
		"{\"a\":\"\xed\xa0\x80\"}": strictjson.ErrSyntax, "{\"a\":\"\xff\"}": strictjson.ErrSyntax, "{\"a\xff\":1}": strictjson.ErrSyntax,
		`{"a":"\ud8"}`: strictjson.ErrSyntax, `{"a":{"b":[[["\ud800"]]]}}`: strictjson.ErrDepth, `["\ud800"]`: strictjson.ErrSyntax,
	} {
		members, err := strictjson.ObjectAllowingLoneSurrogates([]byte(text), 4)
		if !errors.Is(err, want) || (err == nil) != (members != nil) {
			t.Errorf("%q: %v, %v; expected %v", text, members, err, want)
		}
		if strings.Contains(text, `\ud800`) && strictjson.Check([]byte(text), 5) == nil {
			t.Errorf("%q is strict", text)
		}
	}
}

func TestDeeper(t *testing.T) {
	const most = 128
	nest := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for in, want := range map[string]bool{
		nest(most): false, nest(most + 1): true,
		`"` + strings.Repeat("[", 500) + `"`:           false,
		`["\"` + strings.Repeat("[", 500) + `","\\"]`:  false,
		`["\\",` + nest(most) + `]`:                    true,
		`[` + strings.Repeat(`[{"a":1}],`, 500) + `1]`: false,
	} {
		if strictjson.Deeper([]byte(in), most) != want {
			t.Errorf("%.40s…: found %v", in, !want)
		}
	}
}

// FuzzCheck: what is taken is JSON to the standard library too, and its members are found.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{`{"a":[1,{"b":"\u0041"}]}`, `{"a":1,"a":2}`, `"\ud800"`, "\xff", `[[[[[`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		err := strictjson.Check(data, 16)
		if err == nil && !json.Valid(data) {
			t.Errorf("%q is taken", data)
		}
		members, objectErr := strictjson.Object(data, 16)
		if (objectErr == nil || objectErr == strictjson.ErrNoObject) != (err == nil) {
			t.Errorf("%q: %v as a value, %v as an object", data, err, objectErr)
		}
		var same map[string]json.RawMessage
		if objectErr == nil && (json.Unmarshal(data, &same) != nil || len(same) != len(members)) {
			t.Errorf("%q: %d members; the standard library finds %d", data, len(members), len(same))
		}
	})
}

func BenchmarkObject(b *testing.B) {
	data := []byte(`{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"` + strings.Repeat("some text ", 100) + `"}],"structuredContent":{"a":[1,2,3],"b":{"c":true}}}}`)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := strictjson.Object(data, 64); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	data := []byte(`{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"` + strings.Repeat("some text ", 100) + `"}],"structuredContent":{"a":[1,2,3],"b":{"c":true}}}}`)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if err := strictjson.Check(data, 64); err != nil {
			b.Fatal(err)
		}
	}
}

// TestLiteralLength: what a literal is found to be is strict JSON, and the other way round.
func TestLiteralLength(t *testing.T) {
	for _, rest := range []string{"", " ", ",", `"`, `x"`} {
		for _, text := range []string{
			`""`, `"a"`, `"ä\u00e4\n\"\\"`, `"\ud83d\ude00"`, "\"\x7f\u2028\"", `"` + strings.Repeat("a", 500) + `"`,
			`"\ud83d"`, `"\x41"`, `"\u12"`, "\"\n\"", "\"\x00\"", "\"\xff\"", "\"ä\xc3\"", `"\q"`, "", "a", `"`, `"a`, `"\"`, `1`, `{}`, ` "a"`, "\"\\\n\"",
		} {
			want := 0
			if strictjson.Valid([]byte(text)) && text[0] == '"' {
				want = len(text)
			}
			if got := strictjson.LiteralLength([]byte(text + rest)); got != want && (want > 0 || !strictjson.Valid([]byte(text + rest)[:got])) {
				t.Errorf("%q: %d; expected %d", text+rest, got, want)
			}
		}
	}
}

// TestAppendQuote: every byte is written as jsontext writes it, wherever it stands, and escaped as encoding/json
// does.
func TestAppendQuote(t *testing.T) {
	for c := range 256 {
		for at := range 17 {
			text := []byte("abcdefghijklmnopq")
			text[at] = byte(c)
			for _, text := range [][]byte{text, text[:at+1], text[at:]} {
				want, _ := jsontext.AppendQuote(nil, text)
				if got := strictjson.AppendQuote(nil, text); !bytes.Equal(got, want) || !bytes.Equal(strictjson.AppendQuote(nil, string(text)), want) {
					t.Fatalf("%q: %s; expected %s", text, got, want)
				}
				want, _ = json.Marshal(string(text))
				if got := strictjson.AppendEscaped(nil, string(text)); !bytes.Equal(got, want) {
					t.Fatalf("%q escaped: %s; expected %s", text, got, want)
				}
			}
		}
	}
}
