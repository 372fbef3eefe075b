package replies_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/kaptinlin/jsonschema"
	"pgregory.net/rapid"

	"github.com/callgate/callgate/internal/testkit/corpora"
)

// structured is an answer to a request that asks for JSON, of testdata/own/structured.jsonl.
type structured struct {
	ID     string
	Schema json.RawMessage // nil: any object
	Answer string
	Code   string // of the refusal; empty: it passes
	Path   string // of one of the violations
	Right  string // an answer that passes
}

// asks is the case of a request that asks for JSON by a schema.
func (s *structured) asks() *testCase {
	c := &testCase{name: s.ID, output: string(s.Schema)}
	if s.Schema == nil {
		c.output = "json_object"
	}
	return c
}

// judged is a gateway that serves a script, as a case says.
func judged(t *testing.T, c testCase) *gate {
	t.Helper()
	var g *gate
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.serve(w, r) }))
	t.Cleanup(model.Close)
	g = open(t, &c, model.URL)
	return g
}

// answersWith is a reply of one text.
func answersWith(text string) reply {
	return reply{parts: []part{{kind: "text", text: text}}, as: map[string]bool{}}
}

// violationPaths are the paths of a refusal, as it stands in the body of an answer.
func violationPaths(t *testing.T, body string) (paths []string) {
	t.Helper()
	const member = `"violations":`
	_, list, found := strings.Cut(body, member)
	if !found {
		return nil
	}
	var all []struct{ Path string }
	if err := json.NewDecoder(strings.NewReader(list)).Decode(&all); err != nil {
		t.Errorf("%v in %s", err, body)
	}
	for _, v := range all {
		paths = append(paths, v.Path)
	}
	return paths
}

// isValid reports whether kaptinlin/jsonschema takes an answer for valid, as it stands.
func isValid(t reporter, schema, answer []byte) bool {
	t.Helper()
	if schema == nil {
		schema = []byte(`{"type":"object"}`)
	}
	compiled, err := jsonschema.NewCompiler().Compile(schema)
	if err != nil {
		t.Errorf("%s: %v", schema, err)
		return false
	}
	var value any
	if err := json.Unmarshal(answer, &value); err != nil {
		return false
	}
	return compiled.Validate(value).IsValid()
}

// TestStructured: of an answer that is asked to be JSON, what is not by the schema is refused on every API, whole and as
// a stream, and not a byte of it is sent; and what is right passes as it is. A refused one is asked for again, and the
// right one passes then. With structured_output: pass each answer is what it is where nothing is asked for.
func TestStructured(t *testing.T) {
	once, again, passing := judged(t, testCase{}), judged(t, testCase{rules: []string{"repairs=1"}}), judged(t, testCase{rules: []string{"structured_output=pass"}})
	right, wrong := 0, 0
	for i, s := range corpora.Lines[structured](t, corpora.Testdata("own", "structured.jsonl")) {
		c := s.asks()
		c.replies = []reply{answersWith(s.Answer)}
		if s.Code == "" {
			right++
		} else {
			wrong++
		}
		for j, w := range wires {
			if testing.Short() && (i+j)%len(wires) != 0 {
				continue // one API a row
			}
			for _, f := range []form{{}, {size: 7}} {
				got, body := once.ask(t.Context(), t, c, w, f.size > 0, says(c, w, f))
				switch {
				case got.code != s.Code, s.Code == "" && got.text != s.Answer, s.Code != "" && (got.begun || got.text != "" || strings.Contains(body.Body.String(), "SECRET")):
					t.Errorf("%s: %s, %s: found %s", s.ID, w.name, f, got.String())
				case s.Path != "" && w.name != "invented" && !slices.Contains(violationPaths(t, body.Body.String()), s.Path):
					t.Errorf("%s: %s, %s: found %s", s.ID, w.name, f, body.Body)
				}
			}
			if s.Code == "" || s.Right == "" {
				continue
			}
			twice := *c
			twice.replies = []reply{answersWith(s.Answer), answersWith(s.Right)}
			if got, _ := again.ask(t.Context(), t, &twice, w, i%2 == 0, says(&twice, w, form{size: 7})); got.text != s.Right || got.asked != 2 || got.told != s.Code {
				t.Errorf("%s: %s, asked again: found %s", s.ID, w.name, got.String())
			}
		}
		w := wires[i%len(wires)]
		prose := *c
		prose.output = ""
		passes, _ := passing.ask(t.Context(), t, c, w, i%2 == 0, says(c, w, form{size: 7}))
		if want, _ := once.ask(t.Context(), t, &prose, w, i%2 == 0, says(&prose, w, form{size: 7})); passes.String() != want.String() {
			t.Errorf("%s: %s, where it passes: found %s, want %s", s.ID, w.name, passes.String(), want.String())
		}
		if s.Code == "" && !isAnnotated(s.Schema) && !isValid(t, s.Schema, []byte(s.Answer)) {
			t.Errorf("%s: an answer passes that is not valid", s.ID)
		}
	}
	if right < 50 || wrong < 150 {
		t.Errorf("only %d answers that are right were tried, and %d that are not", right, wrong)
	}
}

// isAnnotated reports whether a schema has words that the gateway takes for those of JSON Schema 2020-12, and a validator does not.
func isAnnotated(schema []byte) bool {
	return strings.Contains(string(schema), "draft-04") || strings.Contains(string(schema), `"nullable"`)
}

// recorded is a recorded exchange, as far as it says what was asked for and answered.
type recorded struct {
	Style, Text, File string
	Calls             []any
	Expected          []any `json:"expected_calls"`
	Request           struct {
		OutputConfig struct{ Format format } `json:"output_config"`
		OutputFormat format                  `json:"output_format"`
		Text         struct{ Format format }
	}
	Response json.RawMessage
}

type format struct {
	Type   string
	Schema json.RawMessage
}

// asked is the schema that the request asks for; nil: it asks for none.
func (r *recorded) asked() json.RawMessage {
	for _, f := range []format{r.Request.OutputConfig.Format, r.Request.OutputFormat, r.Request.Text.Format} {
		if f.Type == "json_schema" {
			return f.Schema
		}
	}
	return nil
}

// TestRecordedStructured: the answers to recorded requests that ask for JSON pass, as they came, on the API that they
// were recorded on; and their texts on every other.
func TestRecordedStructured(t *testing.T) {
	const corpus = "face_recordings"
	if !corpora.Whole(corpus) {
		t.Skip("left out: the corpus " + corpus + " is not here")
	}
	all := corpora.Lines[recorded](t, corpora.Path(t, corpus, "exchanges.jsonl"))
	all = append(all, corpora.Lines[recorded](t, corpora.Path(t, corpus, "sse_streams", "index.jsonl"))...)
	g := judged(t, testCase{})
	asked, texts, streams := 0, 0, 0
	of := map[string]wire{"anthropic": messagesWire{}, "openai-responses": responsesWire{}}
	for i := range all {
		e := &all[i]
		schema := e.asked()
		if schema == nil {
			continue
		}
		asked++
		s := structured{ID: e.Style + " " + e.Text, Schema: schema}
		c := s.asks()
		body, kind := e.Response, "application/json"
		if e.File != "" {
			var err error
			if body, err = os.ReadFile(corpora.Path(t, corpus, "sse_streams", e.File)); err != nil {
				t.Fatal(err)
			}
			kind = "text/event-stream"
			streams++
		}
		if serves(of[e.Style]) {
			got, _ := g.ask(t.Context(), t, c, of[e.Style], e.File != "", func(_ int, to http.ResponseWriter, _ *http.Request) {
				to.Header().Set("Content-Type", kind)
				_, _ = to.Write(body)
			})
			if called := len(e.Calls)+len(e.Expected) > 0; called && got.code != "unknown_tool" || !called && (got.code != "" || e.Text != "" && got.text != e.Text) {
				t.Errorf("%s: found %s", s.ID, got.String())
			}
		}
		if e.Text == "" {
			continue
		}
		texts++
		for _, w := range wires {
			c.replies = []reply{answersWith(e.Text)}
			for _, f := range []form{{}, {size: 7}} {
				if got, _ := g.ask(t.Context(), t, c, w, f.size > 0, says(c, w, f)); got.text != e.Text || got.code != "" {
					t.Errorf("%s: %s, %s: found %s", s.ID, w.name, f, got.String())
				}
			}
		}
	}
	if asked < 35 || texts < 25 || streams < 6 {
		t.Errorf("only %d recordings ask for JSON, %d have a text, and %d are streams", asked, texts, streams)
	}
}

// TestStructuredIsValid: whatever is made of an answer that is right, it is valid JSON by kaptinlin/jsonschema if it passes.
func TestStructuredIsValid(outer *testing.T) {
	var right []structured
	for _, s := range corpora.Lines[structured](outer, corpora.Testdata("own", "structured.jsonl")) {
		if s.Code == "" && !isAnnotated(s.Schema) {
			right = append(right, s)
		}
	}
	g := judged(outer, testCase{})
	pieces := []string{"", "", ",", ":", "{", "}", "[", "]", `"`, "0", "-1", "1.5", "null", "true", `"a"`, `"x":1,`, `"name":"b",`, "[]", "{}", " ", "e", "\\"}
	rapid.Check(outer, func(t *rapid.T) {
		s := rapid.SampledFrom(right).Draw(t, "right")
		answer := s.Answer
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			from := rapid.IntRange(0, len(answer)).Draw(t, "from")
			to := min(len(answer), from+rapid.IntRange(0, 6).Draw(t, "bytes"))
			answer = strings.ToValidUTF8(answer[:from]+rapid.SampledFrom(pieces).Draw(t, "piece")+answer[to:], "?")
		}
		c := s.asks()
		c.replies = []reply{answersWith(answer)}
		for _, w := range wires[:1] {
			got, _ := g.ask(outer.Context(), t, c, w, false, says(c, w, form{}))
			if got.code == "" && (got.text != answer || !isValid(t, s.Schema, []byte(answer))) {
				t.Errorf("%s passes by %s", answer, s.Schema)
			}
		}
	})
}

// TestStructuredChoices: each of several answers is judged.
func TestStructuredChoices(t *testing.T) {
	g := judged(t, testCase{})
	for second, code := range map[string]string{`{}`: "", `{`: "malformed_json"} {
		c := testCase{name: second, output: "json_object"}
		got, body := g.ask(t.Context(), t, &c, moreOf{chatWire{}, `"n":2`}, false, func(_ int, to http.ResponseWriter, _ *http.Request) {
			to.Header().Set("Content-Type", "application/json")
			_, _ = to.Write([]byte(`{"id":"c","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"{}"},"finish_reason":"stop"},` +
				`{"index":1,"message":{"role":"assistant","content":` + quoted(second) + `},"finish_reason":"stop"}]}`))
		})
		if got.code != code || code == "" && strings.Count(body.Body.String(), `"content":"{}"`) != 2 {
			t.Errorf("%s: found %s", second, body.Body)
		}
	}
}

// TestStructuredTexts: texts are one, unless one of them alone is JSON: applications may read each, or the last.
func TestStructuredTexts(t *testing.T) {
	g := judged(t, testCase{})
	const one = `{"type":"integer","maximum":20}`
	for name, row := range map[string]struct {
		texts []string
		code  string
	}{
		"numbers":        {[]string{"1", "2"}, "mixed_output"},
		"two objects":    {[]string{"{}", "{}"}, "mixed_output"},
		"a number":       {[]string{"-", "2"}, "mixed_output"},
		"a sign":         {[]string{"1", "e1"}, "mixed_output"},
		"in two":         {[]string{"-", "2e", "0"}, "mixed_output"},
		"an object":      {[]string{"{", "}"}, "invalid_output"},
		"one is blank":   {[]string{" ", "12"}, ""},
		"words before":   {[]string{"So:", "12"}, "mixed_output"},
		"one by a space": {[]string{"12", "\n"}, ""},
	} {
		c := (&structured{ID: name, Schema: json.RawMessage(one)}).asks()
		r := reply{as: map[string]bool{}}
		for _, text := range row.texts {
			r.parts = append(r.parts, part{kind: "text", text: text})
		}
		c.replies = []reply{r}
		for _, w := range wires[1:3] {
			for _, f := range []form{{}, {size: 7}} {
				if got, body := g.ask(t.Context(), t, c, w, f.size > 0, says(c, w, f)); got.code != row.code || row.code != "" && (got.begun || got.text != "") {
					t.Errorf("%s: %s, %s: found %s %.300s", name, w.name, f, got.String(), body.Body)
				}
			}
		}
	}
}

// TestStructuredPrompt: a model whose calls are text is told that an answer may be JSON where it must be.
func TestStructuredPrompt(t *testing.T) {
	g := judged(t, testCase{on: []string{"chat"}, rules: []string{"protocol=text"}})
	for output, want := range map[string]string{"": "Text holds no JSON.", "json_object": "answer with the JSON that is asked for"} {
		c := testCase{name: output, output: output, tools: offered, replies: []reply{answersWith(`{}`)}}
		g.ask(t.Context(), t, &c, chatWire{}, false, says(&c, chatWire{}, form{}))
		if len(g.asked) != 1 || !strings.Contains(g.asked[0], want) || strings.Contains(g.asked[0], "{text}") || strings.Contains(g.asked[0], "Text holds no JSON.") != (output == "") {
			t.Errorf("%q: found %s", output, g.asked)
		}
	}
}

// TestUnjudgedSchemas: a request is refused whose schema cannot be judged, or that does not say what it asks for, before
// the model is asked; with the place in the request, and the setting that lets it pass.
func TestUnjudgedSchemas(t *testing.T) {
	strict, lax := judged(t, testCase{}), judged(t, testCase{rules: []string{"structured_output=pass"}})
	chat, messages, responses := chatWire{}, messagesWire{}, responsesWire{}
	for name, c := range map[string]struct {
		on    wire
		more  string
		found string // in the refusal
	}{
		"look-around":       {chat, `"response_format":{"type":"json_schema","json_schema":{"schema":{"properties":{"a/b":{"pattern":"(?=a)"}}}}}`, `at /response_format/json_schema/schema/properties/a~1b/pattern found`},
		"beside the type":   {chat, `"response_format":{"type":"json_object","schema":{"type":"text"}}`, `at /response_format/schema/type found`},
		"a reference":       {messages, `"output_config":{"format":{"type":"json_schema","schema":{"$ref":"https://a.example/x"}}}`, `at /output_config/format/schema/$ref found`},
		"the older member":  {messages, `"output_format":{"type":"json_schema","schema":{"allOf":[]}}`, `at /output_format/schema/allOf found`},
		"both members":      {messages, `"output_config":{"format":{"type":"json_schema","schema":{}}},"output_format":{"type":"json_schema","schema":{}}`, `Send one of them`},
		"misspelt":          {responses, `"text":{"format":{"type":"json_schema","schema":{"requird":["a"]}}}`, `at /text/format/schema/requird found`},
		"too large":         {responses, `"text":{"format":{"type":"json_schema","schema":{"description":"` + strings.Repeat("a", 1<<20) + `"}}}`, `at /text/format/schema found 1048594 bytes; expected at most 1048576`},
		"too many branches": {responses, `"text":{"format":{"type":"json_schema","schema":{"anyOf":[` + strings.Repeat(`{"type":"string"},`, 300) + `{}]}}}`, `costly`},
		"no schema":         {chat, `"response_format":{"type":"json_schema","json_schema":{"schema":7}}`, `at /response_format/json_schema/schema found`},
		"a word":            {chat, `"response_format":"json_object"`, `must be an object`},
		"a word within":     {responses, `"text":{"format":"json_object"}`, `\"text.format\" must be an object`},
	} {
		if !serves(c.on) {
			continue
		}
		s := structured{ID: name}
		p := *s.asks()
		p.output = ""
		p.replies = []reply{answersWith("fine.")}
		w := moreOf{c.on, c.more}
		if got, body := strict.ask(t.Context(), t, &p, w, false, says(&p, w, form{})); got.code != "bad_request" || got.asked != 0 || !strings.Contains(body.Body.String(), c.found) ||
			strings.Contains(c.found, "at /") && !strings.Contains(body.Body.String(), "structured_output: pass at the upstream") {
			t.Errorf("%s: found %s %.500s", name, got.String(), body.Body)
		}
		if got, body := lax.ask(t.Context(), t, &p, w, true, says(&p, w, form{size: 7})); got.text != "fine." {
			t.Errorf("%s, where it passes: found %s %.500s", name, got.String(), body.Body)
		}
	}
	// What is asked for in words that the provider alone knows, and prose.
	for _, c := range []moreOf{
		{chat, `"response_format":{"type":"grammar","grammar":"root ::= 1"}`}, {chat, `"response_format":{"type":"text"}`}, {chat, `"response_format":null`},
		{responses, `"text":{"format":{"type":"text"},"verbosity":"low"}`}, {responses, `"text":{}`}, {messages, `"output_config":{"effort":"high"}`}, {messages, `"output_config":{"format":null}`},
	} {
		if !serves(c.wire) {
			continue
		}
		p := testCase{name: c.more, replies: []reply{answersWith("fine.")}}
		if got, _ := strict.ask(t.Context(), t, &p, c, false, says(&p, c, form{})); got.text != "fine." {
			t.Errorf("%s: found %s", c.more, got.String())
		}
	}
}

// moreOf is an API whose requests have more members.
type moreOf struct {
	wire
	more string
}

func (w moreOf) request(c *testCase) string { return w.wire.request(c) + "," + w.more }
