package rawjson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/parser"
)

func TestCheck(t *testing.T) {
	for text, want := range map[string]error{
		`{}`: nil, ` [1, "a", null, {"b": [true]}] `: nil, `"x"`: nil, `12e400`: nil, "\t\r\n 0": nil, `{"a":1,"A":2,"\u00e4":3}`: nil, `{"a":"\ud83d\ude00"}`: nil,
		``: rawjson.ErrSyntax, ` `: rawjson.ErrSyntax, `{`: rawjson.ErrSyntax, `{}{}`: rawjson.ErrSyntax, `{} x`: rawjson.ErrSyntax, `{"a":1,}`: rawjson.ErrSyntax,
		`{'a':1}`: rawjson.ErrSyntax, `[1 2]`: rawjson.ErrSyntax, `01`: rawjson.ErrSyntax, `+1`: rawjson.ErrSyntax, `NaN`: rawjson.ErrSyntax, `nul`: rawjson.ErrSyntax,
		"\"a\nb\"": rawjson.ErrSyntax, `"\x41"`: rawjson.ErrSyntax, "\xef\xbb\xbf{}": rawjson.ErrSyntax, "{\u00a0}": rawjson.ErrSyntax, "// c\n{}": rawjson.ErrSyntax,
		"\"\xff\"": rawjson.ErrSyntax, "{\"\xc0\xaf\":1}": rawjson.ErrSyntax, `"\ud800"`: rawjson.ErrSyntax, `{"\udc00":1}`: rawjson.ErrSyntax,
		`{"a":1,"a":1}`: rawjson.ErrDuplicate, `{"a":1,"\u0061":2}`: rawjson.ErrDuplicate, `[{"b":{"a":1,"a":2}}]`: rawjson.ErrDuplicate,
		`[[[[[]]]]]`: rawjson.ErrDepth, `{"a":{"a":{"a":{"a":{}}}}}`: rawjson.ErrDepth, `[[[["[[[["]]]]`: nil, `{"a":"\"[[[[["}`: nil,
	} {
		if err := rawjson.Check([]byte(text), 4); !errors.Is(err, want) {
			t.Errorf("%q: %v; expected %v", text, err, want)
		}
		_, err := rawjson.ReadMap([]byte(text), 4)
		if want == nil && !strings.HasPrefix(strings.TrimSpace(text), "{") {
			want = parser.ErrNoObject
		}
		if !errors.Is(err, want) {
			t.Errorf("%q as an object: %v; expected %v", text, err, want)
		}
	}
	deep := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	if err := rawjson.Check([]byte(deep), 512); !errors.Is(err, rawjson.ErrDepth) {
		t.Errorf("20,000 levels: %v", err)
	}
}

func TestAlike(t *testing.T) {
	for _, c := range []struct {
		a, b  string
		alike bool
	}{
		{`{"a":"\u00e4","b":1.0}`, "{ \"b\": 1,\n\"a\": \"ä\" }", true},
		{`[1,2]`, `[2,1]`, false},
		{`[19.90,1e3,-0.00001,0.0,120]`, `[19.9,1000,-1e-05,0,1.20e2]`, true},
		{`12345678901234567890`, `12345678901234567891`, false},
		{`-1`, `1`, false},
		{`1e99999999999999999999`, `1e99999999999999999998`, false},
		{`{"a":1}`, `{"a":"1"}`, false},
		{`{"a":1}`, `{"a":1,"b":null}`, false},
		{`{"a":1,"a":1}`, `{"a":1,"a":1}`, false}, // no JSON
		{`{`, `{`, false},
	} {
		if rawjson.Alike([]byte(c.a), []byte(c.b)) != c.alike {
			t.Errorf("%s and %s: expected %v", c.a, c.b, c.alike)
		}
	}
}

func TestReadMap(t *testing.T) {
	const text = ` { "a" : [1, 2.50] , "b\u002f" : {"c": null}, "" : "x" } `
	members, err := rawjson.ReadMap([]byte(text), 4)
	if err != nil || fmt.Sprintf("%s", members) != fmt.Sprintf("%s", map[string]json.RawMessage{"a": []byte(`[1, 2.50]`), "b/": []byte(`{"c": null}`), "": []byte(`"x"`)}) {
		t.Errorf("%s, %v", members, err)
	}
	second, ok := rawjson.Map([]byte(text))
	if !ok || fmt.Sprintf("%s", second) != fmt.Sprintf("%s", members) {
		t.Errorf("%s, %v", second, ok)
	}
	for _, other := range []string{``, ` `, `null`, `"x"`, `7`} {
		if _, ok := rawjson.Map([]byte(other)); ok {
			t.Errorf("%q is an object", other)
		}
		if _, ok := rawjson.Elements([]byte(other)); ok {
			t.Errorf("%q is an array", other)
		}
	}
}

func TestLoneSurrogates(t *testing.T) {
	for text, want := range map[string]error{
		`{"a":"\ud800","b":{"\udc00x":1}}`: nil, `{"\ud800":1}`: nil, `{"a":"\ud83d\ude00"}`: nil,
		`{"\ud800":1,"\udc00":2}`: rawjson.ErrDuplicate, `{"\ud800":1,"\ufffd":2}`: rawjson.ErrDuplicate,
		"{\"a\":\"\xed\xa0\x80\"}": rawjson.ErrSyntax, "{\"a\":\"\xff\"}": rawjson.ErrSyntax, "{\"a\xff\":1}": rawjson.ErrSyntax,
		`{"a":"\ud8"}`: rawjson.ErrSyntax, `{"a":{"b":[[["\ud800"]]]}}`: rawjson.ErrDepth, `["\ud800"]`: parser.ErrNoObject,
	} {
		members, err := rawjson.ReadMapAllowingLoneSurrogates([]byte(text), 4)
		if !errors.Is(err, want) || (err == nil) != (members != nil) {
			t.Errorf("%q: %v, %v; expected %v", text, members, err, want)
		}
		if strings.Contains(text, `\ud800`) && rawjson.Check([]byte(text), 5) == nil {
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
		if rawjson.Deeper([]byte(in), most) != want {
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
		err := rawjson.Check(data, 16)
		if err == nil && !json.Valid(data) {
			t.Errorf("%q is taken", data)
		}
		members, objectErr := rawjson.ReadMap(data, 16)
		if (objectErr == nil || objectErr == parser.ErrNoObject) != (err == nil) {
			t.Errorf("%q: %v as a value, %v as an object", data, err, objectErr)
		}
		var same map[string]json.RawMessage
		if objectErr == nil && (json.Unmarshal(data, &same) != nil || len(same) != len(members)) {
			t.Errorf("%q: %d members; the standard library finds %d", data, len(members), len(same))
		}
	})
}

func BenchmarkReadMap(b *testing.B) {
	data := []byte(`{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"` + strings.Repeat("some text ", 100) + `"}],"structuredContent":{"a":[1,2,3],"b":{"c":true}}}}`)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := rawjson.ReadMap(data, 64); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	data := []byte(`{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"` + strings.Repeat("some text ", 100) + `"}],"structuredContent":{"a":[1,2,3],"b":{"c":true}}}}`)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if err := rawjson.Check(data, 64); err != nil {
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
			if rawjson.Valid([]byte(text)) && text[0] == '"' {
				want = len(text)
			}
			if got := rawjson.LiteralLength([]byte(text + rest)); got != want && (want > 0 || !rawjson.Valid([]byte(text + rest)[:got])) {
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
				if got := rawjson.AppendQuote(nil, text); !bytes.Equal(got, want) || !bytes.Equal(rawjson.AppendQuote(nil, string(text)), want) {
					t.Fatalf("%q: %s; expected %s", text, got, want)
				}
				want, _ = json.Marshal(string(text))
				if got := rawjson.AppendEscaped(nil, string(text)); !bytes.Equal(got, want) {
					t.Fatalf("%q escaped: %s; expected %s", text, got, want)
				}
			}
		}
	}
}
