package plain_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/registry/schema/plain"
)

const steps = 400_000

func compiled(t testing.TB, document string) *plain.Program {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(document))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	p, reason := plain.Compile(v, steps)
	if p == nil {
		t.Fatalf("%s is not plain: %s", document, reason)
	}
	return p
}

// TestJudge: each row is a schema, values that it accepts, and values that it refuses.
func TestJudge(t *testing.T) {
	for _, c := range []struct {
		schema  string
		yes, no []string
	}{
		{`{"type":"integer"}`, []string{"1", "-0", "1.0", "1e2", "100e-2", "123456789012345678901234567890", " 1\n", "1e400"},
			[]string{"1.5", "1e-1", "01", "1.", ".5", "-", "+1", "1e", "1e+", "1e401", "0x1", "NaN", "1 2", "\"1\"", "", strings.Repeat("1", 257)}},
		{`{"type":"number","minimum":-0.5,"exclusiveMaximum":1e1}`, []string{"-0.5", "-0.50", "9.999999999999999999", "0e5", "9.99999999999999999999999999"}, []string{"-0.51", "10", "10.0", "1e1", "1e2", "-0.500000000000000000000001"}},
		{`{"type":"number","multipleOf":0.01}`, []string{"0", "-0.0", "1.23", "1e3", "99999999999999999.9"}, []string{"1.234", "1e-3", "0.000000000000000001"}},
		{`{"maximum":1000000000000000000000}`, []string{"999999999999999999999", "1e21", "\"a\"", "null"}, []string{"1000000000000000000001", "1e22"}},
		{`{"enum":["a\"b","é",1,0.5,null,true]}`, []string{`"a\"b"`, `"\u0061\u0022b"`, `"\u00e9"`, `"é"`, "1", "1.0", "10e-1", "0.50", "null", "true"}, []string{`"a"`, "false", "2", "{}", "[]", `"É"`, `"e\u0301"`}},
		{`{"const":1,"enum":[1,2]}`, []string{"1", "1.0"}, []string{"2", "3"}},
		{`{"type":"string","minLength":2,"maxLength":3}`, []string{`"ab"`, `"éé"`, `"😀😀😀"`, `"\ud83d\ude00\n"`, `"\u00e9b\\"`}, []string{`"a"`, `"abcd"`, `"😀"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\ude00a"`, `"\ud83d\u0061"`, `"a\xb"`, `"ab`, "\"a\nb\"", "\"a\xffb\"", "\"\xed\xa0\x80a\""}},
		{`{"type":"string","pattern":"^a\\n.$"}`, []string{`"a\nb"`, `"\u0061\u000a😀"`}, []string{`"a\\nb"`, `"a\n"`}},
		{`{"type":"string","format":"date"}`, []string{`"2026-01-31"`, `"2026-01-3\u0031"`}, []string{`"2026-02-30"`}},
		{`{"type":"array","items":{"type":"null"},"minItems":1,"maxItems":2}`, []string{"[null]", "[ null , null ]"}, []string{"[]", "[null,null,null]", "[null,]", "[null", "[,null]", "[1]", "[null null]"}},
		{`{"type":"object","properties":{"a":{"type":"null"},"b":false},"required":["a","c"],"additionalProperties":{"type":"boolean"}}`,
			[]string{`{"a":null,"c":true}`, `{"c":true,"d":false,"\u0061":null}`}, []string{`{"a":null}`, `{"a":null,"c":null}`, `{"a":null,"c":true,"b":true}`, `{"a":null,"a":null,"c":true}`, `{"a":null,"c":true,}`, `{"a":null "c":true}`, `{a:null}`, `{"a"null}`}},
		{`{"type":"object","minProperties":1,"maxProperties":2}`, []string{`{"x":{"y":[1,"z"]}}`, `{"":0,"x":0}`}, []string{`{}`, `{"a":1,"b":2,"c":3}`, `{"x":nul}`, `{"x":tru}`, `{"x":falsey}`, `[]`}},
		{`{"$ref":"#/$defs/1","unevaluatedProperties":false,"$defs":{"1":{"type":"object","properties":{"a":{"$ref":"#/$defs/2"},"b":{"$ref":"#/$defs/2","maxLength":1}}},"2":{"type":"string"}}}`,
			[]string{`{"a":"xx","b":"x"}`}, []string{`{"a":1}`, `{"b":"xx"}`, `{"c":1}`}},
		{`{"$ref":"#/$defs/1","unevaluatedProperties":false,"$defs":{"1":{"additionalProperties":{"type":"string"}}}}`, []string{`{"a":"x"}`}, []string{`{"a":1}`}},
	} {
		p := compiled(t, c.schema)
		for _, value := range c.yes {
			if !accepts(p, value) {
				t.Errorf("%s does not accept %s", c.schema, value)
			}
		}
		for _, value := range c.no {
			if _, refused := p.Judge([]byte(value)); !refused {
				t.Errorf("%s does not refuse %s", c.schema, value)
			}
		}
	}
}

// TestNotPlain: no program is made of these.
func TestNotPlain(t *testing.T) {
	for _, document := range []string{
		`{"anyOf":[{}]}`, `{"not":{}}`, `{"uniqueItems":true}`, `{"patternProperties":{}}`, `{"unknown":1}`, `{"properties":{"a":{"if":{}}}}`,
		`{"enum":[[]]}`, `{"const":{}}`, `{"maxLength":1e19}`, `{"maxLength":-1}`, `{"minItems":0.5}`, `{"format":"nothing"}`, `{"pattern":"("}`, `{"minimum":"1"}`,
		`{"$ref":"#/$defs/1"}`, `{"$ref":"#/$defs/1","$defs":{"1":false}}`, `{"$ref":"#/$defs/1","properties":{},"$defs":{"1":{}}}`, `{"$ref":"#/$defs/1","minLength":1,"$defs":{"1":{"minLength":2}}}`,
		`{"additionalProperties":true,"unevaluatedProperties":{"type":"string","x-boundary":"path"}}`, `{"items":{},"unevaluatedItems":{}}`,
		`{"x-boundary":"url","items":{"type":"string"},"unevaluatedItems":{"type":"string","x-boundary":"path"}}`,
		`{"$ref":"#/$defs/1","unevaluatedProperties":{"type":"string","x-boundary":"path"},"$defs":{"1":{"properties":{"a":{}}}}}`,
		`{"$ref":"#/$defs/1","const":1,"$defs":{"1":{"const":null}}}`,
		`{"$ref":"#/$defs/1","$defs":{"1":{"items":{"$ref":"#/$defs/1"}}}}`,
		`{"$ref":"#/$defs/1","$defs":{"1":{"items":{"$ref":"#/$defs/1","maxItems":1}}}}`,
		`{"$ref":"#/$defs/1","$defs":{"1":{"$ref":"#/$defs/1"}}}`,
		`{"$ref":"#/$defs/1","unevaluatedProperties":false,"$defs":{"1":{"$ref":"#/$defs/1"}}}`,
		`{"$ref":"#/$defs/1","unevaluatedProperties":false,"$defs":{"1":{"$ref":"#/$defs/2"},"2":false}}`,
	} {
		var v any
		d := json.NewDecoder(strings.NewReader(document))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		if p, reason := plain.Compile(v, steps); p != nil || reason == "" {
			t.Errorf("%s is plain", document)
		}
	}
}

// TestStrict: a schema that accepts every value accepts no document that is not strict JSON
// but for names that stand twice, and all others up to its bounds.
func TestStrict(t *testing.T) {
	p := compiled(t, `{}`)
	for _, d := range corpora.Documents(t) {
		err := rawjson.Check(d.Raw, 128)
		accepted := accepts(p, string(d.Raw))
		if accepted && err != nil && !duplicate(err) {
			t.Errorf("%s: accepted, and it is not strict JSON: %v", d.Name, err)
		}
		if !accepted && err == nil && !outOfRange.MatchString(d.Name) {
			t.Errorf("%s is not accepted", d.Name)
		}
	}
	for depth, want := range map[int]bool{128: true, 129: false, 1_000_000: false} {
		value := strings.Repeat("[", depth) + strings.Repeat("]", depth)
		if accepted, refused := p.Judge([]byte(value)); accepted != want || refused {
			t.Errorf("depth %d: accepted %v, refused %v", depth, accepted, refused)
		}
	}
	if accepted, refused := p.Judge([]byte("[" + strings.Repeat("0,", steps) + "0]")); accepted || refused {
		t.Error("decided about a value that takes more steps than there are")
	}
}

func accepts(p *plain.Program, value string) bool {
	accepted, _ := p.Judge([]byte(value))
	return accepted
}

// outOfRange matches documents with numbers that are strict JSON, and beyond the range that
// a program reads: i_number_ in the corpus, and the others in our sample of it.
var outOfRange = regexp.MustCompile(`^i_(number_|(negative_|zero_)?exponent_|fraction_)`)

// duplicate reports whether a fault is a name that stands twice.
func duplicate(err error) bool {
	var syntax *rawjson.Error
	return errors.As(err, &syntax) && syntax.Reason == rawjson.Duplicate
}

// FuzzJudge: no text makes a program panic, or accept what is not strict JSON.
func FuzzJudge(f *testing.F) {
	p := compiled(f, `{"properties":{"a":{"maxLength":3,"pattern":"a"},"b":{"multipleOf":0.1,"enum":[1,0.3,"x"]}},"items":{"type":["integer","string","null"]}}`)
	for _, seed := range []string{`{"a":"a\ud83d\ude00","b":0.3,"c":{"\u0061":[true,false]}}`, `["", null, -1.0e-2]`, `{"a":"\`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		if !accepts(p, string(value)) {
			return
		}
		if err := rawjson.Check(value, 128); err != nil && !duplicate(err) {
			t.Fatal(err)
		}
	})
}

// TestManyRequired: a request may bring a schema, so what makes it not plain is found in linear time.
func TestManyRequired(t *testing.T) {
	names := make([]any, 200_000)
	for i := range names {
		names[i] = fmt.Sprint("name", i)
	}
	start := time.Now()
	p, reason := plain.Compile(map[string]any{"type": "object", "additionalProperties": false, "required": names}, steps)
	if took := time.Since(start); p != nil || reason != "more than 256 members" || took > 30*time.Second {
		t.Errorf("%q after %v", reason, took)
	}
}
