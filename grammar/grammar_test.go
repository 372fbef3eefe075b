package grammar_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/grammar"
	"github.com/callgate/callgate/internal/corpora"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/tool"
)

// client is the way to run a tool that its caller runs.
var client = tool.Run{Type: "client"}

var samples = flag.Int("samples", 300, "texts of each grammar that are judged; a fifth of them with -short")

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		*samples /= 5
	}
	os.Exit(m.Run())
}

// written is a grammar in one notation.
type written struct {
	rules
	start, source string
}

func write(t *testing.T, g *grammar.Grammar, format string) written {
	t.Helper()
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

// judged refuses a text that is no call of a tool of the registry.
func judged(tools *registry.Registry, text string) error {
	r := parser.Parse([]byte(text), false, parser.Options{})
	if r.Kind != parser.Call {
		if r.Refusal != nil {
			return fmt.Errorf("no call: %s %v", r.Refusal.Code, r.Refusal.Violations)
		}
		return fmt.Errorf("no call")
	}
	entry, known := tools.Lookup(r.Name)
	if !known {
		return fmt.Errorf("no tool %s", r.Name)
	}
	if faults := entry.Evaluate(parser.DecodeObject(r.Arguments)); len(faults) > 0 {
		return fmt.Errorf("%s: %s", faults[0].Code, faults[0].Message)
	}
	return nil
}

func toolsOf(tools *registry.Registry, use func(name string) bool) []grammar.Tool {
	var out []grammar.Tool
	for _, e := range tools.Entries() {
		if use(e.Name()) {
			out = append(out, grammar.Tool{Name: e.Name(), Schema: e.ClosedSchema()})
		}
	}
	return out
}

func all(string) bool { return true }

// Each text of a grammar is a call that the parser and the schema accept.
func accepted(t *testing.T, tools *registry.Registry, o grammar.Options) {
	g := grammar.New(toolsOf(tools, all), o)
	for _, l := range g.LeftOut {
		t.Errorf("%s is left out: %s", l.Tool, l.Reason)
	}
	for format := range dialects {
		w := write(t, g, format)
		s := newSampler(w.rules, 7)
		seen := map[string]bool{}
		for range *samples {
			text := s.sample(w.start)
			seen[text] = true
			if err := judged(tools, text); err != nil {
				t.Fatalf("%s: %v:\n%s", format, err, text)
			}
		}
		if len(seen) < 2 {
			t.Errorf("%s: all samples are alike", format)
		}
	}
}

var options = map[string]grammar.Options{"every spelling": {Agent: "Analyst"}, "compact": {Compact: true}}

// Each vector that is a call is in the grammar of its agent, and none that the parser or a schema
// refuses. Every text of the grammar is accepted.
func TestVectors(t *testing.T) {
	vectors := corpora.Vectors(t)
	loaded, err := configs.Load(corpora.Testdata("vectors", "config", "callgate.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	grammars := map[string]map[string]written{}
	calls, refused := 0, 0
	for _, v := range vectors {
		want := v.Expect.Verdict == "tool_call"
		if !want && (v.Expect.Stage != "parse" && v.Expect.Stage != "schema" || v.FinishReason != "") {
			continue // a grammar cannot know
		}
		if want {
			calls++
		} else {
			refused++
		}
		key := v.Agent + v.Workspace + v.Project
		if grammars[key] == nil {
			may := func(name string) bool {
				reach, err := loaded.Policy.Reach(v.Agent, v.Workspace, v.Project, name)
				return err == nil && reach != policy.Never
			}
			g := grammar.New(toolsOf(loaded.Tools, may), grammar.Options{Agent: v.Agent})
			grammars[key] = map[string]written{}
			for format := range dialects {
				grammars[key][format] = write(t, g, format)
			}
		}
		for format, w := range grammars[key] {
			if b := v.Bytes(t); len(b) < 4096 && utf8.Valid(b) && w.matches(w.start, string(b)) != want {
				t.Errorf("%s: %s: found %v; expected %v: %s", v.ID, format, !want, want, b)
			}
		}
	}
	if calls < 10 || refused < 50 {
		t.Errorf("found %d calls and %d refusals among the vectors", calls, refused)
	}
	for name, o := range options {
		t.Run(name, func(t *testing.T) { accepted(t, loaded.Tools, o) })
	}
}

// schemas has each keyword that can be written, with a value in the grammar and one that is
// not.
var schemas = []struct{ name, schema, in, out string }{
	{"text", `{"type":"string"}`, `"\u00e9\n\ud83d\ude00"`, `"\ud83d"`},
	{"lengths", `{"type":"string","minLength":2,"maxLength":3}`, `"a\ud83d\ude00"`, `"a"`},
	{"pattern", `{"type":"string","pattern":"^[a-c]+-\\d{2}$"}`, `"ab-\u00312"`, `"ab-1"`},
	{"a pattern anywhere", `{"type":"string","pattern":"x.y"}`, `"--x\"y--"`, `"x\ny"`},
	{"pattern and length", `{"type":"string","pattern":"b","maxLength":3}`, `"aab"`, `"aaab"`},
	{"two patterns", `{"allOf":[{"pattern":"a"},{"pattern":"b$"}],"type":"string"}`, `"cab"`, `"ba"`},
	{"case", `{"type":"string","pattern":"^(?i)k$"}`, `"K"`, `"x"`},
	{"a member without a name", `{"type":"object","properties":{"":{"type":"null"}},"additionalProperties":true}`, `{"":null,"x":1}`, `{"":1}`},
	{"date", `{"type":"string","format":"date"}`, `"2024-02-29"`, `"2023-02-29"`},
	{"number", `{"type":"number"}`, `-0.5E+10`, `01`},
	{"integer", `{"type":"integer"}`, `1.0`, `1.5`},
	{"minimum", `{"type":"number","minimum":-1.25,"maximum":100}`, `-1.2500`, `-1.26`},
	{"maximum", `{"type":"number","minimum":-1.25,"maximum":100}`, `100.00`, `100.001`},
	{"exclusive", `{"type":"integer","exclusiveMinimum":0,"exclusiveMaximum":10}`, `9`, `10`},
	{"not zero", `{"type":"integer","exclusiveMinimum":0}`, `100000`, `-0`},
	{"zero", `{"type":"number","minimum":0,"maximum":0}`, `-0.0`, `0.1`},
	{"multiple", `{"type":"number","multipleOf":0.25,"minimum":1}`, `12.750`, `12.8`},
	{"multiple of whole", `{"type":"integer","multipleOf":7}`, `-49`, `50`},
	{"enum", `{"enum":["a",1,null,{"b":[true]}]}`, `{"b":[true]}`, `"b"`},
	{"enum of numbers", `{"enum":[10,2.5]}`, `10.0`, `1`},
	{"enum and type", `{"enum":["a","bc",3],"type":"string","minLength":2}`, `"bc"`, `"a"`},
	{"constant", `{"const":"x\"y"}`, `"x\u0022y"`, `"x"`},
	{"types", `{"type":["integer","null","boolean"]}`, `null`, `"null"`},
	{"list", `{"type":"array","items":{"type":"boolean"},"minItems":1,"maxItems":3}`, `[true,false, true]`, `[]`},
	{"tuple", `{"type":"array","prefixItems":[{"type":"null"},{"type":"boolean"}],"items":false,"minItems":1}`, `[null]`, `[true]`},
	{"tuple with more", `{"type":"array","prefixItems":[{"type":"null"}],"items":{"type":"boolean"},"minItems":2}`, `[null,true]`, `[null]`},
	{"different items", `{"type":"array","items":{"type":"boolean"},"uniqueItems":true}`, `[true]`, `[true,true]`},
	{"object", `{"type":"object","properties":{"b":{"type":"null"},"a":{"type":"null"}},"required":["b"]}`, `{"a":null,"b":null}`, `{"a":null}`},
	{"open map", `{"type":"object","additionalProperties":{"type":"boolean"}}`, `{"x":true,"ab":false}`, `{"x":1}`},
	{"open map with members", `{"type":"object","properties":{"id":{"type":"null"}},"additionalProperties":{"type":"boolean"}}`, `{"id":null,"x":true}`, `{"id":true}`},
	{"counts", `{"type":"object","additionalProperties":{"type":"null"},"minProperties":2,"maxProperties":3}`, `{"a":null,"b":null}`, `{"a":null}`},
	{"counts of named", `{"type":"object","properties":{"a":true,"b":true,"c":true},"maxProperties":1,"minProperties":1}`, `{"c":1}`, `{}`},
	{"any", `{}`, `[{"a":[1,"b"]},null]`, `[,]`},
	{"anyOf", `{"anyOf":[{"type":"string"},{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}]}`, `{"n":1}`, `{}`},
	{"anyOf beside", `{"type":"object","properties":{"a":{"type":"null"}},"anyOf":[{"properties":{"b":{"type":"null"}},"required":["b"]},{"required":["a"]}]}`, `{"a":null,"b":null}`, `{}`},
	{"oneOf by type", `{"oneOf":[{"type":"string"},{"type":"integer"}]}`, `3`, `3.5`},
	{"oneOf by tag", `{"oneOf":[{"type":"object","properties":{"kind":{"const":"a"},"x":{"type":"null"}},"required":["kind"]},{"type":"object","properties":{"kind":{"const":"b"}},"required":["kind"]}]}`, `{"kind":"a","x":null}`, `{"kind":"b","x":null}`},
	{"allOf", `{"allOf":[{"type":"object","properties":{"a":{"type":"null"}}},{"properties":{"b":{"type":"null"}},"required":["b"]}]}`, `{"a":null,"b":null}`, `{"a":null}`},
	{"dependent", `{"type":"object","properties":{"a":{"type":"null"},"b":{"type":"null"}},"dependentRequired":{"a":["b"]}}`, `{"b":null}`, `{"a":null}`},
	{"tree", `{"$ref":"#/$defs/tree"}`, `{"of":[{"of":[]}]}`, `{"of":[{}]}`},
	{"many members", `{"type":"object","properties":{"a":true,"b":true,"c":true,"d":true,"e":true,"f":true},"required":["b","f"]}`, `{"a":1,"b":2,"f":3}`, `{"a":1,"b":2}`},
	{"email", `{"type":"string","format":"email"}`, `"ada.b@example.org"`, `"ada"`},
}

func registryOf(t testing.TB, name, schema string) (*registry.Registry, error) {
	t.Helper()
	return registry.New([]registry.Tool{{
		Name:        name,
		InputSchema: json.RawMessage(`{"type":"object","properties":{"v":` + schema + `},"required":["v"],"$defs":{"tree":{"type":"object","properties":{"of":{"type":"array","items":{"$ref":"#/$defs/tree"}}},"required":["of"]}}}`),
		Run:         tool.Run{Type: "demo"},
	}})
}

func TestKeywords(t *testing.T) {
	for _, c := range schemas {
		t.Run(c.name, func(t *testing.T) {
			tools, err := registryOf(t, "a.b", c.schema)
			if err != nil {
				t.Fatal(err)
			}
			g := grammar.New(toolsOf(tools, all), grammar.Options{})
			w := write(t, g, "gbnf")
			for value, want := range map[string]bool{c.in: true, c.out: false} {
				text := `{"tool":{"name":"a.b","arguments":{"v":` + value + `}}}`
				if got := w.matches(w.start, text); got != want {
					t.Errorf("%s: found %v; expected %v", value, got, want)
				}
				if (judged(tools, text) == nil) != want {
					t.Errorf("%s: the gateway does not agree: %v", value, judged(tools, text))
				}
			}
			for _, o := range options {
				accepted(t, tools, o)
			}
		})
	}
}

// Formats are written so that their own checks accept each text.
func TestFormats(t *testing.T) {
	for _, format := range []string{
		"date", "date-time", "duration", "email", "hostname", "idn-email", "ipv4", "ipv6", "iri", "iri-reference", "json-pointer",
		"regex", "relative-json-pointer", "time", "uri", "uri-reference", "uri-template", "uuid",
	} {
		t.Run(format, func(t *testing.T) {
			tools, err := registryOf(t, "a.b", `{"type":"string","format":"`+format+`"}`)
			if err != nil {
				t.Fatal(err)
			}
			accepted(t, tools, grammar.Options{})
		})
	}
}

// A tool that cannot be written is left out with the reason, and the other tools stay.
func TestLeftOut(t *testing.T) {
	for schema, want := range map[string]string{
		`{"not":{"type":"null"}}`:                                                  "not",
		`{"if":{"type":"null"},"then":{"const":1}}`:                                "if",
		`{"type":"array","items":{},"contains":{"type":"null"}}`:                   "contains",
		`{"oneOf":[{"minimum":1},{"maximum":5}]}`:                                  "oneOf",
		`{"type":"string","pattern":"\\bx"}`:                                       "words",
		`{"type":"object","patternProperties":{"^x":{"type":"null"}}}`:             "patternProperties",
		`{"type":"array","items":{"type":"null"},"uniqueItems":true,"minItems":2}`: "uniqueItems",
		`{"type":"string","minLength":5000}`:                                       "minLength",
		`{"type":"integer","multipleOf":123457}`:                                   "multipleOf",
	} {
		tools, err := registryOf(t, "a.b", schema)
		if err != nil {
			t.Fatalf("%s: %v", schema, err)
		}
		with := append(toolsOf(tools, all), grammar.Tool{Name: "c.d", Schema: json.RawMessage(`{"type":"object","additionalProperties":false}`)})
		g := grammar.New(with, grammar.Options{})
		if len(g.LeftOut) != 1 || g.LeftOut[0].Tool != "a.b" || !strings.Contains(g.LeftOut[0].Reason, want) {
			t.Errorf("%s: found %v; expected a.b to be left out for %s", schema, g.LeftOut, want)
		}
		w := write(t, g, "gbnf")
		if !w.matches(w.start, `{"tool":{"name":"c.d","arguments":{}}}`) || !strings.Contains(w.source, "# Left out: a.b: ") {
			t.Errorf("%s: the other tool is not there, or the reason is not", schema)
		}
	}
}

func TestAgent(t *testing.T) {
	tools, err := registryOf(t, "a.b", `{"type":"null"}`)
	if err != nil {
		t.Fatal(err)
	}
	const call = `"tool":{"name":"a.b","arguments":{"v":null}}`
	for _, c := range []struct {
		options  grammar.Options
		accepted []string
	}{
		{grammar.Options{}, []string{"{" + call + "}"}},
		{grammar.Options{Agent: "A"}, []string{"{" + call + "}", "{" + call + `,"agent":"A"}`, `{"agent":"A",` + call + "}"}},
		{grammar.Options{Agent: "A", AgentRequired: true}, []string{"{" + call + `,"agent":"A"}`, `{"agent":"A",` + call + "}"}},
	} {
		w := write(t, grammar.New(toolsOf(tools, all), c.options), "lark")
		for _, text := range []string{"{" + call + "}", "{" + call + `,"agent":"A"}`, `{"agent":"A",` + call + "}", "{" + call + `,"agent":"B"}`} {
			if got := w.matches(w.start, text); got != slices.Contains(c.accepted, text) {
				t.Errorf("%+v: %s: found %v", c.options, text, got)
			}
		}
	}
}

func TestWriteRefuses(t *testing.T) {
	g := grammar.New(nil, grammar.Options{})
	for _, format := range []string{"gbnf", "ebnf", "lark", "peg", ""} {
		if err := g.Write(&strings.Builder{}, format); err == nil {
			t.Errorf("%q is written for no tool", format)
		}
	}
}
