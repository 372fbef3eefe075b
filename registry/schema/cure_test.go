package schema

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// TestCure: definitions in the words of other dialects and libraries are judged as their authors mean
// them. A definition that comes back as it was does not compile, or needs no cure.
func TestCure(t *testing.T) {
	const (
		d4  = `"$schema":"http://json-schema.org/draft-04/schema#"`
		d7  = `"$schema":"http://json-schema.org/draft-07/schema#"`
		d19 = `"$schema":"https://json-schema.org/draft/2019-09/schema"`
	)
	for name, c := range map[string]struct {
		in, out string // members of the root; "": unchanged
		accepts string // a value that is accepted
		refuses string // one that is not
		faulty  bool   // and it does not compile
	}{
		"a number's format":           {`"properties":{"n":{"type":"integer","format":"uint32","minimum":0}}`, `"properties":{"n":{"type":"integer","minimum":0}}`, `{"n":1}`, `{"n":-1}`, false},
		"a text's format":             {`"properties":{"p":{"type":["string","null"],"format":"path"}}`, `"properties":{"p":{"type":["string","null"]}}`, `{"p":"a"}`, `{"p":1}`, false},
		"a known format":              {`"properties":{"p":{"type":"string","format":"email"}}`, ``, `{"p":"a@b.example"}`, `{"p":"a"}`, false},
		"strict":                      {`"strict":true,"properties":{}`, `"properties":{}`, `{}`, `{"a":1}`, false},
		"unknown annotations":         {`"properties":{"a":{"type":"string","example":"x","markdownDescription":"d","optional":true,"enumNames":["x"],"ui:widget":{"a":1},"note":"n","id":"i","errorMessage":{"type":"t"}}}`, `"properties":{"a":{"type":"string"}}`, `{"a":"x"}`, `{"a":1}`, false},
		"a member of that name":       {`"properties":{"strict":{"type":"string"},"nullable":{"type":"string"},"format":{"type":"string"}}`, ``, `{"strict":"a","nullable":"b"}`, `{"strict":true}`, false},
		"a misspelt keyword":          {`"properties":{"a":{"type":"string","maxlength":3}}`, ``, ``, ``, true},
		"a misspelt list":             {`"requird":["a"],"properties":{"a":{"type":"string"}}`, ``, ``, ``, true},
		"a misspelt schema":           {`"properties":{"a":{"type":"array","item":{"type":"string"}}}`, ``, ``, ``, true},
		"a free object":               {`"properties":{"h":{"type":"object"}}`, `"properties":{"h":{"type":"object","additionalProperties":true}}`, `{"h":{"a":1}}`, `{"h":1}`, false},
		"a free object, referred to":  {`"properties":{"h":{"$ref":"#/$defs/H"},"i":{"$ref":"#/$defs/H"}},"$defs":{"H":{"type":"object"}}`, `"properties":{"h":{"$ref":"#/$defs/H"},"i":{"$ref":"#/$defs/H"}},"$defs":{"H":{"type":"object","additionalProperties":true}}`, `{"h":{"a":1}}`, `{"h":1}`, false},
		"nullable":                    {`"properties":{"a":{"type":"string","nullable":true,"enum":["x",null]}}`, `"properties":{"a":{"type":["string","null"],"enum":["x",null]}}`, `{"a":null}`, `{"a":"y"}`, false},
		"nullable, null not listed":   {`"properties":{"a":{"type":"string","nullable":true,"enum":["x"]}}`, `"properties":{"a":{"type":["string","null"],"enum":["x"]}}`, `{"a":"x"}`, `{"a":null}`, false},
		"nullable: false":             {`"properties":{"a":{"type":"string","nullable":false}}`, `"properties":{"a":{"type":"string"}}`, `{"a":"x"}`, `{"a":null}`, false},
		"nullable without a type":     {`"properties":{"a":{"nullable":true,"enum":["x"]}}`, `"properties":{"a":{"enum":["x"]}}`, `{"a":"x"}`, `{"a":null}`, false},
		"a tuple":                     {`"properties":{"a":{"type":"array","items":[{"type":"number"},{"type":"string"}],"additionalItems":false}}`, `"properties":{"a":{"type":"array","prefixItems":[{"type":"number"},{"type":"string"}],"items":false}}`, `{"a":[1,"x"]}`, `{"a":[1,"x",2]}`, false},
		"a tuple of draft-07":         {d7 + `,"properties":{"a":{"type":"array","items":[{"type":"number","format":"float"}],"additionalItems":{"type":"string"}}}`, `"properties":{"a":{"type":"array","prefixItems":[{"type":"number"}],"items":{"type":"string"}}}`, `{"a":[1,"x"]}`, `{"a":[1,2]}`, false},
		"an open tuple":               {`"properties":{"a":{"items":[{"type":"number"}]}}`, `"properties":{"a":{"prefixItems":[{"type":"number"}]}}`, `{"a":[1,"x"]}`, `{"a":["x"]}`, false},
		"no tuple":                    {`"properties":{"a":{"items":{"type":"number"},"additionalItems":{"type":"string"}}}`, `"properties":{"a":{"items":{"type":"number"}}}`, `{"a":[1]}`, `{"a":[1,"x"]}`, false},
		"two tuples":                  {`"properties":{"a":{"items":[{"type":"number"}],"prefixItems":[{"type":"string"}]}}`, ``, ``, ``, true},
		"draft-07 beside a reference": {d7 + `,"properties":{"a":{"$ref":"#/definitions/X","minLength":3},"b":{"items":[{}]}},"definitions":{"X":{"type":"string"}}`, ``, ``, ``, true},
		"draft-07 with newer words":   {d7 + `,"properties":{"a":{"prefixItems":[{"type":"string"}],"items":{"type":"number"}}},"dependencies":{}`, ``, ``, ``, true},
		"plain draft-07":              {d7 + `,"properties":{"a":{"type":"string"}}`, ``, `{"a":"x"}`, `{"a":1}`, false},
		"draft-04":                    {d4 + `,"id":"http://a.example/x","properties":{"a":{"type":"number","minimum":1,"exclusiveMinimum":true,"maximum":9,"exclusiveMaximum":false},"b":{"$ref":"#/definitions/B"}},"definitions":{"B":{"type":"string"}}`, `"properties":{"a":{"type":"number","exclusiveMinimum":1,"maximum":9},"b":{"$ref":"#/definitions/B"}},"definitions":{"B":{"type":"string"}}`, `{"a":9,"b":"x"}`, `{"a":1}`, false},
		"draft-04 with ids inside":    {d4 + `,"properties":{"a":{"id":"http://a.example/y","type":"string"}}`, ``, ``, ``, true},
		"2019-09":                     {d19 + `,"properties":{"a":{"type":"array","items":[{"type":"string"}]}},"dependentRequired":{"a":["b"]}`, `"properties":{"a":{"type":"array","prefixItems":[{"type":"string"}]}},"dependentRequired":{"a":["b"]}`, `{}`, `{"a":["x"]}`, false},
		"2019-09, unevaluated items":  {d19 + `,"properties":{"a":{"type":"array","contains":{"const":1},"unevaluatedItems":false}}`, ``, ``, ``, true},
		"another dialect":             {`"$schema":"https://example.com/schema"`, ``, ``, ``, true},
		"2020-12 by http":             {`"$schema":"http://json-schema.org/draft/2020-12/schema#","properties":{"a":{}}`, `"properties":{"a":{}}`, `{"a":1}`, `{"b":1}`, false},
		"the newest":                  {`"$schema":"http://json-schema.org/schema#","properties":{"a":{}}`, `"properties":{"a":{}}`, `{"a":1}`, `{"b":1}`, false},
		"dependencies":                {`"properties":{"a":{},"b":{},"c":{"type":"string"}},"dependencies":{"a":["b"],"b":{"required":["c"]}}`, `"properties":{"a":{},"b":{},"c":{"type":"string"}},"dependentRequired":{"a":["b"]},"dependentSchemas":{"b":{"required":["c"]}}`, `{"a":1,"b":1,"c":"x"}`, `{"a":1}`, false},
		"nulls":                       {`"required":null,"title":null,"properties":{"a":{"type":"string","enum":null,"minLength":null,"default":null},"b":{"const":null}}`, `"properties":{"a":{"type":"string","default":null},"b":{"const":null}}`, `{"a":"","b":null}`, `{"b":1}`, false},
		"no properties":               {`"properties":null`, ``, `{}`, `{"a":1}`, false},
		"required of itself":          {`"properties":{"a":{"type":"object","required":true,"properties":{"b":{"type":"string","required":true}}},"c":{"required":false}}`, `"required":["a"],"properties":{"a":{"type":"object","required":["b"],"properties":{"b":{"type":"string"}}},"c":{}}`, `{"a":{"b":"x"}}`, `{"a":{}}`, false},
		"a type of nothing":           {`"properties":{"a":{"type":null}}`, ``, ``, ``, true},
		"an extension":                {`"x-order":["a"],"properties":{"a":{"x-secret":true}}`, ``, `{"a":1}`, `{"b":1}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			raw := json.RawMessage(`{"type":"object",` + c.in + `}`)
			cured, changes := Cure(raw, false)
			compiled, faults := NewCompiler().Compile(cured, Options{})
			if c.faulty != (len(faults) > 0) {
				t.Fatalf("%s: found %v", cured, faults)
			}
			if c.faulty {
				return
			}
			if name != "no properties" && c.out == "" && (len(changes) > 0 || string(cured) != string(raw)) {
				t.Errorf("found %s, %+v", cured, changes)
			}
			if c.out != "" && !reflect.DeepEqual(decoded(t, cured), decoded(t, []byte(`{"type":"object",`+c.out+`}`))) {
				t.Errorf("found    %s\nexpected %s", cured, c.out)
			}
			for _, change := range changes {
				if change.Note == "" || !strings.HasPrefix(change.At(), change.Pointer) {
					t.Errorf("found %+v", change)
				}
			}
			for value, valid := range map[string]bool{c.accepts: true, c.refuses: false} {
				if found := compiled.Evaluate("t", decoded(t, []byte(value))); (len(found) == 0) != valid {
					t.Errorf("%s: found %v", value, found)
				}
			}
		})
	}
	for _, raw := range []string{`7`, `null`, `{"a":1,"a":2}`, `{"type":"object","properties":7,"items":[7],"$ref":7}`, `{"properties":{"a":{"$ref":"#/properties/a"}}}`} {
		_, _ = Cure(json.RawMessage(raw), false)
	}
	// Results are not closed, so nothing is opened.
	if cured, changes := Cure(json.RawMessage(`{"type":"object","properties":{"h":{"type":"object"},"n":{"format":"int8"}}}`), true); len(changes) != 1 || strings.Contains(string(cured), "additionalProperties") {
		t.Errorf("found %s", cured)
	}
}

// TestPatternsOfECMA262: escapes that RE2 does not know are read as the author means them.
func TestPatternsOfECMA262(t *testing.T) {
	for pattern, c := range map[string]struct{ accepts, refuses string }{
		`^[\\u4e00-\\u9fa5]+$`:       {"中文", "a"},
		`^\\u0041\\u{1F600}$`:        {"A😀", "A"},
		`^\\ud83d\\ude00$`:           {"😀", "x"},
		`^\\cA[\\cz]$`:               {`\u0001\u001a`, "cA"},
		`^[\\u002d\\u005d\\u005e]+$`: {"-]^", "a"},
		`^\\u002e$`:                  {".", "a"},
		`^\\\\u4e00\\u4e01$`:         {`\\u4e00丁`, "一丁"},
	} {
		raw := `{"type":"object","properties":{"a":{"type":"string","pattern":"` + pattern + `"}},"patternProperties":{"` + pattern + `":{"type":"number"}}}`
		compiled, faults := NewCompiler().Compile(json.RawMessage(raw), Options{})
		if len(faults) > 0 {
			t.Errorf("%s: %v", pattern, faults)
			continue
		}
		for text, valid := range map[string]bool{c.accepts: true, c.refuses: false} {
			value := `{"a":"` + text + `"}`
			if found := compiled.Evaluate("t", decoded(t, []byte(value))); (len(found) == 0) != valid {
				t.Errorf("%s, %s: found %v", pattern, text, found)
			}
			if !valid && compiled.AcceptsJSON([]byte(value)) {
				t.Errorf("%s accepts %s", pattern, text)
			}
			if found := compiled.Evaluate("t", decoded(t, []byte(`{"`+text+`":1}`))); (len(found) == 0) != valid {
				t.Errorf("%s, the name %s: found %v", pattern, text, found)
			}
		}
		// Readers get the author's words.
		if !strings.Contains(string(compiled.Closed()), pattern) {
			t.Errorf("%s: found %s", pattern, compiled.Closed())
		}
	}
	for _, pattern := range []string{`\\ud800`, `[\\ud800-\\udbff]`, `\\u12`, `\\c1`, `[^]\\u0041]`, `(?=\\u0041)`, `\\u{110000}`, `\\p{Extended_Pictographic}`, `(a)\\1`, `[^]`} {
		raw := `{"type":"object","properties":{"a":{"type":"string","pattern":"` + pattern + `"}}}`
		if _, faults := NewCompiler().Compile(json.RawMessage(raw), Options{}); len(faults) == 0 {
			t.Errorf("%s compiles", pattern)
		}
	}
}
