package grammar_test

import (
	"encoding/json"
	"io"
	"math/big"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/callgate/callgate/grammar"
	"github.com/callgate/callgate/registry"
)

// object is a schema as it is drawn.
type object = map[string]any

// drawSchema draws a schema of the dialect of the registry.
func drawSchema(t *rapid.T, depth int) object {
	kinds := []string{"string", "integer", "number", "boolean", "null", "enum", "const", "types", "any"}
	if depth > 0 {
		kinds = append(kinds, "array", "array", "object", "object", "anyOf", "oneOf", "allOf", "ref", "tuple")
	}
	s := object{}
	switch kind := rapid.SampledFrom(kinds).Draw(t, "kind"); kind {
	case "string":
		s["type"] = kind
		drawText(t, s)
	case "integer", "number":
		s["type"] = kind
		drawNumber(t, s)
	case "enum":
		s["enum"] = rapid.SliceOfNDistinct(rapid.SampledFrom(values), 1, 4, encoded).Draw(t, "enum")
	case "const":
		s["const"] = rapid.SampledFrom(values).Draw(t, "const")
	case "types":
		s["type"] = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"string", "integer", "boolean", "null", "array"}), 1, 3, rapid.ID).Draw(t, "types")
		drawText(t, s)
		drawNumber(t, s)
		if slices.Contains(s["type"].([]string), "array") {
			s["items"] = drawSchema(t, 0)
			drawCount(t, s, "minItems", "maxItems", 3)
		}
	case "array":
		s["type"] = kind
		s["items"] = drawSchema(t, depth-1)
		drawCount(t, s, "minItems", "maxItems", 4)
		if rapid.IntRange(0, 4).Draw(t, "unique") == 0 {
			s["uniqueItems"] = true
		}
	case "tuple":
		s["type"] = "array"
		s["prefixItems"] = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) object { return drawSchema(t, depth-1) }), 1, 3).Draw(t, "prefixItems")
		if rapid.Bool().Draw(t, "closed") {
			s["items"] = false
		} else {
			s["items"] = drawSchema(t, 0)
		}
		drawCount(t, s, "minItems", "maxItems", 4)
	case "object":
		drawObject(t, s, depth)
	case "anyOf", "oneOf", "allOf":
		s[kind] = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) object { return drawSchema(t, depth-1) }), 1, 3).Draw(t, kind)
		if rapid.IntRange(0, 3).Draw(t, "beside") == 0 {
			drawNumber(t, s)
		}
	case "ref":
		s["$ref"] = rapid.SampledFrom([]string{"#/$defs/a", "#/$defs/b"}).Draw(t, "ref")
	case "any":
	default:
		s["type"] = kind
	}
	return s
}

// values are those of enums and constants, as JSON.
var values = []json.RawMessage{
	[]byte(`"a"`), []byte(`"é\n\""`), []byte(`""`), []byte(`0`), []byte(`-1.50`), []byte(`1e2`), []byte(`100`), []byte(`true`), []byte(`null`),
	[]byte(`[1,"a"]`), []byte(`{"a":1,"b":[]}`), []byte(`{}`), []byte(`[]`),
}

func encoded(v json.RawMessage) string { return string(v) }

func drawText(t *rapid.T, s object) {
	if p := rapid.SampledFrom([]string{"", "", "^[a-c]+-\\d{2}$", "b", "^(?:ab|c)*$", "^.{0,3}$", "[^a]$", "^(?i)k\\s?$", "^(?:a{0,90}b)*$", "^$", "\\p{Lu}"}).Draw(t, "pattern"); p != "" {
		s["pattern"] = p
	}
	if f := rapid.SampledFrom([]string{"", "", "", "", "date", "uuid", "ipv4", "email", "date-time", "uri", "hostname", "time"}).Draw(t, "format"); f != "" {
		s["format"] = f
	}
	drawCount(t, s, "minLength", "maxLength", 12)
}

func drawNumber(t *rapid.T, s object) {
	numbers := []string{"", "", "-10", "0", "1", "2.5", "100", "1e3", "-0.125", "12345678901234567890"}
	for _, key := range []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"} {
		if n := rapid.SampledFrom(numbers).Draw(t, key); n != "" && rapid.IntRange(0, 2).Draw(t, "has") == 0 {
			s[key] = json.Number(n)
		}
	}
	if n := rapid.SampledFrom([]string{"", "", "", "", "1", "2", "0.5", "0.1", "7"}).Draw(t, "multipleOf"); n != "" {
		s["multipleOf"] = json.Number(n)
	}
}

func drawCount(t *rapid.T, s object, least, most string, top int) {
	if rapid.IntRange(0, 2).Draw(t, least) == 0 {
		s[least] = rapid.IntRange(0, top).Draw(t, "least")
	}
	if rapid.IntRange(0, 2).Draw(t, most) == 0 {
		s[most] = rapid.IntRange(0, top).Draw(t, "most")
	}
}

func drawObject(t *rapid.T, s object, depth int) {
	s["type"] = "object"
	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "ab", "é", "with \"quote", "x-y", ""}), 0, 4, rapid.ID).Draw(t, "names")
	properties := object{}
	for _, name := range names {
		properties[name] = drawSchema(t, depth-1)
	}
	s["properties"] = properties
	if rapid.Bool().Draw(t, "required") {
		s["required"] = rapid.SliceOfNDistinct(rapid.SampledFrom(append([]string{"a", "z"}, names...)), 0, 3, rapid.ID).Draw(t, "which")
	}
	switch rapid.IntRange(0, 4).Draw(t, "additional") {
	case 0:
		s["additionalProperties"] = false
	case 1:
		s["additionalProperties"] = true
	case 2:
		s["additionalProperties"] = drawSchema(t, 0)
	case 3:
		s["additionalProperties"] = drawSchema(t, 0)
		drawCount(t, s, "minProperties", "maxProperties", 3)
	}
	if rapid.IntRange(0, 5).Draw(t, "dependent") == 0 && len(names) > 1 {
		s["dependentRequired"] = object{names[0]: []string{names[1]}}
	}
}

// Grammars of random schemas have accepted calls alone; and where nothing is noted to be narrower,
// each random call that is accepted is in them. rapid's flag -rapid.checks asks for more.
func TestRandomSchemas(t *testing.T) {
	tried, written, within, beside := 0, 0, 0, 0
	rapid.Check(t, func(r *rapid.T) {
		tried++
		schema, err := json.Marshal(object{
			"type": "object", "properties": object{"v": drawSchema(r, 2)}, "required": []string{"v"}, "additionalProperties": false,
			"$defs": object{"a": drawSchema(r, 1), "b": drawSchema(r, 0)},
		})
		if err != nil {
			r.Fatal(err)
		}
		tools, err := registry.New([]registry.Tool{{Name: "a.b", InputSchema: schema, Run: client}})
		if err != nil {
			return
		}
		g := grammar.New(toolsOf(tools, all), grammar.Options{MaxDepth: 64})
		if len(g.LeftOut) > 0 || g.Write(io.Discard, "gbnf") != nil {
			return // it cannot be written, or no call is accepted
		}
		written++
		judges := callSchema(r, g)
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 1))
		format := rapid.SampledFrom([]string{"gbnf", "ebnf", "lark"}).Draw(r, "format")
		w := readBack(r, g, format)
		s := newSampler(w.rules, random.Uint64())
		for range 4 {
			text := s.sample(w.start)
			if err := judged(tools, text); err != nil {
				r.Fatalf("%s of %s: %v:\n%s", format, schema, err, text)
			}
			if err := judges.Validate(decoded(r, text)); err != nil {
				r.Fatalf("the JSON Schema of %s refuses %s: %v", schema, text, err)
			}
			call := decoded(r, text)
			for change := range 4 { // the first is the call itself, as encoding/json spells it
				if change > 0 {
					call = changed(random, call)
				}
				call = plainNumbers(call)
				text, err := json.Marshal(call)
				if err != nil {
					r.Fatal(err)
				}
				accepted := judged(tools, string(text)) == nil
				if theirs := judges.Validate(decoded(r, string(text))) == nil; theirs != accepted {
					r.Fatalf("accepted: %v, by the JSON Schema %v: %s by %s", accepted, theirs, text, schema)
				}
				switch {
				case len(text) > 300: // a reader that tries every way takes long
				case !accepted:
					beside++
					if w.matches(w.start, string(text)) {
						r.Fatalf("%s of %s has the refused %s", format, schema, text)
					}
				case len(g.Notes) == 0 && !exponent.Match(text):
					within++
					if !w.matches(w.start, string(text)) {
						r.Fatalf("%s of %s, without a note, does not have %s", format, schema, text)
					}
				}
			}
		}
	})
	t.Logf("%d schemas, %d written; %d accepted calls within, %d refused ones beside", tried, written, within, beside)
	if written == 0 || within == 0 || beside == 0 {
		t.Error("nothing was compared")
	}
}

var exponent = regexp.MustCompile(`[0-9][eE][-+]?[0-9]`)

// plainNumbers spells the numbers of a value without an exponent, as grammars do, unless they are
// long.
func plainNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if strings.ContainsAny(v.String(), "eE") {
			exact, ok := new(big.Rat).SetString(v.String())
			if plain := exact.FloatString(20); ok && len(plain) < 60 {
				return json.Number(strings.TrimSuffix(strings.TrimRight(plain, "0"), "."))
			}
		}
	case []any:
		for i := range v {
			v[i] = plainNumbers(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = plainNumbers(v[name])
		}
	}
	return v
}

func decoded(t *rapid.T, text string) any {
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func readBack(t *rapid.T, g *grammar.Grammar, format string) written {
	var b strings.Builder
	if err := g.Write(&b, format); err != nil {
		t.Fatal(err)
	}
	read, start, err := readGrammar(format, b.String())
	if err != nil {
		t.Fatalf("%s: %v\n%.2000s", format, err, b.String())
	}
	return written{read, start, b.String()}
}
